"""The golden vectors of halfulp as files; ``halfulp vectors`` finds them here where there is no checkout."""

from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
"""The folder with the set: JSON files by kind, ``SHA256SUMS`` and ``ids.txt``."""
