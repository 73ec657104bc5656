"""The folder in which the suite keeps what it can make again: tables, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "HALFULP_CACHE"
"""The environment variable that names the folder."""


def folder() -> Path:
    """``$HALFULP_CACHE``, else ``halfulp`` in the user's cache folder. It need not exist, and may be deleted."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "halfulp"
