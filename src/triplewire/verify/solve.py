"""The join kernel over many pairs of a batch: room for its tables, lazy tests between its passes.

The kernel is `triplewire.kernels.solutions`; what its outcomes mean: `triplewire.verify.columnar`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Bytes, Ids, Offsets
from triplewire.encode.decode import Decoder
from triplewire.ir.evaluate import World
from triplewire.kernels import components as component_kernels
from triplewire.kernels import solutions as kernels
from triplewire.model.publication import Publication
from triplewire.select.features import Features
from triplewire.select.programs import Programs
from triplewire.select.tests import Tests
from triplewire.verify.answers import Answers, LazyTests

_ROOM = 1 << 12  # rows, at first
_SMALL = 64  # triples of a publication that are scanned where the subject is not known; larger ones are sorted


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a publication and some clauses of one subscription, ascending by publication."""

    publication: Ids
    offset: Offsets  # pair -> its slice of `clauses`; one longer than the pairs
    clauses: Ids
    width: Ids  # how many variables are selected; 0 where one solution is enough

    def __len__(self) -> int:
        return len(self.publication)

    def taken(self, some: NDArray[np.int64]) -> Pairs:
        """Some of the pairs."""
        lengths = np.diff(self.offset)[some]
        offset = ends(lengths)
        places = np.arange(offset[-1]) + np.repeat(self.offset[:-1][some] - offset[:-1], lengths)
        return Pairs(self.publication[some], offset, self.clauses[places], self.width[some])


@dataclass(frozen=True, slots=True)
class Solved:
    """Outcome of each pair (MISS, MATCH, MORE, or UNKNOWN + flags); where rows were kept, those of each component.

    A row of `pieces` is (pair, clause, begin in `rows`, number of rows).
    """

    outcome: Bytes
    rows: Ids
    pieces: NDArray[np.int64]


def ends(lengths: NDArray[np.integer[Any]]) -> Offsets:
    """Offsets of slices with these lengths."""
    offset = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offset[1:])
    return offset


