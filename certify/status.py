"""How a command ends: its exit status, or the error that says why it cannot be run."""

from __future__ import annotations

OK, FOUND, MALFORMED = 0, 1, 2
"""Exit statuses: nothing wrong; something forbidden; the command or its input makes no sense."""


class CommandError(Exception):
    """The command cannot do what was asked. The message says what, why and what to do; it is shown without a trace."""
