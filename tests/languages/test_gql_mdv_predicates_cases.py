"""What becomes of texts of GQL, MDV rules, operator predicates and keywords: tests/cases/{gql,mdv,predicates,keywords}.

What the cases assume (prefixes, base, operators, other rules): `outcomes`.
"""

from __future__ import annotations

import pytest
from case_files import Case, read_cases
from outcomes import outcome

from shared_data import ROOT

LANGUAGES = ("gql", "rdql", "mdv", "predicates", "keywords")
CASES = [
    pytest.param(path.parent.name, path.stem, case, id=f"{path.parent.name}: {case}")
    for language in LANGUAGES
    for path in sorted((ROOT / "tests" / "cases" / language).glob("*.txt"))
    for case in read_cases(f"{language}/{path.name}")
]


@pytest.mark.parametrize(("language", "file", "case"), CASES)
def test_text(language: str, file: str, case: Case) -> None:
    assert outcome(case.text, language, file) == case.outcome


def test_each_language_has_accepted_and_refused_texts() -> None:
    counted = {(case.values[0], case.values[2].outcome[:2]) for case in CASES}
    assert counted == {(language, mark) for language in LANGUAGES for mark in ("=>", "=!")}
