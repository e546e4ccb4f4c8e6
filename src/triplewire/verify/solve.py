"""The kernels that solve clauses, over many pairs of a batch: room for their tables, lazy tests between passes.

Clauses that join nothing are products (`triplewire.kernels.products`), the others are joined
(`triplewire.kernels.solutions`); what the outcomes mean: `triplewire.verify.columnar`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Bytes, Ids, Offsets
from triplewire.encode.decode import Decoder
from triplewire.ir.evaluate import World
from triplewire.kernels import components as component_kernels
from triplewire.kernels import products as product_kernels
from triplewire.kernels import solutions as kernels
from triplewire.model.publication import Publication
from triplewire.select.columns import ends, slices
from triplewire.select.features import Features
from triplewire.select.idle import Idle
from triplewire.select.programs import Programs
from triplewire.select.tests import LAZY, Tests
from triplewire.verify.answers import Answers, LazyTests

Columns: TypeAlias = tuple[Any, ...]
_ROOM = 1 << 12  # rows, at first
_TOGETHER = 1 << 17  # pairs that are solved as products together: a star takes about a hundred bytes
_FEW = 256  # triples of a publication that products read from end to end
_SMALL = 64  # those that joins do, where the subject is not known; of larger ones they are sorted
_AT_ONCE = 1 << 10  # pairs that lazy tests are asked for together: each may ask for some thousand answers
_CONDITIONS = 6  # place of the tests among the columns of the programs
_OFTEN = 8  # pairs of a publication for which that is worth it in any case
_NOWHERE = 0x7FFFFFFF  # stands for a constant that the batch does not have


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
        offset, places = slices(self.offset, some)
        return Pairs(self.publication[some], offset, self.clauses[places], self.width[some])


@dataclass(frozen=True, slots=True)
class Solved:
    """Outcome of each pair (MISS, MATCH, MORE, or UNKNOWN + flags); where rows were kept, those of each component.

    A row of `pieces` is (pair, clause, begin in `rows`, number of rows).
    """

    outcome: Bytes
    rows: Ids
    pieces: NDArray[np.int64]


def fixed(*arrays: NDArray[Any]) -> Columns:
    """The arrays as views that cannot be written to, mapped from files or not: so kernels are compiled once."""
    views = tuple([np.ascontiguousarray(array).view(np.ndarray) for array in arrays])
    for view in views:
        view.flags.writeable = False
    return views


def _places(offset: Offsets | Ids, some: Ids) -> int:
    """How long are the slices of some rows together?"""
    return int((offset[some + 1] - offset[some]).sum())


class _Inverse:
    """Constants as a batch's terms. It stays from one batch to the next: as a batch fills little of it, and parts of a
    batch have the same terms."""

    def __init__(self, constants: int) -> None:
        self._array = np.full(constants, _NOWHERE, np.int32)
        self._term = self._filled = np.zeros(0, np.int32)

    def of(self, term: Ids) -> Ids:
        """Constant -> the batch's term, or NOWHERE. `term` says the opposite."""
        if term is not self._term:
            self._array[self._filled] = _NOWHERE
            known = np.flatnonzero((term >= 0) & (term < len(self._array)))
            self._term, self._filled = term, term[known]
            self._array[self._filled] = known
        return self._array


