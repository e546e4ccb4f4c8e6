"""The name that is nearly another: the one that `difflib` finds among all, of which it looks at a few."""

from __future__ import annotations

from difflib import get_close_matches

import pytest

from triplewire.ir import alike
from triplewire.ir.alike import AlikeNames

WORDS = ["title", "titles", "creator", "created", "subject", "date", "größe", "größer", "\ud800", ""]
NAMES = [*WORDS, *(f"http://example.org/classes/Class{number}" for number in range(1_000))]


@pytest.mark.parametrize(
    "text",
    [
        *(word[:number] + word[number + 1 :] for word in WORDS[:8] for number in range(len(word))),
        *(word + "s" for word in WORDS),
        *(f"http://example.org/klasses/Class{number}" for number in (7, 77, 777, 7_777)),
        *("", "zzz", "\U0001f600", "t" * 100_000),
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_it_is_that_of_difflib(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(word: str, names: list[str], n: int, cutoff: float) -> list[str]:
        compared.extend(names)
        return get_close_matches(word, names, n, cutoff)

    monkeypatch.setattr(alike, "get_close_matches", counted)
    expected = next(iter(get_close_matches(text, NAMES, n=1, cutoff=0.8)), "")
    assert AlikeNames(NAMES).nearest(text) == expected
    assert len(compared) <= 16


def test_without_names() -> None:
    assert AlikeNames([]).nearest("title") == ""
