"""Reads case files: texts of a language, each with what it must become.

    -- what the case shows
    SELECT * { ?s ?p ?o }
    => SELECT ?s ?p ?o {?s ?p ?o}

    SELECT * { ?s ?p }
    =! 1:18: found '}', expected ...

A line of `=>` or `=!` (an error) ends a case; a comment starts with `--`. A text may have several lines.
"""

from __future__ import annotations

from typing import NamedTuple

from shared_data import ROOT


class Case(NamedTuple):
    """A text and the line that tells what becomes of it."""

    text: str
    outcome: str

    def __str__(self) -> str:
        return self.text


def read_cases(name: str) -> list[Case]:
    """The cases of a file of `tests/cases`."""
    cases, text = [], []
    for line in (ROOT / "tests" / "cases" / name).read_text(encoding="utf-8").splitlines():
        if line.startswith(("=> ", "=! ")):
            cases.append(Case("\n".join(text), line))
            text = []
        elif not line.startswith("-- ") and (line or text):
            text.append(line)
    assert not text, f"{name}: the last text has no outcome"
    return cases