class Solver:
    """Solves the clauses of a segment. `width`: clause -> how many variables are selected. Safe with threads."""

    def __init__(self, programs: Programs, width: Ids, tests: Tests, lazy: LazyTests, world: World) -> None:
        self._world = world
        self._lazy = lazy
        variables, patterns = int(programs.variables.max(initial=0)) + 1, len(programs.pattern)
        offset, component = np.zeros(len(programs.variables) + 1, np.int32), np.zeros((patterns, 4), np.int32)
        member, loose = np.zeros(patterns, np.int32), np.zeros(len(programs.variables), np.uint8)
        pattern_offset, pattern, widths = fixed(programs.pattern_offset, programs.pattern, width)
        component_kernels.components(pattern_offset, pattern, widths, variables, offset, component, member, loose)
        loose[_lazy_clauses(programs, tests)] = 0
        self._stated = programs
        self._components = offset, component[: offset[-1]].copy(), member
        self._info = np.stack(
            [np.asarray(c, np.int32) for c in (tests.kind, tests.group, tests.op, tests.rank)], axis=1
        )
        self._variables = variables
        self._patterns = int(np.diff(programs.pattern_offset).max(initial=1))
        offset, component, member = self._components
        self._stars = fixed(loose, pattern_offset, pattern, offset, component, member, programs.test_offset)
        self._tests = fixed(programs.test_variable, programs.test)
        self._inverses = Idle[_Inverse]()

    def _resolved(self, clauses: Ids, term: Ids) -> Columns:
        """Some clauses as the join takes them, their constants as the batch's terms."""
        stated, (all_components, component, member) = self._stated, self._components
        code_offset, places = slices(stated.pattern_offset, clauses)
        code, member = stated.pattern[places], member[places]
        with self._inverses.one(self._new_inverse) as inverse:
            code = np.where(code < 0, code, inverse.of(term)[np.maximum(code, 0)])
        component_offset, places = slices(all_components, clauses)
        component = component[places]
        condition_offset, places = slices(stated.test_offset, clauses)
        test = stated.test[places]
        condition = np.column_stack((stated.test_variable[places], test, self._info[test]))
        return fixed(code_offset, code, component_offset, component, member, condition_offset, condition)

    def _new_inverse(self) -> _Inverse:
        return _Inverse(int(self._stated.pattern.max(initial=0)) + 1)

    def solve(
        self, batch: Batch, features: Features, pairs: Pairs, keep: bool, publications: Callable[[int], Publication]
    ) -> Solved:
        """The outcome of each pair. Lazy tests are answered in between, and pairs that wait for them tried again."""
        triples = fixed(batch.offset, _together(batch.subject, batch.predicate), batch.object)
        facts = fixed(
            features.offset,
            features.test,
            features.low,
            features.high,
            features.node_offset,
            _together(features.node_term, features.node_test),
        )
        outcome, found = np.empty(len(pairs), np.uint8), []
        for start in range(0, len(pairs), _TOGETHER):
            end = min(start + _TOGETHER, len(pairs))
            some = pairs if end - start == len(pairs) else pairs.taken(np.arange(start, end))
            outcome[start:end], rows, pieces = self._multiplied(some, keep, features.term, triples, facts)
            pieces[:, 0] += start
            found.append((rows, pieces))
        left, decoder = np.flatnonzero(outcome == product_kernels.LEFT), Decoder(batch)
        if not len(left):
            return _joined(outcome, found)
        joined = pairs.taken(left)
        used, clauses = np.unique(joined.clauses, return_inverse=True)
        joined = replace(joined, clauses=clauses.astype(np.int32))
        programs = self._resolved(used, features.term)
        triples += fixed(*_sort_triples(batch, joined.publication))
        is_lazy = (programs[_CONDITIONS][:, kernels.KIND] == LAZY).any()
        for start in range(0, len(joined), _AT_ONCE if is_lazy else len(joined)):
            waiting = np.arange(start, min(start + _AT_ONCE, len(joined)) if is_lazy else len(joined))
            answers = Answers(self._lazy.scope)
            while len(waiting):
                some = joined if len(waiting) == len(joined) else joined.taken(waiting)
                own, rows, pieces = self._pass(some, keep, programs, triples, facts, answers)
                pieces[:, 0] = left[waiting[pieces[:, 0]]]
                found.append((rows, pieces))
                outcome[left[waiting]] = own
                waiting = waiting[own == kernels.UNKNOWN + kernels.UNSURE]
                if len(waiting):
                    self._lazy.fill(answers, decoder.term, publications)
        return _joined(outcome, found)

    def _multiplied(
        self, pairs: Pairs, keep: bool, term: Ids, triples: Columns, facts: Columns
    ) -> tuple[Bytes, Ids, NDArray[np.int64]]:
        """Outcome, rows and pieces of the pairs whose clauses need no join; the others are LEFT."""
        cap, outcome = self._world.settings.max_bindings, np.empty(len(pairs), np.uint8)
        publication, offset, clauses, width = fixed(pairs.publication, pairs.offset, pairs.clauses, pairs.width)
        _, pattern_offset, _, component_offset, *_ = self._stars
        star = np.empty((_places(component_offset, clauses), product_kernels.STAR), np.int64)
        code = np.empty((_places(pattern_offset, clauses), 2), np.int32)
        few = np.diff(triples[0]) <= _FEW
        with self._inverses.one(self._new_inverse) as inverse:
            stars = product_kernels.stars(
                publication, offset, clauses, width, few, self._stars, inverse.of(term), star, code, outcome
            )
        hit = np.empty((stars + 1 if keep else 1, 4), np.int64)
        fitting = np.empty(4 * stars + self._patterns * (_FEW + 1), np.int32)
        used, done = np.zeros(3, np.int64), 0
        while done < stars:
            done = product_kernels.solve(
                done, stars, cap, keep, publication, star, code, self._tests, self._info,
                triples, facts, hit, fitting, used,
            )  # fmt: skip
            if done < stars:
                hit, fitting = _doubled(hit), _doubled(fitting)
        rows, pieces = np.empty(used[product_kernels.SIZE], np.int32), np.empty((stars if keep else 0, 4), np.int64)
        frame = np.empty((self._patterns, 3), np.int64)
        product_kernels.write(used[product_kernels.HITS], star, code, hit, fitting, frame, rows)
        return outcome, rows, pieces[: product_kernels.outcomes(stars, cap, keep, star, outcome, pieces)]

    def _pass(
        self, pairs: Pairs, keep: bool, programs: Columns, triples: Columns, facts: Columns, answers: Answers
    ) -> tuple[Bytes, Ids, NDArray[np.int64]]:
        """Outcome, rows and pieces of each pair, as far as the answers are known."""
        settings = self._world.settings
        patterns = int(np.diff(programs[0]).max(initial=1))
        scratch = np.zeros((patterns, 10), np.int64), np.full((self._variables, 2), -1, np.int64)
        outcome = np.zeros(len(pairs), np.uint8)
        rows, pieces = np.empty(_ROOM if keep else 0, np.int32), np.empty((_ROOM if keep else 0, 4), np.int64)
        slots, state = np.zeros((1024 if keep else 1, 2), np.int64), np.zeros(8, np.int64)
        state[kernels.MOST_STEPS] = settings.max_steps
        state[kernels.KNOWN] = np.count_nonzero(answers.known[:, 0] >= 0)
        publication, offset, clauses, width = fixed(pairs.publication, pairs.offset, pairs.clauses, pairs.width)
        done = 0
        while True:
            lazy = (answers.scope, answers.known)
            done = kernels.join(
                done, publication, offset, clauses, width, settings.max_bindings, keep, programs,
                triples, facts, lazy, scratch, outcome, rows, pieces, slots, state,
            )  # fmt: skip
            if done == len(pairs):
                return outcome, rows[: state[kernels.ROWS]], pieces[: state[kernels.PIECES]]
            if 2 * (state[kernels.KNOWN] + 1) > len(answers.known):
                answers.grow()
                state[kernels.KNOWN] = 0
            else:
                rows, pieces = _doubled(rows), _doubled(pieces)
                slots = np.zeros((2 * len(slots), 2), np.int64)


