"""Regular expressions: every matcher answers as the reference does.

Few texts are read by RE2, since an index looks for what a match needs.
"""

from __future__ import annotations

import random

import pytest

from triplewire import IRI, Engine, Literal, Publication, Triple

WORDS = ["flood", "storm", "rain", "Rhine", "Main", "river", "harbour", "harbor", "RAIN", "ſtorm", "raın", "10", "x"]
SPARQL = [
    'REGEX(?t, "{a}.*{b}")',
    'REGEX(?t, "{a}|{b}")',
    'REGEX(?t, "^({a}s?|{b}) ")',
    'REGEX(?t, "{a}. {b}", "i")',
    'REGEX(STR(?t), "[{a}]+ {b}$")',
    'REGEX(LCASE(?t), "{a}.")',
    'REGEX(?t, "{a}.") || CONTAINS(?t, "{b}")',
    'REGEX(?t, "{a}+ ", "s") && !REGEX(?t, "{b}.")',
]


def _subscriptions(rng: random.Random, count: int) -> list[tuple[str, str]]:
    conditions = [rng.choice(SPARQL) for _ in range(count)]
    filled = [text.replace("{a}", rng.choice(WORDS)).replace("{b}", rng.choice(WORDS)) for text in conditions]
    return [("sparql", f"SELECT ?s ?t {{ ?s <urn:p> ?t FILTER({text}) }}") for text in filled]


def _publications(rng: random.Random, count: int) -> list[Publication]:
    def text() -> Literal:
        words = " ".join(rng.choices(WORDS, k=rng.randrange(1, 5)))
        return Literal(words, language=rng.choice(("", "en"))) if rng.random() < 0.9 else Literal(words, "urn:t")

    return [
        Publication(
            f"p{number}",
            tuple(
                Triple(IRI(f"urn:s{place}"), IRI("urn:p"), rng.choice((text(), IRI("urn:flood")))) for place in range(6)
            ),
        )
        for number in range(count)
    ]


def _engine(matcher: str, subscriptions: list[tuple[str, str]]) -> Engine:
    engine = Engine(matcher=matcher)
    for number, (language, text) in enumerate(subscriptions):
        engine.subscribe(text, id=f"s{number}", language=language)
    return engine


def _rows(engine: Engine, publications: list[Publication]) -> set[tuple[str, str, str]]:
    return {
        (match.publication, match.subscription, str(sorted(map(str, match.bindings))))
        for match in engine.match(publications)
    }


@pytest.mark.parametrize("seed", range(3))
def test_answers(matcher: str, seed: int) -> None:
    rng = random.Random(seed)
    subscriptions, publications = _subscriptions(rng, 80), _publications(rng, 30)
    expected = _rows(_engine("reference", subscriptions), publications)
    assert len(expected) > 100
    assert _rows(_engine(matcher, subscriptions), publications) == expected


def test_few_texts_are_read() -> None:
    """Of 400 patterns of two words each and 60 texts, some 24,000 pairs: no more than have the longer word."""
    rng = random.Random(1)
    words = [f"{chr(97 + number % 26)}{number}{'z' * (number % 3)}" for number in range(100, 500)]
    texts = [" ".join(rng.choices(words, k=8)) for _ in range(60)]
    patterns = [f"{word}.*{rng.choice(words)}" for word in words]
    engine = _engine(
        "trie", [("sparql", f'SELECT ?s {{ ?s <urn:p> ?t FILTER REGEX(?t, "{text}") }}') for text in patterns]
    )
    publications = [
        Publication(f"p{number}", (Triple(IRI("urn:s"), IRI("urn:p"), Literal(text)),))
        for number, text in enumerate(texts)
    ]
    engine.settle()
    verified = engine.match(publications).stats.verified
    longest = [max(text.split(".*"), key=len) for text in patterns]
    assert 0 < verified <= sum(word in text for word in longest for text in texts) + len(texts)
