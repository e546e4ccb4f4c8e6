"""Solves clauses for many pairs of a publication and a clause at once.

That is done by kernels and, where a clause has them, by residual predicates. The search is
`triplewire.verify.kernels.search`; what the outcomes mean: `triplewire.verify.batch_verifier`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.columns import ends, slices
from triplewire.clauses.node_tests.table import RESIDUAL
from triplewire.clauses.view import Features
from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.ir.evaluation.evaluate import World
from triplewire.kernels import components as component_kernels
from triplewire.kernels.shared.columns import UNKNOWN, Triples, fixed, fixed_array
from triplewire.memory import Pool
from triplewire.model.publication import Publication
from triplewire.model.terms import Term
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels import search as kernels
from triplewire.verify.residual_tests import Answers, ResidualTests

_ROOM = 1 << 12  # rows, at first
_SMALL = 64  # triples of a publication; those of larger ones are sorted for patterns whose subject is not known
_AT_ONCE = 1 << 10  # pairs that residual predicates are asked for together: each may ask for some thousand answers
_NONE: NDArray[np.int64] = np.zeros(0, np.int64)
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

    @property
    def columns(self) -> net.PairColumns:
        """The pairs as kernels take them."""
        return net.PairColumns(*fixed(self.publication, self.offset, self.clauses, self.width))

    def take(self, numbers: NDArray[np.int64]) -> Pairs:
        """Some of the pairs."""
        offset, places = slices(self.offset, numbers)
        return Pairs(self.publication[numbers], offset, self.clauses[places], self.width[numbers])


@dataclass(frozen=True, slots=True)
class Solved:
    """Outcome of each pair (MISS, MATCH, TRUNCATED, or UNKNOWN + flags); where rows were kept, those of each component.

    A row of `pieces` is (pair, clause, begin in `rows`, number of rows).
    `lists`: of equal components, listed once.
    """

    outcome: Bytes
    rows: Ids
    pieces: NDArray[np.int64]
    lists: int = 0


class _Inverse:
    """Constant -> the batch's term. The array is reused for the next batch, as a batch fills little of it, and the
    parts of a batch have the same terms."""

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


@dataclass(frozen=True, slots=True)
class Searched:
    """The publications that are searched, as kernels take them. `term` gives the one with a number; `known`: of each
    term the segment's constant, or -1."""

    triples: net.SortedTriples
    features: net.NodeFeatures
    known: Ids
    term: Callable[[int], Term]

    @classmethod
    def of(cls, triples: Triples, features: Features, publication: Ids, term: Callable[[int], Term]) -> Searched:
        """A batch, of which these publications are asked for, each as often as there are pairs of it. The triples of
        the larger ones are sorted by predicate and by object, too."""
        sizes = np.diff(triples.offset)
        pairs = np.bincount(publication, minlength=len(sizes))
        large = np.flatnonzero((pairs > 0) & ((sizes > _SMALL) | (pairs >= _OFTEN)))
        begins, key_offset = ends(4 * sizes[large]), np.full(len(sizes), -1, np.int64)
        key_offset[large], keys = begins[:-1], np.empty(begins[-1], np.int64)
        component_kernels.sort_triples(fixed_array(large), Triples(*fixed(*triples)), key_offset, keys)
        columns = triples.offset, together(triples.subject, triples.predicate), triples.object
        ordered = net.SortedTriples(*fixed(*columns, key_offset, keys))
        of_terms = features.offset, features.test, features.low, features.high, features.node_offset
        of_nodes = net.NodeFeatures(*fixed(*of_terms, together(features.node_term, features.node_test)))
        return cls(ordered, of_nodes, features.term, term)


