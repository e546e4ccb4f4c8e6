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
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.workloads.corpus import (
    CHUNK,
    TYPE,
    Corpus,
    Document,
    Pieces,
    Rows,
    Statement,
    SubscriptionRows,
    ZipfDraws,
    iri,
    name,
    quoted,
    word,
    write_rows,
)

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


# --- rtf queries -----------------------------------------------------------------------------------------------------
# The queries of the RTF workload: at most 4 tuples, a share of them with at most 3 words each (RTF paper, section 4).


TUPLES, WORDS = 4, 3
SIZES = (0.13, 0.26, 0.26, 0.35)  # shares of queries with 1, 2, 3, 4 tuples
KEPT_OBJECT = 0.55  # share of grown tuples that keep their object, unless it is a class
ANY_PREDICATE, ANY_OBJECT, ANY_TEXT_PREDICATE = 0.05, 0.02, 0.13  # shares of tuples with a `*`
REDRAWN, DIVERSE = 4, 0.8  # draws for a tuple with the property of another one, and their probability
CHAINED = 0.01  # share of drawn tuples whose subject is another tuple's object
STRANGERS = 50_000  # objects that no publication has


class RtfQueries:
    """Draws queries over a corpus. `text_share` is the share of them that have words."""

    def __init__(self, corpus: Corpus, text_share: float) -> None:
        self._corpus = corpus
        self._text_share = text_share
        self._pieces = pieces = Pieces()
        self._row = SubscriptionRows(pieces, "sparql", "q", "SELECT * WHERE { ", "}")
        subjects = [f"?p {p} " for p in corpus.predicates]
        self._predicate = pieces.add_all(map(quoted, subjects))
        self._chained = pieces.add_all(quoted(f"?v0 {p} ") for p in corpus.predicates)
        self._any_predicate = pieces.add("?p * ")
        self._object = pieces.add_all(quoted(f"{o} . ") for o in corpus.objects)
        self._variable = pieces.add_all(f"?v{slot} . " for slot in range(TUPLES))
        self._chained_variable = pieces.add("?w . ")
        self._any_object = pieces.add("* . ")
        self._word = pieces.add_all(quoted(f'"{w}"') for w in corpus.words)
        self._filter = pieces.add_all(f"FILTER ftcontains(?v{slot}, " for slot in range(TUPLES))
        self._and, self._close = pieces.add(" ftAND "), pieces.add(") ")
        self._type = self._predicate[corpus.predicates.index(TYPE)]
        self._strangers = pieces.add_all(f"{iri('elsewhere', f's{n}')} . " for n in range(STRANGERS))
        self._classes = corpus.classes
        self._pairs = np.unique(np.stack([corpus.predicate, corpus.object], axis=1)[corpus.is_short], axis=0)
        self._texts_by_star = corpus.star[corpus.text]

    def write(self, path: Path, count: int, seed: int, *, alien: int = 0) -> None:
        """Write `count` queries as JSON Lines, and `alien` further ones of the same form that match no publication."""
        write_rows(path, self._pieces, self._chunks(count, seed, alien))

    def _chunks(self, count: int, seed: int, alien: int) -> Iterator[Rows]:
        random = np.random.default_rng(seed)
        for first in range(0, count, CHUNK):
            size = min(CHUNK, count - first)
            yield self._row.around(self._queries(random, size, alien=False), first)
        for first in range(count, count + alien, CHUNK):
            size = min(CHUNK, count + alien - first)
            yield self._row.around(self._queries(random, size, alien=True), first)

    def _queries(self, random: np.random.Generator, size: int, *, alien: bool) -> Rows:
        """Pieces of queries: for each tuple its subject and predicate, and its object; the filter and its words."""
        grown = random.random(size) < 0.5
        first = self._any_statement(random, size)
        out = np.zeros((size, 2 * TUPLES + 1 + 2 * WORDS), np.int32)
        tuples = random.choice(TUPLES, size, p=SIZES) + 1
        statements = np.empty((size, TUPLES), np.int64)
        for slot in range(TUPLES):
            statement = first
            for _ in range(REDRAWN if slot else 0):
                again = self._like_another(statements[:, :slot], statement) & (random.random(size) < DIVERSE)
                statement = np.where(again, self._of_star(random, self._corpus.star[first]), statement)
            repeated = (statements[:, :slot] == statement[:, None]).any(axis=1) & grown
            statements[:, slot] = statement
            left, right = self._grown(random, statement, slot)
            drawn_left, drawn_right = self._drawn(random, size, slot)
            used = (slot < tuples) & ~repeated
            out[:, 2 * slot] = np.where(used, np.where(grown, left, drawn_left), 0)
            out[:, 2 * slot + 1] = np.where(used, np.where(grown, right, drawn_right), 0)
        if not alien:  # whose first tuple is about to change
            self._chain(random, out, tuples, ~grown)
        self._add_text(random, out, tuples, np.where(grown, first, -1))
        if alien:
            self._estrange(random, out)
        return out

    def _any_statement(self, random: np.random.Generator, size: int) -> NDArray[np.int64]:
        """A statement of a publication: every publication is as likely as the next."""
        offset = self._corpus.publication_offset
        publication = random.integers(0, len(offset) - 1, size)
        return _within(random, offset[publication], offset[publication + 1])

    def _of_star(self, random: np.random.Generator, star: NDArray[np.int32]) -> NDArray[np.int64]:
        return _within(random, self._corpus.star_offset[star], self._corpus.star_offset[star + 1])

    def _like_another(self, others: NDArray[np.int64], statement: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Has a query the same tuple already, or one of the same property that is not rdf:type?"""
        corpus = self._corpus
        same = (corpus.predicate[others] == corpus.predicate[statement][:, None]) & ~corpus.is_type[others]
        return np.asarray((same | (others == statement[:, None])).any(axis=1))

    def _grown(self, random: np.random.Generator, statement: NDArray[np.int64], slot: int) -> tuple[Rows, Rows]:
        corpus, size = self._corpus, len(statement)
        is_constant = corpus.is_type[statement] | (random.random(size) < KEPT_OBJECT)
        is_constant &= corpus.is_short[statement]
        right = np.where(is_constant, self._object[corpus.object[statement]], self._variable[slot])
        left = self._predicate[corpus.predicate[statement]]
        any_left = is_constant & ~corpus.is_type[statement] & (random.random(size) < ANY_PREDICATE)
        any_right = ~is_constant & (random.random(size) < ANY_OBJECT)
        return np.where(any_left, self._any_predicate, left), np.where(any_right, self._any_object, right)

    def _drawn(self, random: np.random.Generator, size: int, slot: int) -> tuple[Rows, Rows]:
        form = random.integers(0, 3, size)
        pair = self._pairs[random.integers(0, len(self._pairs), size)]
        cls = self._object[random.choice(self._classes, size)]
        predicate = self._predicate[random.integers(0, len(self._predicate), size)]
        any_left = random.random(size) < ANY_PREDICATE
        any_right = random.random(size) < ANY_OBJECT
        pair_left = np.where(any_left, self._any_predicate, self._predicate[pair[:, 0]])
        left = np.choose(form, [np.full(size, self._type), predicate, pair_left])
        variable = np.where(any_right, self._any_object, self._variable[slot])
        right = np.choose(form, [cls, variable, self._object[pair[:, 1]]])
        return left.astype(np.int32), right.astype(np.int32)

    def _chain(
        self, random: np.random.Generator, out: Rows, tuples: NDArray[np.int64], drawn: NDArray[np.bool_]
    ) -> None:
        """Let the last tuple of a few queries begin where the first one ends."""
        rows = np.flatnonzero(drawn & (tuples > 1) & (out[:, 1] == self._variable[0]))
        rows = rows[random.random(len(rows)) < CHAINED * TUPLES]
        last = 2 * (tuples[rows] - 1)
        out[rows, last] = self._chained[random.integers(0, len(self._chained), len(rows))]
        out[rows, last + 1] = self._chained_variable

    def _add_text(
        self, random: np.random.Generator, out: Rows, tuples: NDArray[np.int64], star_of: NDArray[np.int64]
    ) -> None:
        """Turn the last tuple of a share of the queries into one that asks for words."""
        corpus = self._corpus
        rows = np.flatnonzero(random.random(len(out)) < self._text_share)
        size, last = len(rows), tuples[rows] - 1
        star = np.where(star_of[rows] >= 0, corpus.star[np.maximum(star_of[rows], 0)], -1)
        begin = np.searchsorted(self._texts_by_star, star)
        end = np.searchsorted(self._texts_by_star, star, side="right")
        own = (star >= 0) & (end > begin)  # the others take any words, and half of them any property
        text = _within(random, np.where(own, begin, 0), np.where(own, end, len(corpus.text)))
        left = self._predicate[corpus.predicate[corpus.text[text]]]
        blind = ~own & (random.random(size) < 0.5)
        left[blind] = random.choice(self._predicate, np.count_nonzero(blind))
        out[rows, 2 * last] = np.where(random.random(size) < ANY_TEXT_PREDICATE, self._any_predicate, left)
        out[rows, 2 * last + 1] = self._variable[last]
        place = 2 * TUPLES
        out[rows, place] = self._filter[last]
        count = random.integers(1, WORDS + 1, size)
        for at in range(WORDS):
            from_text = _within(random, corpus.word_offset[text], corpus.word_offset[text + 1])
            from_all = random.integers(0, len(corpus.word), size)
            chosen = corpus.word[np.where(own & (random.random(size) < 0.5), from_text, from_all)]
            out[rows, place + 1 + 2 * at] = np.where(at < count, self._word[chosen], 0)
            after = np.where(at + 1 < count, self._and, np.where(at + 1 == count, self._close, 0))
            out[rows, place + 2 + 2 * at] = after

    def _estrange(self, random: np.random.Generator, out: Rows) -> None:
        """Give the first tuple an object that no publication has, or the first two classes that never meet."""
        size, two = len(out), (out[:, 2] != 0) & (out[:, 2 * TUPLES] != self._filter[1])
        apart = np.flatnonzero(two & (random.random(size) < 0.5))
        left, right = self._strange_classes(random, len(apart))
        strange = np.ones(size, bool)
        strange[apart] = False
        out[apart, 0] = out[apart, 2] = self._type
        out[apart, 1], out[apart, 3] = self._object[left], self._object[right]
        rows = np.flatnonzero(strange & (out[:, 2 * TUPLES] != self._filter[0]))
        out[rows, 1] = self._strangers[random.integers(0, STRANGERS, len(rows))]
        rows = np.flatnonzero(strange & (out[:, 2 * TUPLES] == self._filter[0]))  # one tuple, and it asks for words:
        out[rows, 2] = self._predicate[random.integers(0, len(self._predicate), len(rows))]  # a second one
        out[rows, 3] = self._strangers[random.integers(0, STRANGERS, len(rows))]

    def _strange_classes(self, random: np.random.Generator, size: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Pairs of classes that no subject has both of."""
        corpus, count = self._corpus, len(self._classes)
        meets = np.zeros((count, count), bool)
        stars = corpus.star[corpus.is_type]
        cls = np.searchsorted(self._classes, corpus.object[corpus.is_type])
        begin = np.searchsorted(stars, np.arange(stars[-1] + 2))
        for at in range(1, int(np.diff(begin).max()) + 1):  # the statement and the one `at` places on, in one star
            same = np.flatnonzero(stars[at:] == stars[:-at])
            meets[cls[same], cls[same + at]] = meets[cls[same + at], cls[same]] = True
        np.fill_diagonal(meets, True)
        left, right = np.nonzero(~meets)
        chosen = random.integers(0, len(left), size)
        return self._classes[left[chosen]], self._classes[right[chosen]]


def _within(random: np.random.Generator, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number of each slice."""
    return begin + (random.random(len(begin)) * (end - begin)).astype(np.int64)
