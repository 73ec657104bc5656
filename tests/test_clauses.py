"""The list of clauses: complete, well formed, and honest about what is checked."""

from __future__ import annotations

import re
import string
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from halfulp.oracle.clauses import CHAPTERS, CLAUSES, KINDS, READINGS, canonical_id
from halfulp.oracle.ops import OPERATIONS, signatures
from halfulp.oracle.suspects import SUSPECTS
from halfulp.oracle.typing import rejections

ROOT = Path(__file__).resolve().parent.parent

# Clauses in each section of the text, in its order.
COUNTS = {
    "1": 12,
    "2": 12,
    "3": 16,
    "4": 12,
    "5": 11,
    "5.1": 12,
    "5.2": 15,
    "5.3": 6,
    "5.4": 5,
    "5.5": 5,
    "5.6": 9,
    "6": 22,
    "7": 16,
    "Q": 13,
    "8": 10,
    "9": 8,
    "10": 12,
    "11": 10,
    "12": 7,
    "13": 5,
}


def test_every_clause_of_the_text_is_there() -> None:
    expected = [
        f"intent:{chapter}-{letter}" for chapter, count in COUNTS.items() for letter in string.ascii_lowercase[:count]
    ]
    assert list(CLAUSES) == expected
    assert [chapter.number for chapter in CHAPTERS] == list(COUNTS)


def test_every_reading_is_there() -> None:
    assert list(READINGS) == [f"reading:{number}" for number in range(1, 32)]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.number)
def test_no_line_of_a_chapter_is_lost(chapter: Any) -> None:
    """Every word of the text is in some rule: a mistyped paragraph would vanish silently."""
    words = re.sub(r"^[a-z] [VRIPD]+ ", "", chapter.text, flags=re.MULTILINE).split()
    assert words == [word for clause in chapter.clauses() for word in clause.rule.split()]


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=lambda clause: clause.id)
def test_a_clause_is_well_formed(clause: Any) -> None:
    assert set(clause.kinds) <= set(KINDS)
    assert len(set(clause.kinds)) == len(clause.kinds) > 0
    assert clause.rule.endswith(".")
    assert clause.status == ("planned" if clause.later else "checked")


def test_the_letters_marked_as_checked_exist() -> None:
    for chapter in CHAPTERS:
        letters = {clause.id.rsplit("-", 1)[1] for clause in chapter.clauses()}
        assert set(chapter.checked) <= letters, chapter.number
        assert {letter for letter, _ in chapter.exceptions} <= letters - set(chapter.checked), chapter.number


def test_ids_are_accepted_with_and_without_the_dialect() -> None:
    assert canonical_id("5.2-g") == canonical_id("intent:5.2-g") == "intent:5.2-g"
    assert canonical_id("reading:4") == "reading:4"


@cache
def named() -> set[str]:
    records = {name for sig in signatures() for name in OPERATIONS[sig.op].clauses(sig)}
    return records | {refused.clause for _, refused in rejections()}


def test_records_and_tables_name_clauses_that_exist() -> None:
    assert named() <= {*CLAUSES, *READINGS}


def test_no_record_names_a_planned_clause() -> None:
    assert {name for name in named() if name in CLAUSES and CLAUSES[name].later} == set()


def test_suspects_name_clauses_that_are_checked() -> None:
    for suspect in SUSPECTS.values():
        for name in suspect.clauses:
            assert name in CLAUSES or name in READINGS, suspect.name
            assert name in READINGS or CLAUSES[name].status == "checked", suspect.name


@pytest.mark.parametrize("folder", ["oracle", "properties", "adapters", "backends", "certify", "docs"])
def test_ids_in_sources_and_pages_exist(folder: str) -> None:
    """A typing error in an id would cite a rule that nobody can look up."""
    unknown = {}
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".py", ".md"):
            for name in re.findall(r"(?:intent:[0-9Q.]+-[a-z]\b|reading:\d+)", path.read_text(encoding="utf-8")):
                if name not in CLAUSES and name not in READINGS:
                    unknown[name] = path.name
    assert unknown == {}
