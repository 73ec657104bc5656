"""Find an adapter by what a user types after ``--backend=``.

Four forms, tried in this order:

* ``pipe:COMMAND``: a program that speaks the pipe protocol; ``COMMAND`` is split as a shell would split it.
* ``NAME``: an entry point of the group ``halfulp.adapters``.
* ``NAME:ARGUMENT``: the same, called with the argument (``saboteur:round_via_f32``).
* ``module:Class``: an attribute of an importable module; the current directory is importable.
"""

from __future__ import annotations

import difflib
import importlib
import os
import shlex
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath
from types import ModuleType
from typing import Any, NamedTuple

from halfulp.adapters.pipe import PipeAdapter, PipeError
from halfulp.adapters.protocol import Adapter

GROUP = "halfulp.adapters"
"""The entry point group in which packages register adapters."""

MEMBERS = ("name", "opt_levels", "facts", "compile")
"""What every adapter has; see `Adapter`."""


class AdapterError(Exception):
    """There is no such adapter, or it cannot be used. The message says what, why, and what to do."""


class Available(NamedTuple):
    """One registered adapter: its name, the object that it names, and ``"ok"`` or why it cannot be loaded."""

    name: str
    where: str
    status: str


def load(spec: str) -> Adapter:
    """The adapter that ``spec`` names, ready for use.

    Raises:
        AdapterError: see there.
    """
    head, colon, rest = spec.partition(":")
    if not head:
        raise AdapterError(f"no adapter is named by {spec!r}; {_forms()}")
    if head == "pipe" and colon:
        return _pipe(rest)
    registered = _registered()
    if head in registered:
        return _from_entry_point(registered[head], rest if colon else None)
    if colon:
        return _from_module(head, rest, registered)
    raise AdapterError(_unknown(spec, registered))


def available() -> list[Available]:
    """Every registered adapter. Loading is tried (it imports the module); no adapter is started."""
    found = []
    for name, entry in sorted(_registered().items()):
        where = entry.value if entry.dist is None else f"{entry.value} ({entry.dist.name} {entry.dist.version})"
        try:
            _load_entry_point(entry)
            found.append(Available(name, where, "ok"))
        except AdapterError as error:
            found.append(Available(name, where, str(error)))
    return found


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _forms() -> str:
    return "an adapter is NAME, NAME:ARGUMENT, module:Class or pipe:COMMAND"


def _unknown(name: str, registered: dict[str, EntryPoint]) -> str:
    if not registered:
        return (
            f"there is no adapter {name!r}: no adapters are registered at all, so halfulp itself is not installed "
            f"(a checkout needs `pip install -e .`); without installation, use module:Class or pipe:COMMAND"
        )
    return (
        f"there is no adapter {name!r}{_did_you_mean(name, registered)}; registered: "
        f"{', '.join(sorted(registered))}; for a class of your own write module:Class, for a program pipe:COMMAND"
    )


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def _pipe(command: str) -> Adapter:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise AdapterError(f"pipe:{command}: the command cannot be split into words: {error}") from error
    if not words:
        raise AdapterError("pipe: names no command; write pipe:COMMAND, for example pipe:./runner --flag")
    try:
        return PipeAdapter(words)
    except PipeError as error:
        raise AdapterError(f"pipe:{command}: {error}") from error


def _load_entry_point(entry: EntryPoint) -> Any:
    module, _, path = entry.value.partition(":")
    source = f"entry point {entry.name!r}"
    return _attribute(_import(module, source), path, source) if path else _import(module, source)


def _from_entry_point(entry: EntryPoint, argument: str | None) -> Adapter:
    return _instance(_load_entry_point(entry), argument, f"adapter {entry.name!r} ({entry.value})")


def _from_module(module: str, path: str, registered: dict[str, EntryPoint]) -> Adapter:
    spec = f"{module}:{path}"
    if not path:
        raise AdapterError(f"{spec!r} names no class after the colon; {_forms()}")
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    if not all(part.isidentifier() for part in module.split(".")):
        raise AdapterError(f"{module!r} is not the name of a module{_as_module(module)}; {_forms()}")
    hint = _as_module(module) or _did_you_mean(module, registered)
    return _instance(_attribute(_import(module, repr(spec), hint), path, repr(spec)), None, repr(spec))


def _as_module(path: str) -> str:
    """What to write instead of the path of a file in Python; empty for anything else."""
    file = PurePath(path)
    if file.suffix != ".py" or not file.stem.isidentifier():
        return ""
    where = "" if file.parent == PurePath() else f", in {file.parent} or with that folder in PYTHONPATH"
    return f" (for a class of that file write {file.stem}:Class{where})"


def _import(name: str, source: str, hint: str = "") -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise AdapterError(
                f"{source}: there is no module {error.name!r}{hint}; modules are looked for in the current "
                f"directory ({os.getcwd()}), PYTHONPATH and the installed packages"
            ) from error
        raise AdapterError(
            f"{source}: module {name!r} was found, but it imports {error.name!r}, which is not installed; "
            f"install that package in this environment ({sys.prefix})"
        ) from error
    except Exception as error:
        raise AdapterError(
            f"{source}: importing {name!r} raised {type(error).__name__}: {error}{_last_line(error)}"
        ) from error


def _last_line(error: Exception) -> str:
    """Where the exception was raised, for a message without a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _attribute(module: ModuleType, path: str, source: str) -> Any:
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            candidates = [name for name, value in vars(found).items() if hasattr(value, "compile")]
            listing = f"; it has {', '.join(sorted(candidates))}" if candidates else "; it has no adapters at all"
            raise AdapterError(f"{source}: {found.__name__} has no {part!r}{_did_you_mean(part, candidates)}{listing}")
        found = getattr(found, part)
    return found


def _instance(found: Any, argument: str | None, what: str) -> Adapter:
    """Call a class or factory; take an instance as it is. Then look whether it is an adapter."""
    adapter = found
    if isinstance(found, type) or (callable(found) and not hasattr(found, "compile")):
        try:
            adapter = found() if argument is None else found(argument)
        except AdapterError:  # its message says it all
            raise
        except Exception as error:
            given = "no argument" if argument is None else f"the argument {argument!r}"
            raise AdapterError(
                f"{what}: calling it with {given} raised {type(error).__name__}: {error}{_last_line(error)}"
            ) from error
    elif argument is not None:
        raise AdapterError(f"{what} takes no argument, but {argument!r} was given")
    missing = [member for member in MEMBERS if not hasattr(adapter, member)]
    if missing:
        raise AdapterError(
            f"{what} is not an adapter: {type(adapter).__name__} has no {', no '.join(missing)}; an adapter has "
            f"{', '.join(MEMBERS)} (see halfulp.adapters.protocol.Adapter)"
        )
    ready: Adapter = adapter
    return ready
