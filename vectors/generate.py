"""Writing a set of vector files: all of it or nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from halfulp.vectors import bulk, flat, sources
from halfulp.vectors.catalogue import files, matching
from halfulp.vectors.files import Content, Settings, VectorFileError, cases_of, read, staged, text_of

Progress = Callable[[int, int, str], None]
"""Called with the number of files done, of all, and the name of the next one."""

IDS, SUMS = "ids.txt", "SHA256SUMS"
ENDINGS = {"json": ".json", "flat": ".txt", "npz": ".npz"}


@dataclass(frozen=True)
class Written:
    """What has been written.

    Attributes:
        files, cases, size: how many of each, and bytes.
        left_out: names of files that have no such form.
    """

    files: int
    cases: int
    size: int
    left_out: tuple[str, ...]


def encoded(data: Content, form: str) -> bytes | None:
    """A file in a form: ``json``, ``flat`` or ``npz``; None where it has no such form."""
    if form == "json":
        return text_of(data).encode("ascii")
    try:
        return flat.text_of(data).encode("ascii") if form == "flat" else bulk.bytes_of(data)
    except KeyError:
        return None


def generate(
    out: Path,
    globs: Iterable[str] = (),
    settings: Settings | None = None,
    form: str = "json",
    progress: Progress | None = None,
) -> Written:
    """Write the files that match, with their ids and digests, into a folder.

    Raises:
        VectorFileError: nothing matches, an id would vanish or occur twice, or a suspect stays alive. Nothing has been
            written then.
    """
    settings = settings or Settings()
    globs = list(globs)
    names = matching(globs, files())
    ids: dict[str, list[str]] = {}
    size, left_out = 0, []
    # Only the small set in JSON is append-only: it is what others build upon.
    is_kept = form == "json" and settings == Settings()
    with staged(out) as place:
        for done, name in enumerate(names):
            if progress is not None:
                progress(done, len(names), name)
            data = files()[name](settings)
            raw = encoded(data, form)
            if raw is None:
                left_out.append(name)
                continue
            ids[name] = sorted(case["id"] for case in cases_of(data))
            target = place / f"{name}{ENDINGS[form]}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(raw)
            size += len(raw)
        if not ids:
            raise VectorFileError(f"none of {', '.join(names)} has the form {form!r}; JSON is the form that all have")
        known = read_ids(out / IDS) if is_kept else {}
        refuse_repeated(ids)
        refuse_lost(known, ids, complete=not globs)
        if is_kept:
            (place / IDS).write_bytes(ids_text(known | ids).encode("ascii"))
        (place / SUMS).write_bytes(_sums(out, place).encode("ascii"))
    return Written(len(ids), sum(map(len, ids.values())), size, tuple(left_out))


# Ids.


def ids_text(ids: Mapping[str, Iterable[str]]) -> str:
    """A line for each file: its name and its ids, ascending."""
    return "".join(f"{name} {' '.join(sorted(ids[name]))}\n" for name in sorted(ids))


def read_ids(path: Path) -> dict[str, list[str]]:
    """The ids of each file; empty where there is no list."""
    if not path.exists():
        return {}
    rows = (line.split() for line in path.read_text(encoding="ascii").splitlines())
    return {name: ids for name, *ids in rows}


def refuse_repeated(ids: Mapping[str, Iterable[str]]) -> None:
    """An id names one case."""
    first: dict[str, str] = {}
    for name, some in ids.items():
        for one in some:
            if one in first:
                raise VectorFileError(f"id {one} occurs twice, in {first[one]} and in {name}: two cases ask the same")
            first[one] = name


def refuse_lost(known: Mapping[str, Iterable[str]], ids: Mapping[str, Iterable[str]], *, complete: bool) -> None:
    """Files are append-only."""
    for name in sorted(known):
        if name not in ids:
            if complete:
                raise VectorFileError(f"{name} was in this folder and is no file any more; {IDS} lists it")
            continue
        lost = sorted(set(known[name]) - set(ids[name]))
        if lost:
            raise VectorFileError(
                f"{name}: {len(lost)} cases that {IDS} lists are not among the new ones ({', '.join(lost[:3])}); files "
                "are append-only. `halfulp vectors generate --keep` adds what they ask to vectors/sources/kept.json: "
                "then generate again, and commit that file too"
            )


def keep_lost(out: Path, globs: Iterable[str] = ()) -> int:
    """Add to ``sources/kept.json`` what this generator would no longer ask, of the files that are in a folder.

    Returns:
        how many cases that were. The next run of the generator asks them.
    """
    found = 0
    kept = {name: list(asked) for name, asked in sources.kept().items()}
    for name in matching(globs, files()):
        path = out / f"{name}.json"
        if path.exists():
            fresh = {case["id"] for case in cases_of(files()[name](Settings()))}
            for case in cases_of(read(path)):
                if case["id"] not in fresh:
                    kept.setdefault(name, []).append(sources.asked_by(name, case))
                    found += 1
    if found:
        sources.write_kept(kept)
    return found


# Digests and the archive.


def _listed(folder: Path) -> dict[str, Path]:
    """Vector files below a folder by their path in it."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.suffix in ENDINGS.values() and not name.startswith(".") and "/" in name:
            found[name] = path
    return found


def _sums(out: Path, place: Path) -> str:
    """SHA-256 of every file of the set, those from before too, as ``sha256sum --check`` reads it."""
    paths = _listed(out) | _listed(place)
    lines = [f"{hashlib.sha256(paths[name].read_bytes()).hexdigest()}  {name}\n" for name in sorted(paths)]
    return "".join(lines)


def archive(folder: Path, target: Path) -> str:
    """Pack a set into a ``.tar.gz``; the tar inside is the same on every platform.

    Returns:
        the SHA-256 of that tar. Compressors differ from version to version, so the packed file may not be the same.
    """
    buffer = io.BytesIO()
    paths = _listed(folder) | {name: folder / name for name in (IDS, SUMS) if (folder / name).exists()}
    if not paths:
        raise VectorFileError(
            f"{folder} holds no vector files; write some with `halfulp vectors generate --out {folder}`"
        )
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(paths):
            raw = paths[name].read_bytes()
            entry = tarfile.TarInfo(f"halfulp-vectors/{name}")
            entry.size, entry.mode = len(raw), 0o644
            tar.addfile(entry, io.BytesIO(raw))
    raw = buffer.getvalue()
    partial = target.with_name(f".{target.name}.part")
    partial.write_bytes(gzip.compress(raw, 9, mtime=0))
    os.replace(partial, target)
    return hashlib.sha256(raw).hexdigest()
