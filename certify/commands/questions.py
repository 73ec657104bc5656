"""``halfulp ask`` and ``halfulp judge``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from halfulp.certify.commands.common import FOUND, MALFORMED, OK, CommandError, Subparsers, add_command
from halfulp.certify.commands.vectors import judge_results
from halfulp.certify.questions import QuestionError, answer, drop_empty_unspecified, read_question
from halfulp.oracle.formats import FORMATS, Format
from halfulp.oracle.ops import OPERATIONS

ASK = """
What may an operation return for these bits? Prints one line of JSON for each question.

  halfulp ask cast f64:0xc07affffffffffff --result f8e4m3fn
  halfulp ask add f32:0x3f800000,0x40000000 f32:0x33800000
  halfulp ask '{"op":"neg","args":[{"dtype":"f16","bits":"0x3c00"}]}'
  halfulp ask < questions.jsonl
  halfulp ask --list                     operations and formats

An operand is FORMAT:BITS, or FORMAT:BITS,BITS,... for several elements at once; bits are hexadecimal. Without
arguments, questions are read from standard input, one JSON object on each line.

Of the answer, "allowed" lists inclusive ranges of bit patterns from the lowest value to the highest, "nan" says whether
any NaN is allowed too, and "nearest" is the correctly rounded result. "claim" is
  exact        one value                      none         no claim: the input is illegal
  oneof        several values                 unspecified  no value has to come out; "unspecified" lists
  range        at least one range of values                those that some reading of the text allows
  nan          any NaN, nothing else

Exit status: 0, or 2 if a question is malformed (the others are still answered).
"""

JUDGE = """
Is this result right? Prints one line of JSON for each question.

  halfulp judge cast f64:0x3ff0100000000001 --result bf16 --got 0x3f80
  halfulp judge '{"op":"add","args":[...],"got":"0x3f800001"}'
  halfulp judge < results.jsonl

Questions are those of `halfulp ask` with the result under "got". The answer is that of `ask`, with the "verdict"
(allowed, forbidden, unspecified or no_claim), the distance from the correctly rounded result in ulp ("distance_ulp";
null for integers and between a NaN and a number), and the names of the wrong rules that give exactly this result
("suspects").

