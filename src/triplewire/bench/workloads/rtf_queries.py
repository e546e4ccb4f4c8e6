"""The queries of the RTF workload: at most 4 tuples, a share of them with at most 3 words each (RTF paper, section 4).

Half are grown from a publication, half are drawn from classes, properties and (property, object) pairs, each equally
often. Words come half from the literal itself, half from all words of all texts. Everything is drawn in columns, so
that ten million rows take seconds. The publications: `rtf`; how the rows are written: `pieces`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from triplewire.bench.workloads.corpus import TYPE, Corpus
from triplewire.bench.workloads.pieces import CHUNK, Pieces, Rows, SubscriptionRows, quoted, write_rows
from triplewire.bench.workloads.vocabulary import iri

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
