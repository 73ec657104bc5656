"""Golden vectors in Python, standard library alone: ``python run.py [--wrong] FILE.json ...`` says what is wrong."""

import json
import math
import struct
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What is on trial: bits in, bits out. Put yours here.


def f32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def bits_of(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def cast(x: int) -> int:
    return 0x7FC0 if math.isnan(f32(x)) else (x + 0x7FFF + (x >> 16 & 1)) >> 16


def log1p(x: int) -> int:
    return bits_of(math.log1p(f32(x)) if f32(x) > -1 else -math.inf if f32(x) == -1 else math.nan)


def log1p_naive(x: int) -> int:
    total = f32(bits_of(1 + f32(x)))
    return bits_of(math.log(total) if total > 0 else -math.inf if total == 0 else math.nan)


RIGHT: dict[str, Callable[..., int]] = {"casts/cast-f32-bf16": cast, "functions/log1p-f32": log1p}
WRONG: dict[str, Callable[..., int]] = {"casts/cast-f32-bf16": lambda x: x >> 16, "functions/log1p-f32": log1p_naive}


def error(exact: dict[str, Any], fmt: dict[str, Any], got: int) -> int:
    """Distance from the exact result in units of 2^-32 ulp, in a format with IEEE's infinities; -1 if there is none."""
    fraction = got & (1 << fmt["fraction_bits"]) - 1
    field = got >> fmt["fraction_bits"] & (1 << fmt["exponent_bits"]) - 1
    if exact["kind"] != "number" or field == (1 << fmt["exponent_bits"]) - 1:
        return -1
    significand = fraction | (field > 0) << fmt["fraction_bits"]
    shift = max(field, 1) - fmt["bias"] - fmt["fraction_bits"] - exact["exponent"]
    scaled = int(significand << shift if shift > 0 else significand >> -shift)
    sign = 1 if got >> (fmt["width"] - 1) == exact["negative"] else -1
    return abs(scaled - sign * int(exact["significand"], 16))


def off(distance: int, most: str = "") -> str:
    return f", {most}{distance >> 32}.{(distance & 0xFFFFFFFF) * 1000 >> 32:03} ulp off" if distance >= 0 else ""


def judge(data: dict[str, Any], cases: list[dict[str, Any]], implementation: Callable[..., int]) -> Counter[str]:
    """Run all cases of a file; print the first five failures and a summary."""
    count, worst = Counter({"allowed": 0, "forbidden": 0, "unspecified": 0}), -1
    fmt = data["formats"][data["operation"]["result"]]
    for case in cases:
        got = implementation(*(int(bits, 16) for bits in case["inputs"]))
        inside = [v for v in count if any(int(low, 16) <= got <= int(high, 16) for low, high in case.get(v, []))]
        verdict = inside[0] if inside else "forbidden"
        distance = error(case["exact"], fmt, got) if "exact" in case else -1
        count[verdict], worst = count[verdict] + 1, max(worst, distance)
        if verdict == "forbidden" and count[verdict] <= 5:
            bits, inputs = f"0x{got:0{(fmt['width'] + 3) // 4}x}", " ".join(case["inputs"])
            allowed = " ".join(low if low == high else f"{low}..{high}" for low, high in case["allowed"])
            print(f"{case['id']} {inputs} gives {bits}{off(distance)}, allowed: {allowed}")
            reasons = [data["flags"][flag] for flag in case["flags"]] + [f"suspect {name}" for name in case["kills"]]
            for reason in [*reasons, case["note"]] if "note" in case else reasons:
                print(f"    {reason}")
    print(f"{data['name']}: {', '.join(f'{n} {verdict}' for verdict, n in count.items())}{off(worst, 'at most ')}")
    return count


def main(arguments: list[str]) -> int:
    mine, total, not_run = WRONG if "--wrong" in arguments else RIGHT, Counter[str](), Counter[str]()
    for path in (argument for argument in arguments if argument != "--wrong"):
        try:
            data = json.loads(Path(path).read_bytes())
            cases = [case for group in data["groups"] for case in group["cases"]]
            if data["format"] != "halfulp-vectors-1" or data["count"] != len(cases):
                raise ValueError("no halfulp-vectors-1 file, or not all of it")
        except (OSError, ValueError, KeyError) as error:
            sys.exit(f"{path}: {error}")
        if data["name"] in mine:
            total += judge(data, cases, mine[data["name"]])
        else:
            not_run[data["kind"]] += len(cases)
    for kind, count in not_run.items():
        print(f"not run: {count} cases of kind {kind}")
    allowed, forbidden, left = total["allowed"], total["forbidden"], not_run.total()
    print(f"all: {allowed} allowed, {forbidden} forbidden, {total['unspecified']} unspecified, {left} not run")
    return 0 if allowed and not forbidden else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
