"""The publications of the RTF workload (RTF paper, section 4), generated with the means of a real mixture.

5,000 of them have 13.3 triples and 58.2 words on average (median 45, and two encyclopedia articles with 10,656 and
9,441 words), 475 classes, 436 properties and about 38,790 distinct words. Three in four describe an entity: an
abstract, its classes and a few properties. The others are documents of several subjects: labels in many languages and
the provenance of the record. The queries: `rtf_queries`.
"""

from __future__ import annotations

import random as plain_random
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import TypeVar

import numpy as np

from triplewire.bench.workloads.corpus import TYPE, Document, Statement
from triplewire.bench.workloads.vocabulary import ZipfDraws, iri, name, word

T = TypeVar("T")

ENTITY_SHARE = 0.728
ENTITY_KINDS, DOCUMENT_KINDS = 14, 5
CLASSES, PROPERTIES = 475, 436
ARTICLES = {1_249: 10_656, 3_749: 9_441}
"""The two encyclopedia articles of each 5,000 publications: position -> number of words."""
PERIOD = 5_000

_ENTITY_PROPERTIES = 395
_LANGUAGES = ("en", "de", "fr", "es", "it", "pl", "el", "ru", "nl", "pt-BR", "bg", "sr")
_RECORD = {role: iri("record", role) for role in (
    "label", "altLabel", "inScheme", "changeNote", "definition", "exactMatch", "closeMatch", "topic", "wasGeneratedBy",
    "wasAssociatedWith", "atTime", "activityType", "description", "title",
)}  # fmt: skip
_RECORD_CLASSES = {role: iri("record", role) for role in (
    "Statement", "Concept", "Activity", "Create", "Modify", "Replace",
)}  # fmt: skip
ABSTRACT = iri("ontology", "abstract")
_DATETIME = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
_YEAR = "^^<http://www.w3.org/2001/XMLSchema#gYear>"


