"""Clauses are decided together: each step of a join, and each pattern, once for all that have it.

The network: `triplewire.kernels.joins.network.build`. What is not decided is left to `triplewire.verify.solve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.facts import residual_clauses
from triplewire.clauses.node_tests.columns import slices
from triplewire.clauses.table import ASK, DISTINCT, EXACT
from triplewire.clauses.untouched import spared, untouched
from triplewire.clauses.view import View
from triplewire.encode.batch import Bytes, Ids
from triplewire.kernels.joins.columns import StatedClauses
from triplewire.kernels.joins.network import decide as kernels
from triplewire.kernels.joins.network import direct, listing, walk
from triplewire.kernels.joins.network.build import build, count_rows, pack
from triplewire.kernels.joins.network.columns import (
    ABSENT,
    APART,
    COLUMNS,
    KEPT,
    MARKS,
    NEW_WIDTH,
    PARENT,
    ROW,
    SEVERAL,
    TEST,
    WIDTH,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.network.publication import STAMP, VISITED
from triplewire.kernels.joins.network.steps import Frequency
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.shared.lending import Lent
from triplewire.kernels.shared.outcomes import LEFT, Verdicts
from triplewire.memory import give_back
from triplewire.verify.solve import Pairs, Solved, together, with_variables

_ROOM = 1 << 17  # numbers in the rows of all steps, and in all sets, for a publication: one and a half megabytes
_MANY = 1 << 16  # patterns: while their network is made, much more memory is needed than it keeps
_PLACE_BITS = 31 - MARKS  # of a place in the order of columns: where there are more, no solutions are listed
_MOST_STAMPS = 0x3FFFFFFF  # that a scratch has used, which is let go then; there are twice as many


@dataclass(slots=True)
class Decided:
    """Matches as columns, and the pairs (publication, clause) that are left."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    left_publication: Ids
    left_clause: Ids