def _lazy_clauses(programs: Programs, tests: Tests) -> NDArray[np.int64]:
    """The clauses that have lazy tests."""
    is_lazy = tests.kind == LAZY
    if not is_lazy.any():
        return np.zeros(0, np.int64)
    return np.searchsorted(programs.test_offset, np.flatnonzero(is_lazy[programs.test]), side="right") - 1


def _together(first: Ids, second: Ids) -> NDArray[np.int64]:
    """Two columns of ids as one."""
    return first.astype(np.int64) << 32 | second


def _doubled(array: Any) -> Any:
    grown = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _sort_triples(batch: Batch, publication: Ids) -> tuple[Offsets, NDArray[np.int64]]:
    """The triples of the larger publications by predicate and by object: where those of each are."""
    sizes = np.diff(batch.offset)
    offset = np.full(len(batch), -1, np.int64)
    asked = np.bincount(publication, minlength=len(batch))
    large = np.flatnonzero((asked > 0) & ((sizes > _SMALL) | (asked >= _OFTEN)))
    where = ends(4 * sizes[large])
    offset[large] = where[:-1]
    keys = np.empty(where[-1], np.int64)
    some, triple_offset, s, p, o = fixed(large, batch.offset, batch.subject, batch.predicate, batch.object)
    component_kernels.sort_triples(some, triple_offset, s, p, o, offset, keys)
    return offset, keys


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