class _Texts:
    """Draws texts of words by Zipf's law."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._ranks = ZipfDraws(76_000, 1.05, 2.0)
        self._cache: dict[int, str] = {}
        self._ready: list[int] = []

    def take(self, count: int) -> str:
        """A text of so many words, with a capital letter and stops."""
        while len(self._ready) < count:
            self._ready += self._ranks.draw(self._random, 100_000).tolist()
        ranks, self._ready[-count:] = self._ready[-count:], []
        words = [self._cache.get(rank) or self._cache.setdefault(rank, word(rank)) for rank in ranks]
        text = " ".join(f"{w}." if at % 17 == 16 else w for at, w in enumerate(words))
        return text[:1].upper() + text[1:]


class _Publications:
    """Draws publications."""

    def __init__(self, seed: int) -> None:
        self._dice = plain_random.Random(seed)
        self._texts = _Texts(np.random.default_rng(seed))
        numbers = iter(range(CLASSES))
        self._kind_class = [iri("ontology", name(n)) for n in islice(numbers, ENTITY_KINDS + DOCUMENT_KINDS)]
        self._generic_class = [iri("ontology", name(n)) for n in islice(numbers, 7)]
        self._sub_class = [iri("class/yago", name(n)) for n in islice(numbers, CLASSES - 19 - 7 - len(_RECORD_CLASSES))]
        names = [iri("ontology", word(300 + n) + str(n)) for n in range(PROPERTIES - 2 - len(_RECORD))]
        self._entity_property = names[:_ENTITY_PROPERTIES]
        self._record_property = names[_ENTITY_PROPERTIES:]

    def publication(self, number: int) -> Document:
        """The publication of this number."""
        subject = iri("entity", f"e{number}")
        statements: dict[Statement, None] = {}
        article = ARTICLES.get(number % PERIOD, 0)
        if article or self._dice.random() < ENTITY_SHARE:
            self._entity(statements, subject, article)
        else:
            self._document(statements, subject)
        return subject, list(statements)

    def _entity(self, out: dict[Statement, None], subject: str, article: int) -> None:
        dice, kind = self._dice, self._dice.randrange(ENTITY_KINDS)
        length = article or max(3, round(dice.lognormvariate(3.86, 0.585)))
        out[subject, ABSTRACT, f'"{self._texts.take(length)}"@en'] = None
        out[subject, TYPE, self._kind_class[kind]] = None
        if dice.random() < 0.9:
            out[subject, TYPE, self._generic_class[kind % len(self._generic_class)]] = None
        for _ in range(_geometric(dice, 0.7)):
            out[subject, TYPE, _pick(dice, self._sub_class[kind::ENTITY_KINDS], 0.6)] = None
        for _ in range(1 + _geometric(dice, 0.49)):
            place = _pick(dice, range(kind, len(self._entity_property), ENTITY_KINDS), 1.3)
            out[subject, self._entity_property[place], self._object(place)] = None

    def _object(self, place: int) -> str:
        """An object of the property at this place: mostly things, some years, some names."""
        dice, form = self._dice, place % 8
        number = _skewed(dice, 3_000, 1.4)
        if form == 6:
            return f'"{1_700 + number % 320}"{_YEAR}'
        if form == 7:
            return f'"{word(900 + number).title()} {word(500 + place).title()}"'
        return iri("resource", f"{name(number * 7 + place % 7)}")

    def _document(self, out: dict[Statement, None], subject: str) -> None:
        dice, kind, text = self._dice, self._dice.randrange(DOCUMENT_KINDS), self._texts.take
        out[subject, TYPE, self._kind_class[ENTITY_KINDS + kind]] = None
        out[subject, TYPE, _RECORD_CLASSES["Concept"]] = None
        # most have a few labels, some have one in every language
        labels = dice.randint(10, 110) if dice.random() < 0.09 else 1 + _geometric(dice, 0.33)
        for at in range(labels):
            role = "altLabel" if at % 9 == 8 else "label"
            language = _LANGUAGES[at % len(_LANGUAGES)]
            out[subject, _RECORD[role], f'"{text(dice.randint(1, 3))}"@{language}'] = None
        out[subject, _RECORD["inScheme"], iri("resource", f"scheme_{kind}")] = None
        if dice.random() < 0.6:
            out[subject, _RECORD["definition"], f'"{text(8 + _geometric(dice, 0.041))}"@en'] = None
        for role in ("exactMatch", "closeMatch"):
            for _ in range(_geometric(dice, 0.58)):
                out[subject, _RECORD[role], iri("resource", f"match_{dice.randrange(20_000)}")] = None
        for _ in range(_geometric(dice, 0.17)):
            place = _skewed(dice, len(self._record_property), 0.8)
            out[subject, self._record_property[place], self._object(place)] = None
        self._provenance(out, subject)

    def _provenance(self, out: dict[Statement, None], subject: str) -> None:
        dice, statement = self._dice, f"{subject[:-1]}#provenance>"
        out[subject, _RECORD["changeNote"], statement] = None
        out[statement, TYPE, _RECORD_CLASSES["Statement"]] = None
        out[statement, _RECORD["topic"], subject] = None
        for at in range(1 + _geometric(dice, 0.5)):
            activity = f"_:a{at}"
            out[statement, _RECORD["wasGeneratedBy"], activity] = None
            out[activity, TYPE, _RECORD_CLASSES["Activity"]] = None
            kind = "Create" if at == 0 else dice.choice(("Modify", "Replace"))
            out[activity, TYPE, _RECORD_CLASSES[kind]] = None
            day = f"{dice.randint(2012, 2024)}-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"
            out[activity, _RECORD["atTime"], f'"{day}T{dice.randrange(24):02d}:00:00Z"{_DATETIME}'] = None
            out[activity, _RECORD["wasAssociatedWith"], iri("resource", f"editor_{_skewed(dice, 20, 2)}")] = None
            out[activity, _RECORD["activityType"], dice.choice(('"manual"', '"spreadsheet"'))] = None
            if at:
                out[activity, _RECORD["description"], f'"{self._texts.take(dice.randint(3, 9))}"@en'] = None


def publications(number: int, seed: int = 4) -> list[Document]:
    """So many publications; the same for the same seed, and the first ones do not depend on the number."""
    source = _Publications(seed)
    return [source.publication(place) for place in range(number)]


def documents(seed: int = 4) -> Iterator[Document]:
    """The publications that describe several subjects, without an end."""
    source = _Publications(seed)
    for number in count():
        document = source.publication(number)
        if len({subject for subject, _, _ in document[1]}) > 1:
            yield document


def _geometric(dice: plain_random.Random, stop: float) -> int:
    """How many failures before the first success; (1 - stop) / stop on average."""
    failures = 0
    while dice.random() >= stop:
        failures += 1
    return failures


def _pick(dice: plain_random.Random, items: Sequence[T], power: float) -> T:
    """One of the items, the first ones more often."""
    return items[_skewed(dice, len(items), power)]


def _skewed(dice: plain_random.Random, size: int, power: float) -> int:
    """A number below `size`, small ones more often."""
    return min(int(size * dice.random() ** (power + 1)), size - 1)
