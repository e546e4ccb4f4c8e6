"""`ftsim`: the cosine of tf-idf, over frequencies that a file holds."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from triplewire import Engine, Publication, plugins
from triplewire.errors import LanguageError
from triplewire.operators import built_in_operators
from triplewire.operators.families.similarity import MOST_WORDS, frequencies, ftsim, learn
from triplewire.read import read_document

TEXTS = (
    "The puffins are back on the island",
    "The island ferry is late",
    "The lighthouse keeper counts puffins, and puffins only",
    "Nothing of that kind",
)


def publications() -> list[Publication]:
    return [
        read_document(f'<http://e/{number}> <http://purl.org/rss/1.0/title> "{text}" .'.encode(), f"http://e/{number}")[
            0
        ]
        for number, text in enumerate(TEXTS)
    ]


def query(words: str, threshold: float) -> str:
    return f'SELECT ?t {{ ?s rss:title ?t FILTER ftsim(?t, "{words}", {threshold}) }}'


@pytest.fixture
def learned(tmp_path: Path) -> Path:
    learn(publications(), tmp_path / "learned.tsv")
    return tmp_path / "learned.tsv"


# cosine of ("puffins island") with the texts: 4 texts; "puffins" and "island" are in 2 of them, "the" in 3
RARE, COMMON, ONCE = math.log(5 / 3) + 1, math.log(5 / 4) + 1, math.log(5 / 2) + 1
FIRST = 2 * RARE**2 / (math.sqrt(2) * RARE * math.sqrt(2 * RARE**2 + (2 * COMMON) ** 2 + 3 * ONCE**2))


@pytest.mark.parametrize(
    ("words", "threshold", "matched"),
    [
        ("puffins island", round(FIRST, 12), [0]),
        ("puffins island", 0.2, [0, 1, 2]),
        ("PUFFINS", 0.5, [2]),
        ("nothing of that kind", 1, [3]),
        ("walrus", 0.01, []),
    ],
)
@pytest.mark.parametrize("matcher", plugins.names("matcher"))
def test_similar_texts(matcher: str, words: str, threshold: float, matched: list[int], learned: Path) -> None:
    asked = publications()
    for chunk in (1, len(asked)):  # neither the size of a batch nor the order decides
        engine = Engine(matcher=matcher, operators={**built_in_operators(), "ftsim": ftsim(learned)})
        engine.subscribe(query(words, threshold), id="s")
        random.Random(chunk).shuffle(asked)
        parts = [asked[at : at + chunk] for at in range(0, len(asked), chunk)]
        found = [match.publication for part in parts for match in engine.match(part)]
        assert sorted(found) == [f"http://e/{number}" for number in matched]


def test_in_other_languages(learned: Path) -> None:
    engine = Engine(operators={**built_in_operators(), "ftsim": ftsim(learned)})
    engine.subscribe('SELECT ?t WHERE (?s, title, ?t) SUCHTHAT (op:ftsim(?t, "puffins", 0.5))', "gql", id="gql")
    engine.subscribe('ftsim("puffins and puffins", puffins, 0.8)', "predicates", id="constant")
    found = {(match.subscription, match.publication) for match in engine.match(publications())}
    everywhere = {("constant", f"http://e/{number}") for number in range(len(TEXTS))}
    assert found == {("gql", "http://e/2"), *everywhere}


def test_without_frequencies_all_words_weigh_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIPLEWIRE_FREQUENCIES", raising=False)
    engine = Engine()
    engine.subscribe(query("nothing of this kind", 0.75), id="s")
    assert [match.publication for match in engine.match(publications())] == ["http://e/3"]


def test_the_file_may_be_named_by_a_variable(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPLEWIRE_FREQUENCIES", str(learned))
    engine = Engine()
    engine.subscribe(query("puffins island", round(FIRST, 12)), id="s")
    assert [match.publication for match in engine.match(publications())] == ["http://e/0"]


def test_what_was_learned_is_read_again(learned: Path, tmp_path: Path) -> None:
    assert frequencies(str(learned)) == learn(reversed(publications()), tmp_path / "other.tsv")
    assert learned.read_bytes() == (tmp_path / "other.tsv").read_bytes()


@pytest.mark.parametrize(
    ("words", "threshold", "why"),
    [
        ("puffins", 0, "threshold is 0"),
        ("puffins", 1.5, "threshold is 1.5, but goes from 0 to 1"),
        ("...", 0.5, "words has 0 words"),
        ("a " * 1001, 0.5, "words has 1001 words"),
    ],
)
def test_wrong_constants_are_refused(words: str, threshold: float, why: str) -> None:
    with pytest.raises(LanguageError, match=why):
        Engine().subscribe(query(words, threshold), id="s")


@pytest.mark.parametrize("content", ["", "word\t1\n", "\t1\nword\t2\n", "\tone\n", "\t1\t2\n"])
def test_a_file_that_is_none_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(content)
    engine = Engine(operators={"ftsim": ftsim(tmp_path / "bad.tsv")})
    with pytest.raises(LanguageError, match="cannot be read"):
        engine.subscribe(query("puffins", 0.5), id="s")


def test_a_very_long_text_is_undecided() -> None:
    engine = Engine()
    engine.subscribe(query("puffins", 0.5), id="s")
    document = f'<http://e/> <http://purl.org/rss/1.0/title> "{"w " * (MOST_WORDS + 1)}" .'
    result = engine.match(read_document(document.encode(), "http://e/"))
    assert list(result) == []
    assert "more than 200000 words" in str(list(result.refusals))
