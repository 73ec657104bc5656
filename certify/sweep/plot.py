"""The error against the input, over the whole domain, as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from halfulp.certify.sweep.domain import Codes
from halfulp.certify.sweep.job import Job, SweepError
from halfulp.certify.sweep.part import Part
from halfulp.certify.sweep.record import bound_text
from halfulp.oracle import codes
from halfulp.oracle.formats import Format

SUFFIXES = (".svg", ".png")


def check(job: Job, path: Path) -> None:
    """Whether a picture can be drawn, before hours of work and not after.

    Raises:
        SweepError: it cannot.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise SweepError(f"--plot {path}: a picture is an .svg or a .png; name the file accordingly")
    if not path.parent.is_dir():
        raise SweepError(f"--plot {path}: there is no folder {path.parent}; create it first")
    if not isinstance(job.domain, Codes):
        raise SweepError("--plot shows the error over consecutive inputs of one operand; a sample has no such picture")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SweepError("--plot needs matplotlib, which is not installed; pip install 'halfulp[plot]'") from None


def _ticks(fmt: Format) -> list[tuple[int, str]]:
    """Ordinals and texts of some powers of ten, or of two in short formats, and of the ends."""
    if not fmt.is_float:
        return []
    found = [(0, "0")]
    wide = fmt.exponent_bits >= 8
    steps = (-30, -20, -10, -5, 0, 5, 10, 20, 30) if wide else range(fmt.emin, fmt.max_exponent + 1, 4)
    for exponent in steps:
        value = float(10.0**exponent if wide else 2.0**exponent)
        bits = _round(fmt, value)
        text = f"1e{exponent}" if wide else f"2^{exponent}"
        found += [(bits, text), (-bits, "-" + text)]
    if fmt.infinity:
        found += [(fmt.infinity_bits, "inf"), (-fmt.infinity_bits, "-inf")]
    return sorted(found)


def _round(fmt: Format, value: float) -> int:
    low, high = 0, fmt.max_finite_bits
    while low < high:
        middle = (low + high + 1) // 2
        if codes.float64_values(fmt, np.array([middle], fmt.storage))[0] <= value:
            low = middle
        else:
            high = middle - 1
    return low


def draw(job: Job, total: Part, record: Mapping[str, Any], path: Path) -> None:
    """Draw the greatest error of each stretch of inputs, and the bound.

    Inputs stand in the order of the number line, evenly by bit pattern: every binade has the same width.

    Raises:
        OSError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    fmt = job.signature.formats[0]
    assert isinstance(job.domain, Codes)
    first = np.array([job.domain.first + start for start, _ in total.profile], np.uint64).astype(fmt.storage)
    at = codes.ordinal(fmt, first)
    error = np.array([value for _, value in total.profile])
    measured = (error >= 0) & ~codes.is_nan(fmt, first)
    at, error = at[measured], error[measured]
    finite = error[np.isfinite(error)]
    bound = record["bound"].get("ulp")
    top = max([1.0, *(finite.tolist()), float(bound or 0)]) * 1.08
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.vlines(at, 0, np.minimum(error, top), linewidth=0.8, color="#30638e")
    far = ~np.isfinite(error)
    if far.any():
        axes.plot(at[far], np.full(far.sum(), top), "^", color="#d1495b", clip_on=False, label="infinite error")
    if bound:
        stated = record["bound"]["stated"]
        axes.axhline(bound, color="#d1495b", linestyle="-" if stated else "--", label=bound_text(record["bound"]))
    axes.axhline(0.5, color="#888888", linewidth=0.6, linestyle=":", label="0.5 ulp: correctly rounded")
    low, high = (int(at.min()), int(at.max())) if len(at) else (0, 1)
    ticks = [
        (place, text) for place, text in _ticks(fmt) if low - (high - low) / 50 <= place <= high + (high - low) / 50
    ]
    axes.set_xticks([place for place, _ in ticks], [text for _, text in ticks], rotation=60, fontsize=8)
    axes.set_ylim(0, top)
    axes.set_xlabel(f"input, {fmt.name} (each binade has the same width)")
    axes.set_ylabel("|got - exact| / ulp(exact)")
    reached = record["max_fractional_error"]
    axes.set_title(
        f"{record['signature']} on {record['backend']}: {record['inputs']:,} inputs, "
        + (f"error up to {reached} ulp" if reached is not None else f"distance up to {record['max_distance']}")
    )
    axes.legend(loc="upper right", fontsize=8)
    canvas = FigureCanvasSVG if path.suffix.lower() == ".svg" else FigureCanvasAgg
    assert math.isfinite(top)
    canvas(figure).print_figure(str(path), dpi=130)
