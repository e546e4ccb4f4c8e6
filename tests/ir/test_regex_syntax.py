"""XPath's regular expressions: what a pattern finds, and which are refused.

The cases are in `tests/cases/evaluate/regex-syntax.toml`.
"""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from shared_data import ROOT
from triplewire.ir.values.regex_syntax import RegexError
from triplewire.ir.values.regexes import compile_regex, matches

CASES = tomllib.loads((ROOT / "tests/cases/evaluate/regex-syntax.toml").read_text("utf-8"))["case"]
LIMIT = 1 << 20


def _named(cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {"argvalues": cases, "ids": [case["pattern"] + case.get("flags", "") for case in cases]}


@pytest.mark.parametrize("case", **_named([case for case in CASES if "refused" not in case]))
def test_a_pattern_of_xpath(case: dict[str, Any]) -> None:
    regex = compile_regex(case["pattern"], case.get("flags", ""), LIMIT)
    texts = [*case.get("finds", ()), *case.get("misses", ())]
    assert [text for text in texts if matches(regex, text, lambda steps: None)] == case.get("finds", [])


@pytest.mark.parametrize("case", **_named([case for case in CASES if "refused" in case]))
def test_a_pattern_of_another_dialect(case: dict[str, Any]) -> None:
    with pytest.raises(RegexError) as caught:
        compile_regex(case["pattern"], case.get("flags", ""), LIMIT)
    assert case["refused"] in str(caught.value)


@pytest.mark.parametrize("pattern", ["[a-" * 10_000, "(" * 10_000, "a{" + "9" * 10_000 + "}", "[a-[" * 2_000])
def test_a_pattern_without_an_end_is_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        compile_regex(pattern, "", LIMIT)