Exit status: 0; 1 if any result is forbidden; 2 if a question is malformed (the others are still answered).
"""


def add_parsers(subparsers: Subparsers) -> None:
    for name, summary, text in (
        ("ask", "what may an operation return for these bits?", ASK),
        ("judge", "is this result right?", JUDGE),
    ):
        parser = add_command(subparsers, name, summary, text)
        parser.add_argument("op", nargs="?", metavar="OP", help="an operation, or a whole question as JSON")
        parser.add_argument("operands", nargs="*", metavar="FORMAT:BITS", help="its operands")
        parser.add_argument("--result", metavar="FORMAT", help="what a cast converts to; the dtype of random_uniform")
        if name == "judge":
            parser.add_argument("--got", metavar="BITS", help="the result to be judged, or several: BITS,BITS,...")
            parser.add_argument(
                "--vectors", type=Path, metavar="DIR", help="judge by vector files: ID BITS on each line"
            )
        parser.add_argument(
            "--attr", action="append", default=[], metavar="NAME=VALUE", help="a compile-time attribute"
        )
        parser.add_argument("--list", action="store_true", help="list operations and formats and stop")
        parser.add_argument("--json", action="store_true", help="with --list: as JSON")
        parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        print(json.dumps(listing(), indent=1) if arguments.json else listing_text())
        return OK
    if arguments.json:
        raise CommandError("--json goes with --list; answers are JSON anyway")
    judging = arguments.command == "judge"
    if judging and arguments.vectors is not None:
        return judge_results(arguments.vectors, sys.stdin)
    if arguments.op is None:
        if arguments.operands or arguments.result or arguments.attr or getattr(arguments, "got", None):
            raise CommandError("options describe a case given as arguments; name its operation first, or give none")
        if sys.stdin.isatty():
            print("reading questions as JSON, one on each line; Ctrl-D ends", file=sys.stderr)
        return _answer_lines(enumerate(sys.stdin, 1), judging, arguments.command)
    text = arguments.op if arguments.op.lstrip().startswith(("{", "[")) else json.dumps(_from_arguments(arguments))
    return _answer_lines([(0, text)], judging, arguments.command)


def _from_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """A case given as arguments, as the JSON object that says the same."""
    question: dict[str, Any] = {"op": arguments.op, "args": []}
    for operand in arguments.operands:
        dtype, colon, bits = operand.partition(":")
        if not colon:
            raise CommandError(f"{operand!r} is no operand; write FORMAT:BITS, for example f32:0x3f800000")
        question["args"].append({"dtype": dtype, "bits": _split(bits)})
    if arguments.result is not None:
        question["result"] = arguments.result
    if getattr(arguments, "got", None) is not None:
        question["got"] = _split(arguments.got)
    if arguments.attr:
        question["attrs"] = {}
        for setting in arguments.attr:
            name, equals, value = setting.partition("=")
            if not equals:
                raise CommandError(f"--attr {setting}: write NAME=VALUE")
            question["attrs"][name] = {"true": True, "false": False}.get(value.lower(), value)
    return question


def _split(bits: str) -> str | list[str]:
    return bits.split(",") if "," in bits else bits


def _answer_lines(lines: Iterable[tuple[int, str]], judging: bool, command: str) -> int:
    """Answer each line. A malformed one is answered by an object with ``"error"``, and named on standard error."""
    status = OK
    for number, line in lines:
        if not line.strip():
            continue
        try:
            question = read_question(_parse(line), judging=judging)
        except QuestionError as error:
            where = f"line {number}: " if number else ""
            print(f"halfulp {command}: {where}{error}", file=sys.stderr)
            reply: dict[str, Any] = {"error": str(error)} | ({"line": number} if number else {})
            status = MALFORMED
        else:
            reply = drop_empty_unspecified(answer(question), question.single)
            if judging and status == OK and "forbidden" in _verdicts(reply["verdict"]):
                status = FOUND
        print(json.dumps(reply, separators=(",", ":")), flush=True)
    return status


def _verdicts(verdict: str | list[str]) -> list[str]:
    return [verdict] if isinstance(verdict, str) else verdict


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise QuestionError(f"this is no JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise QuestionError("this JSON is nested too deeply to be a question") from None


def listing() -> dict[str, Any]:
    """All operations and formats, as JSON data."""
    return {
        "operations": [
            {
                "name": record.name,
                "operands": record.arity,
                "converts": record.converts,
                "attributes": sorted(record.attributes),
                "chapter": record.chapter,
                "summary": record.summary,
            }
            for record in OPERATIONS.values()
        ],
        "formats": [
            {
                "name": fmt.name,
                "kind": fmt.kind,
                "bits": fmt.width,
                "signed": fmt.signed,
                "element_type": fmt.canonical,
                **(
                    {
                        "exponent_bits": fmt.exponent_bits,
                        "fraction_bits": fmt.fraction_bits,
                        "bias": fmt.bias,
                        "infinity": fmt.infinity,
                        "nan": fmt.nan,
                    }
                    if fmt.is_float
                    else {}
                ),
            }
            for fmt in FORMATS.values()
        ],
    }


def listing_text() -> str:
    return "\n".join(_listing_lines())


def _listing_lines() -> Iterator[str]:
    yield "operations"
    for record in OPERATIONS.values():
        operands = f"{record.arity} operand{'s' if record.arity > 1 else ''}"
        shape = f"{operands}, --result FORMAT" if record.converts else operands
        shape += "".join(f", --attr {name}=true" for name in sorted(record.attributes))
        yield f"  {record.name:<15}{shape}"
        yield f"  {'':<15}{record.summary} (section {record.chapter.replace('/', ' and ')})"
    for heading, wanted in (("formats", True), ("formats that casts from and to f32 know besides", False)):
        yield ""
        yield heading
        for fmt in FORMATS.values():
            if fmt.canonical == wanted:
                yield f"  {fmt.name:<15}{_format_text(fmt)}"


def _format_text(fmt: Format) -> str:
    if fmt.kind == "bool":
        return "0x0 or 0x1"
    if fmt.is_int:
        return f"{fmt.width}-bit {'signed' if fmt.signed else 'unsigned'} integer"
    fields = f"{'sign, ' if fmt.signed else ''}{fmt.exponent_bits} exponent and {fmt.fraction_bits} fraction bits"
    nan = {"ieee": "NaNs", "all_ones": "NaN", "negative_zero": "NaN at -0", "none": "no NaN"}[fmt.nan]
    return f"{fmt.width}-bit float: {fields}, bias {fmt.bias}, {'' if fmt.infinity else 'no '}infinity, {nan}"
