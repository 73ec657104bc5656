"""The smallest useful runner: 32-bit integer addition behind a pipe, with the standard library alone.

    pytest --pyargs halfulp.properties -p halfulp.certify.plugin --backend="pipe:python3 examples/pipe_runner.py"

The protocol is described in docs/reference/pipe-protocol.md. A runner in another language does the same: read a line,
answer with a line, say "unsupported" to what it does not offer.
"""

import json
import sys

kernels = []


def hello(request):
    return {"halfulp": 1, "name": "python-example", "opt_levels": [0], "facts": {"versions": {"python": sys.version}}}


def compile_(request):
    return {"answers": [compile_one(program) for program in request["programs"]]}


def compile_one(program):
    for value in program.get("values", [{}]):
        dtype = value.get("input") or value.get("constant") or value.get("dtype")
        if dtype != "i32" or value.get("op", "add") != "add":
            return {"unsupported": "only i32 addition is offered"}
        if "op" in value and len(value["args"]) != 2:
            return {"rejected": "add takes two operands"}
    kernels.append(program)
    return {"ok": len(kernels) - 1}


def run(request):
    program, inputs = kernels[request["handle"]], iter(request["inputs"])
    values, shapes = [], []
    for value in program["values"]:
        if "input" in value:
            array = next(inputs)
            shapes.append(array["shape"])
            values.append([int(array["bits"][i : i + 8], 16) for i in range(0, len(array["bits"]), 8)])
        elif "constant" in value:
            shapes.append([])
            values.append([int(value["bits"], 16)])
        else:
            a, b = value["args"]
            shapes.append(max(shapes[a], shapes[b], key=len))
            n = shapes[-1][0] if shapes[-1] else 1
            x = values[a] if shapes[a] else values[a] * n  # a scalar is used for every element
            y = values[b] if shapes[b] else values[b] * n
            values.append([(p + q) & 0xFFFFFFFF for p, q in zip(x, y, strict=True)])
    bits = ["".join(f"{code:08x}" for code in value) for value in values]
    return {"outputs": [{"dtype": "i32", "shape": shapes[o], "bits": bits[o]} for o in program["outputs"]]}


def release(request):
    for handle in request["handles"]:
        kernels[handle] = None
    return {}


ANSWERS = {"hello": hello, "compile": compile_, "run": run, "release": release}

for line in sys.stdin:
    message = json.loads(line)
    answer = ANSWERS.get(message["type"], lambda request: {"unsupported": request["type"]})(message)
    print(json.dumps({"id": message["id"], **answer}), flush=True)