class Solver:
    """Joins the clauses of a segment. Safe with threads."""

    def __init__(self, programs: Programs, tests: Tests, lazy: LazyTests, world: World) -> None:
        self._world = world
        self._lazy = lazy
        variables = int(programs.variables.max(initial=0)) + 1
        part = np.zeros(len(programs.pattern), np.int32)
        parts = np.zeros(len(programs.variables), np.int32)
        component_kernels.components(programs.pattern_offset, programs.pattern, variables, part, parts)
        info = np.stack([np.asarray(c, np.int32) for c in (tests.kind, tests.group, tests.op, tests.rank)], axis=1)
        self._programs = (
            programs.pattern_offset, programs.pattern, part, parts, programs.test_offset, programs.test_variable,
            programs.test, info,
        )  # fmt: skip
        self._constants = int(programs.pattern.max(initial=0)) + 1
        self._most = (
            variables,
            int(np.diff(programs.pattern_offset).max(initial=0)) + 1,
            int(np.diff(programs.test_offset).max(initial=0)) + 1,
        )
        self._inverses: list[Ids] = []

    @contextmanager
    def _inverse(self, term: Ids) -> Iterator[Ids]:
        """Constant -> the batch's term, or -1. Kept from one batch to the next, as a small one fills little of it."""
        try:
            inverse = self._inverses.pop()
        except IndexError:
            inverse = np.full(self._constants, -1, np.int32)
        known = np.flatnonzero((term >= 0) & (term < self._constants))
        own = term[known]
        inverse[own] = known
        try:
            yield inverse
        finally:
            inverse[own] = -1
            self._inverses.append(inverse)

    def solve(
        self, batch: Batch, features: Features, pairs: Pairs, keep: bool, publications: Callable[[int], Publication]
    ) -> Solved:
        """The outcome of each pair. Lazy tests are answered in between, and the pairs that wait for
        them are tried again."""
        answers, decoder = Answers(self._lazy.scope), Decoder(batch)
        outcome = np.zeros(len(pairs), np.uint8)
        found: list[tuple[Ids, NDArray[np.int64]]] = []
        waiting = np.arange(len(pairs))
        sorted_triples = _sort_triples(batch, pairs.publication)
        with self._inverse(features.term) as inverse, np.errstate(over="ignore"):
            facts = (
                features.offset, features.test, features.low, features.high, features.node_offset,
                features.node_term, features.node_test,
            )  # fmt: skip
            triples = (batch.offset, batch.subject, batch.predicate, batch.object, *sorted_triples)
            some = pairs
            while len(waiting):
                own, rows, pieces = self._pass(some, keep, triples, inverse, facts, answers)
                pieces[:, 0] = waiting[pieces[:, 0]]
                found.append((rows, pieces))
                outcome[waiting] = own
                asks = (own & (kernels.UNKNOWN | kernels.UNSURE | kernels.FAILURE | kernels.OVER)) == (
                    kernels.UNKNOWN | kernels.UNSURE
                )
                waiting = waiting[asks]
                if len(waiting):
                    self._lazy.fill(answers, decoder.term, publications)
                    some = pairs.taken(waiting)
        return _joined(outcome, found)

    def _pass(
        self,
        pairs: Pairs,
        keep: bool,
        triples: tuple[Any, ...],
        inverse: Ids,
        facts: tuple[Any, ...],
        answers: Answers,
    ) -> tuple[Bytes, Ids, NDArray[np.int64]]:
        """Outcome, rows and pieces of each pair, as far as the answers are known."""
        settings = self._world.settings
        variables, patterns, tests = self._most
        scratch = (
            np.zeros(patterns, np.int32),
            np.zeros((patterns, 3), np.int32),
            np.zeros((patterns, 6), np.int64),
            np.full(variables, -1, np.int32),
            np.zeros((tests, 6), np.int32),
        )
        outcome = np.zeros(len(pairs), np.uint8)
        rows, pieces = np.empty(_ROOM if keep else 0, np.int32), np.empty((_ROOM if keep else 0, 4), np.int64)
        slots, state = np.zeros((1024 if keep else 1, 2), np.int64), np.zeros(8, np.int64)
        state[kernels.MOST_STEPS] = settings.max_steps
        state[kernels.KNOWN] = np.count_nonzero(answers.known[:, 0] >= 0)
        done = 0
        while True:
            lazy = (answers.scope, answers.known, answers.answer)
            done = kernels.join(
                done, pairs.publication, pairs.offset, pairs.clauses, pairs.width, settings.max_bindings, keep,
                self._programs, triples, inverse, facts, lazy, scratch, outcome, rows, pieces, slots, state,
            )  # fmt: skip
            if done == len(pairs):
                return outcome, rows[: state[kernels.ROWS]], pieces[: state[kernels.PIECES]]
            if state[kernels.FULL] == kernels.FULL_KNOWN:
                answers.grow()
                state[kernels.KNOWN] = 0
            elif state[kernels.FULL] == kernels.FULL_ROWS:
                rows, pieces = _doubled(rows), _doubled(pieces)
            else:
                slots = np.zeros((2 * len(slots), 2), np.int64)


def _doubled(array: Any) -> Any:
    grown = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _sort_triples(batch: Batch, publication: Ids) -> tuple[Offsets, NDArray[np.int64], NDArray[np.int64]]:
    """The triples of the larger publications by predicate and by object: where those of each are, keys, places."""
    sizes = np.diff(batch.offset)
    offset = np.full(len(batch), -1, np.int64)
    large = np.unique(publication[sizes[publication] > _SMALL])
    where = ends(2 * sizes[large])
    offset[large] = where[:-1]
    keys, places = np.empty(where[-1], np.int64), np.empty(where[-1], np.int64)
    component_kernels.sort_triples(
        large, batch.offset, batch.subject, batch.predicate, batch.object, offset, keys, places
    )
    return offset, keys, places


def _joined(outcome: Bytes, found: list[tuple[Ids, NDArray[np.int64]]]) -> Solved:
    """The rows of several passes as one."""
    if len(found) == 1:
        return Solved(outcome, *found[0])
    start = 0
    for rows, pieces in found:
        pieces[:, 2] += start
        start += len(rows)
    pieces = np.concatenate([pieces for _, pieces in found]) if found else np.zeros((0, 4), np.int64)
    rows = np.concatenate([rows for rows, _ in found]) if found else np.zeros(0, np.int32)
    return Solved(outcome, rows, pieces[np.argsort(pieces[:, 0], kind="stable")])
