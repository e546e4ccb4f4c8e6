"""Conjunctions that are hard to join (`cases/joins/shapes.json`), each also in another order and other names.

Answers are those of the reference, also where one binding more or less decides whether a match is truncated.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from triplewire import IRI, Engine, Publication, Settings, Triple
from triplewire.engine.result import MatchResult

SHAPES: dict[str, str] = json.loads((Path(__file__).parents[1] / "cases/joins/shapes.json").read_text())
NODES = [IRI(f"urn:n{number}") for number in range(1, 6)]
PREDICATES = [IRI(f"urn:{name}") for name in "pqr"]
Answers = dict[tuple[str, str], tuple[bool, frozenset[object]]]


def _publications(rng: random.Random) -> list[Publication]:
    """From nearly empty to dense; in one of them, predicates are nodes as well."""
    out = []
    for number, triples in enumerate((3, 8, 14, 24, 24)):
        nodes = NODES + PREDICATES if number == 4 else NODES
        drawn = {Triple(rng.choice(nodes), rng.choice(PREDICATES), rng.choice(nodes)) for _ in range(triples)}
        out.append(Publication(f"urn:publication:{number}", tuple(drawn)))
    return out


def _renamed(rng: random.Random, body: str) -> str:
    """The same conjunction in another order, with other names."""
    names = sorted(set(re.findall(r"\?(\w)", body)))
    other = dict(zip(names, rng.sample("ijklmnopuvwz", len(names)), strict=True))
    patterns = [re.sub(r"\?(\w)", lambda found: f"?{other[found[1]]}", pattern) for pattern in body.split(" . ")]
    rng.shuffle(patterns)
    return " . ".join(patterns)


def _answers(matches: MatchResult) -> Answers:
    return {
        (match.publication, match.subscription): (match.truncated, frozenset(map(_row, match.bindings)))
        for match in matches
    }


def _row(binding: object) -> object:
    return frozenset(dict(binding).items())  # type: ignore[call-overload]  # a mapping


@pytest.mark.parametrize("seed", range(3))
def test_hard_conjunctions(seed: int) -> None:
    rng = random.Random(seed)
    publications = _publications(rng)
    texts = {name: f"SELECT * {{ {body} }}" for name, body in SHAPES.items()}
    texts |= {f"{name}, renamed": f"SELECT * {{ {_renamed(rng, body)} }}" for name, body in SHAPES.items()}
    whole = _matched("reference", texts, publications, 100_000)
    assert len(whole) > len(texts)
    assert not any(truncated for truncated, _ in whole.values())
    sizes = {len(bindings) for _, bindings in whole.values()}
    caps = {size + more for size in sorted(sizes)[1::3] for more in (-1, 0, 1)} - {0}
    assert _matched("trie", texts, publications, 100_000) == whole
    for cap in sorted(caps):
        cut = _matched("trie", texts, publications, cap)
        assert cut.keys() == whole.keys()
        for pair, (truncated, bindings) in cut.items():
            assert truncated == (len(whole[pair][1]) > cap), (pair, cap)
            assert len(bindings) == min(cap, len(whole[pair][1])), (pair, cap)
            assert bindings <= whole[pair][1], (pair, cap)


def _matched(matcher: str, texts: dict[str, str], publications: list[Publication], cap: int) -> Answers:
    engine = Engine(matcher=matcher, settings=Settings(max_bindings=cap))
    for name, text in texts.items():
        engine.subscribe(text, id=name)
    matches = engine.match(publications)
    assert not matches.refusals
    return _answers(matches)
