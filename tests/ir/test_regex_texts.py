"""Texts that no match of a regular expression is without.

The cases are data, and no match of a generated pattern is without one.
"""

from __future__ import annotations

import random
import tomllib
from typing import Any

import pytest

from amounts import usually
from shared_data import ROOT
from triplewire.ir.values.regex_syntax import RegexError
from triplewire.ir.values.regexes import compile_regex, needed_texts

CASES = tomllib.loads((ROOT / "tests/cases/evaluate/regex-texts.toml").read_text("utf-8"))["case"]
PIECES = [
    *"aabbkKsS  .^$()|[]?*+{},-",
    *("ab", "ba", "(a", "b)", "(?:", "(?i)", "(?P<n>", "a|b", "{0}", "{1,2}", "{2}", "{0,1}?", "+?", "a{,2}", "[^a]"),
    *("[a-b]", "[]a]", "[^]b]", r"[\]a]", "[[a]", r"\d", r"\w", r"\s", r"\S", r"\p{L}", r"\pL", r"\n", r"\.", r"\\"),
    *(r"\b", r"\x61", r"\x{62}", r"\Qa", r"\E", r"\A", r"\z", r"\C", r"\141", r"\-", r"\_", r"\ ", "é", "ß", "ſ", "K"),
]
LETTERS = "aabbkKsS .-_1\n\\ABéßſK"


@pytest.mark.parametrize("case", CASES, ids=[case["pattern"] + case.get("flags", "") for case in CASES])
def test_a_pattern(case: dict[str, Any]) -> None:
    assert list(needed_texts(case["pattern"], case.get("flags", ""))) == case["texts"]


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["", "i", "s", "im"])
def test_no_match_is_without_them(flags: str) -> None:
    """A text that has none of them is no match: those that are random, and those of a match without one."""
    rng, told = random.Random(flags), 0
    for _ in range(usually(4_000, 20_000)):
        pattern = "".join(rng.choices(PIECES, k=rng.randrange(1, 8)))
        texts = needed_texts(pattern, flags)
        if not texts:
            continue
        try:
            regex = compile_regex(pattern, flags, 1_000).program
        except RegexError:
            continue
        told += 1
        needed = [compile_regex(text, "iq" if "i" in flags else "q", 1_000).program for text in texts]
        for _ in range(30):
            text = "".join(rng.choices(LETTERS, k=rng.randrange(8)))
            text = text.replace("a", rng.choice(texts), 1) if rng.random() < 0.3 else text
            if not any(program.search(text) for program in needed):
                assert regex.search(text) is None, (pattern, flags, text, texts)
    assert told > 100
