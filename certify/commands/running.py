"""What the subcommands that run something on a backend share."""

from __future__ import annotations

import argparse

from halfulp.adapters.discovery import AdapterError, load
from halfulp.adapters.protocol import Adapter
from halfulp.certify.commands.common import CommandError


def adapter_named(spec: str) -> Adapter:
    """The backend of ``--backend SPEC``.

    Raises:
        CommandError: there is none, or it cannot be used.
    """
    try:
        return load(spec)
    except AdapterError as error:
        raise CommandError(f"--backend {spec}: {error}") from None


def level_of(adapter: Adapter, level: int) -> int:
    """A level that the backend has: the one asked for, else the highest, which is said."""
    if level in adapter.opt_levels:
        return level
    print(f"the backend has no level O{level}; this is O{max(adapter.opt_levels)}")
    return max(adapter.opt_levels)


def seed(text: str) -> int:
    """A seed on the command line."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no seed; give a number, 0 or more")
    return int(text)


def count(text: str) -> int:
    """A number of instances on the command line."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of instances; give 1 or more")
    return int(text)
