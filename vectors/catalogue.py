"""Every vector file by name, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cache, partial

from halfulp.vectors import digests, kernels, litmus, operations, streams, typing
from halfulp.vectors.files import Content, Settings, VectorFileError

Make = Callable[[Settings], Content]


@cache
def files() -> dict[str, Make]:
    """The files in the order of their names, which have a folder and no ending."""
    found: dict[str, Make] = {
        operations.path_of(signature): partial(operations.generate, signature) for signature in operations.offered()
    }
    found |= {program.path: partial(kernels.generate, program) for program in kernels.programs()}
    found |= {name: partial(streams.generate, name) for name in streams.SIGNATURES}
    found |= {name: partial(typing.generate, name) for name in typing.NAMES}
    found |= {name: partial(litmus.generate, name) for name in litmus.names()}
    found |= {name: partial(digests.generate, name) for name in (digests.SHORT, digests.LONG)}
    return dict(sorted(found.items()))


def matching(globs: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names that a pattern matches, whole or by their last part; all of them where there is no pattern.

    Raises:
        VectorFileError: a pattern matches nothing.
    """
    names = list(names)
    patterns = list(globs)
    if not patterns:
        return names
    kept: dict[str, None] = {}
    for pattern in patterns:
        hits = [name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)]
        if not hits:
            raise VectorFileError(
                f"no vector file matches {pattern!r}; names look like casts/cast-f32-bf16, and `halfulp vectors list` "
                "prints them all"
            )
        kept |= dict.fromkeys(hits)
    return [name for name in names if name in kept]
