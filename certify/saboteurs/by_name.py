"""What ``--backend=saboteur:NAME`` makes."""

from __future__ import annotations

import difflib

from halfulp.adapters.discovery import AdapterError
from halfulp.adapters.protocol import Adapter
from halfulp.certify.saboteurs.atomics import LITMUS_SUSPECTS
from halfulp.certify.saboteurs.values import Saboteur
from halfulp.oracle.suspects import SUSPECTS


def saboteur(name: str = "") -> Adapter:
    """The backend with one suspect built in, be it of values, of typing or of atomics.

    Raises:
        AdapterError: there is no such suspect.
    """
    if name in SUSPECTS:
        return Saboteur(name)
    if name in LITMUS_SUSPECTS:
        return LITMUS_SUSPECTS[name].make()
    close = difflib.get_close_matches(name, (*SUSPECTS, *LITMUS_SUSPECTS), n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    said = f"unknown suspect {name!r}{hint}" if name else "no suspect is named; write saboteur:NAME"
    raise AdapterError(f"{said} (docs/spec/detection.md lists all of them)")
