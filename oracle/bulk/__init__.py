"""The bulk path: certified judging of every f32 argument of a unary function.

A table covers all 2**32 f32 codes with runs of consecutive codes. On each a polynomial in float64 encloses the function
within 2**-16 ulp of its result, by proof (`oracle.bulk.bounds`), or the result is a constant. A native pass compares
results with the enclosures; what they do not decide goes to the slow path, `oracle.functions`. Functions in f16, bf16
and the 8-bit formats have at most 65536 arguments and need no bulk path.

`build` makes a table in seconds, `verify` checks one, `BulkJudge` judges. Nothing is kept: callers cache tables.
"""

from halfulp.oracle.bulk.build import build, verify
from halfulp.oracle.bulk.judge import NOTHING, BulkJudge, Elements, Limits, Pieces, Summary
from halfulp.oracle.bulk.segments import UnprovenError
from halfulp.oracle.bulk.table import Evaluated, Kind, Table, evaluate
from halfulp.oracle.bulk.targets import TARGETS

__all__ = [
    "NOTHING",
    "TARGETS",
    "BulkJudge",
    "Elements",
    "Evaluated",
    "Kind",
    "Limits",
    "Pieces",
    "Summary",
    "Table",
    "UnprovenError",
    "build",
    "evaluate",
    "verify",
]
