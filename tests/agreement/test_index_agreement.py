"""Every index gives the reference's answers.

Subscriptions in all languages are generated, publications are generated and real, and each pair is compared.
TRIPLEWIRE_TEST_PAIRS scales it (3,000, the default, is a twentieth of a million pairs here, in 30 engines or more of
120 subscriptions), TRIPLEWIRE_TEST_SEED gives other ones. A case that differs is made small before it is shown.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from agreement.compared import WAYS, Tally, Way, compare
from agreement.graphs import real_publications, vocabulary_of
from agreement.publications import TAXONOMY, Scene, operators
from agreement.queries import Vocabulary
from agreement.standing import CLASSES, LANGUAGES, Standing, standing
from amounts import COMPARED, usually
from triplewire import plugins
from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World
from triplewire.model.publication import Publication
from triplewire.model.terms import RDF_TYPE

SCALE = COMPARED / 20_000
SEED = int(os.environ.get("TRIPLEWIRE_TEST_SEED") or 1)

SUBSCRIPTIONS, PUBLICATIONS = 120, 20  # of one engine: another engine tries more than another publication of the same
PAIRS = {"sparql": 120_000, "gql": 85_000, "rdql": 14_000, "mdv": 68_000, "predicates": 14_000, "keywords": 14_000}
REAL_PAIRS = 54_000
PARTS = usually(1, 2)  # so that two workers share what `make full` tries

OTHERS = [name for name in plugins.names("matcher") if name not in ("reference", "trie")]
OTHER_PAIRS = 10_000  # of each index beside "trie"


def world(chance: random.Random) -> World:
    """Limits that are often passed, and others that seldom are."""
    settings = Settings(
        max_bindings=chance.choice((1, 2, 3, 10, 50, 50)),
        max_branches=chance.choice((4, 64, 64)),
        max_steps=chance.choice((100, 20_000, 20_000, 20_000, 20_000)),
        max_binding_bytes=chance.choice((50, 1_000, 2**26, 2**26, 2**26)),
        merge_subscriptions=chance.choice((16, 1_024)),
    )
    return World(TAXONOMY, operators(), settings)


def way(number: int, part: int) -> Way:
    """Of an engine of a part: the parts begin with other ways, so that together they try all, however few engines each
    has."""
    return WAYS[(number + part * len(WAYS) // PARTS) % len(WAYS)]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("language", LANGUAGES)
def test_generated_publications(language: str, part: int) -> None:
    chance = random.Random(f"{SEED} {language} {part}")
    wanted, tally, number = PAIRS[language] * SCALE / PARTS, Tally(), 0
    while tally.pairs < wanted or number < len(WAYS) // PARTS:
        scene, here = Scene(chance), world(chance)
        some = [standing(chance, language, scene.vocabulary) for _ in range(SUBSCRIPTIONS)]
        publications = [scene.publication(place) for place in range(PUBLICATIONS)]
        compare(some, publications, here, way(number, part), tally)
        number += 1
    assert tally.compiled > 0.8 * number * SUBSCRIPTIONS  # others have constants that an operator does not take
    assert tally.matches > 0.01 * tally.pairs
    assert tally.truncated > 0 or language not in ("sparql", "gql")
    assert tally.limited + tally.refused < 0.05 * tally.pairs
    assert tally.known >= 0.5 * tally.asked


def test_all_languages_together() -> None:
    """Subscriptions of all languages in one engine: what they share is tested once for all."""
    chance = random.Random(f"{SEED} together")
    tally, number = Tally(), 0
    while tally.pairs < 14_000 * SCALE or number < len(WAYS):
        scene, here = Scene(chance), world(chance)
        some = [standing(chance, chance.choice(LANGUAGES), scene.vocabulary) for _ in range(SUBSCRIPTIONS)]
        publications = [scene.publication(place) for place in range(PUBLICATIONS)]
        compare(some, publications, here, WAYS[number % len(WAYS)], tally)
        number += 1
    assert set(tally.by_language) == set(LANGUAGES)


@pytest.mark.parametrize("matcher", OTHERS)
def test_other_indexes(matcher: str) -> None:
    """Subscriptions of all languages, in smaller engines, in each way."""
    chance = random.Random(f"{SEED} {matcher}")
    tally, number = Tally(), 0
    while tally.pairs < OTHER_PAIRS * SCALE or number < len(WAYS):
        scene, here = Scene(chance), world(chance)
        some = [standing(chance, chance.choice(LANGUAGES), scene.vocabulary) for _ in range(SUBSCRIPTIONS)]
        publications = [scene.publication(place) for place in range(PUBLICATIONS // 2)]
        compare(some, publications, here, Way(WAYS[number % len(WAYS)].feed, matcher), tally)
        number += 1
    assert set(tally.by_language) == set(LANGUAGES)
    assert tally.matches > 0.01 * tally.pairs


@pytest.mark.parametrize("part", range(PARTS))
def test_real_publications(part: int) -> None:
    """Subscriptions made of the terms of some of the publications."""
    chance = random.Random(f"{SEED} real {part}")
    whole = [replace(one, id=one.id.strip("<>")) for one in real_publications(150)]
    tally, number = Tally(), 0
    while tally.pairs < REAL_PAIRS * SCALE / PARTS:
        publications = chance.sample(whole, PUBLICATIONS)
        some = [
            made_of(chance.choice(publications), language, chance)
            for language in ("sparql", "gql", "mdv")
            for _ in range(SUBSCRIPTIONS // 3)
        ]
        compare(some, publications, world(chance), way(number, part), tally)
        number += 1
    assert tally.matches > 0.005 * tally.pairs
    assert set(tally.by_language) == {"sparql", "gql", "mdv"}


def made_of(publication: Publication, language: str, chance: random.Random) -> Standing:
    """A subscription made of the terms of a publication."""
    vocabulary = vocabulary_of(publication, chance)
    classes = [str(triple.object) for triple in publication.triples if triple.predicate == RDF_TYPE] or CLASSES
    if language == "mdv":
        rest = tuple(one for one in vocabulary.predicates if one != str(RDF_TYPE)) or vocabulary.predicates
        vocabulary = Vocabulary(rest, vocabulary.nodes, vocabulary.literals)
    return standing(chance, language, vocabulary, classes=classes, rich=0.15)
