"""How text becomes words. The cases are data: `tests/cases/fulltext/words.toml`."""

from __future__ import annotations

import re
import threading
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import ROOT
from triplewire.bounded_cache import BoundedCache
from triplewire.ir import fulltext as analysis
from triplewire.ir.fulltext import TextWords, analyse, fold_prefix, stemming_language, words_of
from triplewire.ir.nodes import Analyzer

CASES = tomllib.loads((ROOT / "tests/cases/fulltext/words.toml").read_text(encoding="utf-8"))["case"]
UNICODE = Analyzer("unicode")
ANALYZERS = [
    Analyzer(),
    UNICODE,
    Analyzer(stemming="english"),
    Analyzer(ignore_diacritics=True),
    Analyzer("unicode", "german", True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_words(case: dict[str, Any]) -> None:
    options = dict(case.get("analyzer", {}))
    if "stemming" in options:
        options["stemming"] = stemming_language(options["stemming"])
    assert list(analyse(case["text"], Analyzer(**options))) == case["words"]


@pytest.mark.slow
@given(st.text())
def test_the_default_is_the_regular_expression_of_the_contract(text: str) -> None:
    assert analyse(text, Analyzer()) == tuple(re.findall(r"[^\W_]+", text.casefold()))


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=repr)
@given(text=st.text())
def test_any_text_is_cut(analyzer: Analyzer, text: str) -> None:
    """No word is empty or holds white space, case makes no difference, and the index is that of the words."""
    words = analyse(text, analyzer)
    assert all(words)
    assert not any(character.isspace() for word in words for character in word)
    assert analyse(text.casefold(), analyzer) == words
    positions = TextWords(words).positions
    assert sorted((at, word) for word, places in positions.items() for at in places) == list(enumerate(words))


@given(st.lists(st.text("abA", min_size=1), max_size=8), st.text("ab", min_size=1, max_size=2))
def test_words_with_a_prefix(words: list[str], prefix: str) -> None:
    found = list(TextWords(tuple(words)).with_prefix(prefix))
    assert found == sorted({word for word in words if word.startswith(prefix)})


def test_a_prefix_is_folded_and_not_stemmed() -> None:
    assert fold_prefix("Université", Analyzer(stemming="french")) == "université"
    assert fold_prefix("Université", Analyzer(stemming="french", ignore_diacritics=True)) == "universite"
    assert fold_prefix("new Yor", Analyzer()) == "yor"
    assert fold_prefix("--", Analyzer()) == ""


def test_names_of_stemmers() -> None:
    assert stemming_language("en") == stemming_language("English") == stemming_language("EN") == "english"
    with pytest.raises(ValueError, match=r"no stemming for 'tlh'; known: ar, ca, da, de, .*, tr, yi"):
        stemming_language("tlh")
    for code in analysis.STEMMING_LANGUAGES:
        assert analyse("a", Analyzer(stemming=stemming_language(code)))


def test_threads_share_no_stemmer() -> None:
    texts = [f"running{'s' * n} universities nationally organisations {n}" for n in range(300)]
    analyzer = Analyzer(stemming="english")
    wanted = [analyse(text, analyzer) for text in texts]
    wrong: list[str] = []

    def work() -> None:
        wrong.extend(text for text, words in zip(texts, wanted, strict=True) if analyse(text, analyzer) != words)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_cache_is_bounded_by_words_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "CACHED_WORDS", 100)
    monkeypatch.setattr(analysis, "_cache", BoundedCache())
    for number in range(50):
        words_of(f"{number} a b c d e f g h", Analyzer())
        assert analysis._cache.weight <= 100
    assert len(analysis._cache) == 9, "of 9 words, 19 characters"
    for number in range(5):
        words_of(f"{number} " + "x" * 1_000, Analyzer())
        assert analysis._cache.weight <= 100
        assert analysis._cache.weight >= 1_000 // 16, "a long word takes room as well"


def test_words_are_kept() -> None:
    assert words_of("a b", Analyzer()) is words_of("a b", Analyzer())
    assert words_of("Élan", Analyzer()).words != words_of("Élan", Analyzer(ignore_diacritics=True)).words