class SharedJoins:
    """Decides pairs for the clauses of one segment. Any thread may ask. `proven`: nobody asks of a pair whose
    publication lacks a pattern without variables, so that these need not be in the network."""

    def __init__(self, clauses: Clauses, components: StatedClauses, proven: bool = False) -> None:
        self._clauses = clauses
        self._stated, self._proven = components, proven
        self._scratch: Pool[Lent] = Pool()

    def _components(self) -> StatedClauses:
        """The components that the network is made of. Bindings are asked of all clauses of a subscription, of which
        the index may have named one."""
        stated, is_alone = self._stated, ~self._clauses.has_alternatives[self._clauses.facts.owner]
        return with_variables(stated, is_alone) if self._proven else stated

    def ready(self) -> None:
        """Make the network, which takes a while where there are many clauses."""
        _ = self._steps

    def decide(self, view: View, publication: Ids, clause: Ids, most: int) -> tuple[Decided, int]:
        """Of pairs (publication, clause): those that are matches, with at most `most` bindings or truncated, and those
        that are left. What is in neither is no match. Also how many steps and nodes of the network were solved. It is
        quickest when the pairs of a publication follow each other."""
        features, triples, pairs = view.features, view.batch.triples, len(clause)
        columns, node_key = features.columns, together(features.node_term, features.node_test)
        matched, left = np.empty((2, 2, pairs), np.int32)
        verdicts = Verdicts(matched, np.empty(pairs, np.bool_), left)
        work = self._scratch.take(self._new_scratch)
        state = _state(work)
        before = state.item(VISITED)
        matches, others = kernels.decide(
            publication, clause, work.table, triples, columns, node_key, most, verdicts
        )  # fmt: skip
        visited = state.item(VISITED) - before
        self._give(work)
        of_publication, of_subscription = matched[:, :matches]
        decided = Decided(of_publication, of_subscription, verdicts.truncated[:matches], *left[:, :others])
        return decided, visited

    def _give(self, work: Lent) -> None:
        """Keep a scratch for the next call, if it has stamps for many more publications."""
        if _state(work).item(STAMP) < _MOST_STAMPS:
            self._scratch.give(work)

    def listed(self, view: View, pairs: Pairs, most: int, most_steps: int) -> Solved:
        """The solutions of pairs that match, ascending by publication; LEFT where they are not listed here. Equal
        components of a publication's clauses are listed once."""
        outcome = np.full(len(pairs), LEFT, np.uint8)
        if not len(pairs):
            return Solved(outcome, np.zeros(0, np.int32), np.zeros((0, 4), np.int64))
        features, triples, columns = view.features, view.batch.triples, pairs.columns
        node_key, done = together(features.node_term, features.node_test), 0
        components = np.diff(self._stated.component_offset)[columns.clauses] + 1  # at the most
        most_lists = np.bincount(np.repeat(pairs.publication, np.diff(pairs.offset)), components).max(initial=0)
        lists = walk.lists(int(most_lists), len(components) + int(components.sum()))
        work = self._scratch.take(self._new_scratch)
        while done < len(pairs):
            done = listing.list_pairs(
                done, columns, work.table, triples, features.columns, node_key, most, most_steps,
                outcome, lists,
            )  # fmt: skip
            if done < len(pairs):
                lists = lists.grown()
        self._give(work)
        used = lists.state[walk.ROWS]
        return Solved(
            outcome, lists.rows[:used], lists.pieces[: lists.state[walk.PIECES]], int(lists.state[walk.LISTS])
        )

    @cached_property
    def _steps(self) -> StepColumns:
        """The network, which is made when it is first asked for."""
        made = self._network(self._components())
        if len(self._stated.pattern) > _MANY:
            give_back()  # here, where what it was made with is gone
        return made

    def _network(self, components: StatedClauses) -> StepColumns:
        tests = self._clauses.tests.columns
        patterns = len(components.pattern)
        variables = self._clauses.table.variables
        step = untouched((2 * patterns + 2, COLUMNS), np.int32)
        tested = untouched((self._most_tested(components) + 1, 2), np.int32)
        node_offset, node = untouched(2 * patterns + 2, np.int32), untouched(5 * patterns, np.int32)
        last = untouched(len(components.component), np.int32)
        often = Frequency(
            np.bincount(components.pattern[components.pattern >= 0], minlength=self._constants),
            np.bincount(components.test, minlength=len(self._clauses.tests)),
        )
        work_area = np.zeros((5, int(variables.max(initial=0)) + 1), np.int64)
        own_order = components._replace(member=components.member.copy())
        order, begins = self._room_for_order(components), np.zeros(self._clauses.count, np.int32)
        selected = self._clauses.table.selected[self._clauses.facts.owner]
        steps, used, nodes, ordered = build(
            own_order,
            selected,
            tests,
            work_area,
            often,
            step,
            tested,
            node_offset,
            node,
            last,
            order,
            begins,
        )
        if ordered >> _PLACE_BITS:
            ordered, begins = 2, np.zeros(self._clauses.count, np.int32)
        place, is_plain = np.empty(nodes, np.int32), np.zeros(steps, np.uint8)
        size = max(count_rows(node_offset, nodes, place), 1)  # a row is fetched without a look, even of no node
        rows, step = np.zeros(ROW * size, np.int32), step[:steps]
        pack(node_offset, node, nodes, place, step, last, rows)
        slots = int(direct.mark_direct(step, place, rows, is_plain)) * 4 // 3 + 1
        plain = np.zeros((1 << slots.bit_length()) + 1, np.uint32)  # a quarter stays free: most look-ups end there
        direct.enter_plain(step, is_plain, plain)
        width = step[:, [WIDTH, NEW_WIDTH]].astype(np.uint8)
        width[step[:, PARENT] <= APART] = 0
        columns = spared(width), spared(np.append(step[:, TEST], used).astype(np.int32)), tested[:used].copy(), rows
        of_clauses = self._clause_rows(components, last, begins)
        return StepColumns(*fixed(step[:, :KEPT].copy(), *columns, *of_clauses, plain, order[:ordered].copy()))

    def _room_for_order(self, components: StatedClauses) -> Bytes:
        """Room for a number of each clause, of each component and each of its variables, and two more."""
        variables = self._clauses.table.variables.sum(dtype=np.int64)
        return untouched(self._clauses.count + len(components.component) + int(variables) + 2, np.uint8)

    def _clause_rows(self, components: StatedClauses, last: Ids, begins: Ids) -> tuple[Ids, Ids]:
        """The columns `clause` and `roots`. `last`: of each component, what stands in `roots`."""
        offset, owner = components.component_offset, self._clauses.facts.owner
        begin, size = offset[:-1], np.diff(offset)
        root, second = np.full(len(owner), SEVERAL, np.int32), np.full(len(owner), ABSENT, np.int32)
        few, two = (size == 1) | (size == 2), size == 2
        root[few], second[two] = last[begin[few]], last[begin[two] + 1]
        own, places = slices(offset, np.flatnonzero(~few))
        roots = np.insert(last[places], own[:-1], size[~few])
        second[~few] = own[:-1] + np.arange(len(own) - 1)
        return np.column_stack([self._marks() | begins << MARKS, root, second, owner]), roots

    def _most_tested(self, components: StatedClauses) -> int:
        """In how many places of patterns do tested variables stand, each as often as it has tests?"""
        variables = self._clauses.table.variables.astype(np.int64)
        begin = np.cumsum(variables) - variables
        clause, position = np.repeat(begin, np.diff(components.pattern_offset)), components.pattern
        is_variable = position < 0
        places = np.bincount((clause[:, None] - 1 - position)[is_variable], minlength=int(variables.sum()))
        tested = np.repeat(begin, np.diff(components.test_offset)) + components.test_variable
        return int(places[tested].sum())

    def _marks(self) -> Bytes:
        """Clause -> what its solutions say of its subscription."""
        table, owner = self._clauses.table, self._clauses.facts.owner
        of_subscription = np.zeros(len(table), np.uint8)
        of_subscription |= np.where(table.flags & EXACT != 0, np.uint8(kernels.EXACT), np.uint8(0))
        of_subscription |= np.where(table.flags & ASK != 0, np.uint8(kernels.ASK), np.uint8(0))
        of_subscription |= np.where(table.flags & DISTINCT != 0, np.uint8(kernels.DISTINCT), np.uint8(0))
        of_subscription |= np.where(self._clauses.has_alternatives, np.uint8(0), np.uint8(kernels.ALONE))
        marks: Bytes = of_subscription[owner]
        marks[residual_clauses(table, self._clauses.tests.is_residual)] &= ~np.uint8(kernels.EXACT)
        return marks

    @property
    def _constants(self) -> int:
        return len(self._clauses.constants) + 1

    def _new_scratch(self) -> Lent:
        tests = self._clauses.tests
        scratch = kernels.scratch(self._constants, len(tests) + 1, self._steps, _ROOM, untouched)
        return Lent(kernels.LENT, self._steps, tests.columns, scratch)


def _state(work: Lent) -> NDArray[np.int64]:
    scratch: Scratch = work.parts[-1]
    state: NDArray[np.int64] = scratch.state
    return state
