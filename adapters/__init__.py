"""What stands between the suite and a backend on trial.

The protocol, the ways in (a Python class, an eager library, any program over a pipe), discovery, and the function
that tests an adapter against its own contract.
"""

from halfulp.adapters.check import assert_adapter, check_adapter
from halfulp.adapters.discovery import AdapterError, available, load
from halfulp.adapters.eager import EagerAdapter
from halfulp.adapters.protocol import (
    Adapter,
    Compiled,
    Facts,
    Options,
    Rejected,
    Unsupported,
    UnsupportedError,
)

__all__ = [
    "Adapter",
    "AdapterError",
    "Compiled",
    "EagerAdapter",
    "Facts",
    "Options",
    "Rejected",
    "Unsupported",
    "UnsupportedError",
    "assert_adapter",
    "available",
    "check_adapter",
    "load",
]