class Solver:
    """Solves the clauses of a segment. Safe with threads."""

    def __init__(self, clauses: Clauses, residual: ResidualTests, world: World) -> None:
        table, tests, facts = clauses.table, clauses.tests, clauses.facts
        self._world, self._residual, self._table = world, residual, table
        self._info = np.stack(
            [np.asarray(c, np.int32) for c in (tests.kind, tests.group, tests.op, tests.rank)], axis=1
        )
        self._variables = int(table.variables.max(initial=0)) + 1
        parts = facts.component_offset, facts.component, facts.member
        tested = table.test_offset, table.test_variable, table.test
        self.stated = net.StatedClauses(*fixed(table.pattern_offset, table.pattern, *parts, *tested))
        self._owner, self._has_alternatives = facts.owner, clauses.has_alternatives
        self._inverses = Pool[_Inverse]()

    def _resolved(self, clauses: Ids, components: net.StatedClauses, term: Ids) -> net.JoinedClauses:
        """Some clauses as the join takes them, their constants as the batch's terms."""
        stated = self._table
        code_offset, places = slices(stated.pattern_offset, clauses)
        code, member = stated.pattern[places], components.member[places].astype(np.int32, copy=False)
        inverse = self._inverses.take(lambda: _Inverse(int(stated.pattern.max(initial=0)) + 1))
        code = np.where(code < 0, code, inverse.of(term)[np.maximum(code, 0)])
        self._inverses.give(inverse)
        component_offset, places = slices(components.component_offset, clauses)
        component = components.component[places].astype(np.int32, copy=False)
        condition_offset, places = slices(stated.test_offset, clauses)
        test = stated.test[places]
        condition = np.column_stack((stated.test_variable[places], test, self._info[test]))
        return net.JoinedClauses(
            *fixed(code_offset, code, component_offset, component, member, condition_offset, condition)
        )

    @cached_property
    def _of_matches(self) -> net.StatedClauses:
        """The clauses with what is to be solved where a subscription with one clause is known to match."""
        return with_variables(self.stated, ~self._has_alternatives[self._owner])

    def solve(
        self,
        searched: Searched,
        pairs: Pairs,
        keep: bool,
        publications: Callable[[int], Publication],
        matched: bool = False,
    ) -> Solved:
        """The outcome of each pair, with its rows where they are to be kept: in the order in which the search finds
        them, which a pair alone does not owe to others. Residual predicates are answered in between; pairs that wait
        are tried again; some ask for `publications`. `matched`: the subscriptions of all pairs are known to match."""
        components = self._of_matches if matched else self.stated
        outcome, parts = np.zeros(len(pairs), np.uint8), []
        used, clauses = np.unique(pairs.clauses, return_inverse=True)
        joined = replace(pairs, clauses=clauses.astype(np.int32))
        joined_clauses = self._resolved(used, components, searched.known)
        groups = [np.arange(len(joined))]
        if (joined_clauses.condition[:, kernels.KIND] == RESIDUAL).any():
            groups = np.split(groups[0], range(_AT_ONCE, len(joined), _AT_ONCE))
        while groups:
            waiting = groups.pop()
            answers = Answers(self._residual.scope)
            while len(waiting):
                portion = joined if len(waiting) == len(joined) else joined.take(waiting)
                outcome[waiting], rows, pieces = self._pass(portion, keep, joined_clauses, searched, answers)
                pieces[:, 0] = waiting[pieces[:, 0]]
                parts.append((rows, pieces))
                waiting = waiting[outcome[waiting] == UNKNOWN + kernels.UNSURE]
                if len(waiting) and not self._residual.fill(answers, searched.term, publications):
                    apart = np.split(waiting, np.flatnonzero(np.diff(joined.publication[waiting])) + 1)
                    if len(apart) > 1:  # what is too much for one publication must not depend on the others
                        groups += apart
                        break
        return _joined(outcome, parts)

    def _pass(
        self, pairs: Pairs, keep: bool, joined_clauses: net.JoinedClauses, searched: Searched, answers: Answers
    ) -> tuple[Bytes, Ids, NDArray[np.int64]]:
        """Outcome, rows and pieces of each pair, as far as the answers are known."""
        settings = self._world.settings
        patterns = int(np.diff(joined_clauses.code_offset).max(initial=1))
        outcome = np.zeros(len(pairs), np.uint8)
        rows, pieces = np.empty(_ROOM if keep else 0, np.int32), np.empty((_ROOM if keep else 0, 4), np.int64)
        slots, state = np.zeros((1024 if keep else 1, 2), np.int64), np.zeros(8, np.int64)
        state[kernels.MOST_STEPS] = settings.max_steps
        state[kernels.KNOWN] = np.count_nonzero(answers.known[:, 0] >= 0)
        frame, value = np.zeros((patterns, 10), np.int64), np.full((self._variables, 2), -1, np.int64)
        search, columns, done = net.SearchState(frame, value, state), pairs.columns, 0
        while True:
            done = kernels.join(
                done, columns, settings.most_bindings, keep, joined_clauses, searched.triples, searched.features,
                net.ResidualAnswers(answers.scope, answers.known), search, outcome,
                net.SolutionRows(rows, pieces, slots),
            )  # fmt: skip
            if done == len(pairs):
                return outcome, rows[: state[kernels.ROWS]], pieces[: state[kernels.PIECES]]
            if 2 * (state[kernels.KNOWN] + 1) > len(answers.known):
                answers.grow()
                state[kernels.KNOWN] = 0
            else:
                rows, pieces = net.doubled(rows), net.doubled(pieces)
                slots = np.zeros((2 * len(slots), 2), np.int64)


def with_variables(clauses: net.StatedClauses, chosen: NDArray[np.bool_]) -> net.StatedClauses:
    """The clauses; those that are `chosen` without components that have no variables, unless they have no others."""
    has_variables = (clauses.component[:, 2] > 0) | (clauses.component[:, 3] == 0)
    offset, size = clauses.component_offset, np.diff(clauses.component_offset)
    has_others = np.diff(np.append(0, np.cumsum(has_variables))[offset]) > 0
    stays = has_variables | ~np.repeat(chosen & has_others, size)
    if stays.all():
        return clauses
    before = np.append(0, np.cumsum(stays)).astype(np.int32)
    component_offset, component = fixed(before[offset], clauses.component[stays])
    return clauses._replace(component_offset=component_offset, component=component)


def together(first: Ids, second: Ids) -> NDArray[np.int64]:
    """Two columns of ids as one."""
    return first.astype(np.int64) << 32 | second if len(first) else _NONE


def _joined(outcome: Bytes, parts: list[tuple[Ids, NDArray[np.int64]]]) -> Solved:
    """The rows of several passes as one."""
    if len(parts) == 1:
        return Solved(outcome, *parts[0])
    if not parts:
        return Solved(outcome, np.zeros(0, np.int32), np.zeros((0, 4), np.int64))
    start = 0
    for rows, pieces in parts:
        pieces[:, 2] += start
        start += len(rows)
    pieces = np.concatenate([pieces for _, pieces in parts])
    return Solved(outcome, np.concatenate([rows for rows, _ in parts]), pieces[np.argsort(pieces[:, 0], kind="stable")])
