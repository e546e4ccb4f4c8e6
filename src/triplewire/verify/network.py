"""The join network of a segment: clauses are decided together, each step of a join once for all that have it.

It is made from the clauses, and saved with them. What it consists of: `triplewire.verify.kernels.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import ASK, DISTINCT, EXACT, Clauses, compact_zeros, mapped_zeros, residual_clauses
from triplewire.clauses.node_tests.columns import inverse, slices
from triplewire.clauses.view import View
from triplewire.encode.batch import Bytes, Ids
from triplewire.kernels.shared.columns import LEFT, Lent, Verdicts, fixed, fixed_array
from triplewire.memory import Pool, give_back
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels import decide, direct, listing
from triplewire.verify.kernels.columns import StatedClauses, StepColumns
from triplewire.verify.kernels.make_network import build, count_rows, pack
from triplewire.verify.kernels.make_trees import Frequency
from triplewire.verify.solve import Pairs, Solved, together, with_variables

VERSION = 5
"""The version of the saved arrays. It changes when the same clauses give another network."""

_MANY = 1 << 16  # patterns: while their network is made, much more memory is needed than it keeps
_PLACE_BITS = 31 - net.MARKS  # of a place in the order of columns: where there are more, no solutions are listed


_ROOM = 1 << 17  # numbers in the rows of all steps, and in all sets, for a publication: one and a half megabytes
_MOST_STAMPS = 0x3FFFFFFF  # that a scratch has used, which is let go then; there are twice as many


def opened_network(arrays: Mapping[str, NDArray[Any]]) -> StepColumns:
    """The network that `made_network` gave, from its saved columns. Raises `KeyError` where one is missing."""
    return StepColumns(*fixed(*(arrays[name] for name in StepColumns._fields)))


def made_network(clauses: Clauses, stated: StatedClauses, proven: bool, order: Ids | None = None) -> StepColumns:
    """The network of clauses. `stated` are their patterns and components, `proven` and `order` are as in
    `SharedJoins`."""
    # bindings are asked of all clauses of a subscription, of which the index may have named one
    is_alone = ~clauses.has_alternatives[clauses.facts.owner]
    network = _made(clauses, with_variables(stated, is_alone) if proven else stated, order)
    if len(stated.pattern) > _MANY:
        give_back()  # here, where what it was made with is gone
    return network


def _made(clauses: Clauses, components: StatedClauses, order: Ids | None) -> StepColumns:
    """The network of these components of the clauses."""
    patterns, variables = len(components.pattern), clauses.table.variables
    step = mapped_zeros((2 * patterns + 2, net.COLUMNS), np.int32)
    tested = mapped_zeros((_most_tested(clauses, components) + 1, 2), np.int32)
    node_offset, node = mapped_zeros(2 * patterns + 2, np.int32), mapped_zeros(5 * patterns, np.int32)
    last = mapped_zeros(len(components.component), np.int32)
    often = Frequency(
        np.bincount(components.pattern[components.pattern >= 0], minlength=len(clauses.constants) + 1),
        np.bincount(components.test, minlength=len(clauses.tests)),
    )
    work_area = np.zeros((5, int(variables.max(initial=0)) + 1), np.int64)
    reordered = components._replace(member=components.member.copy())
    # a number of each clause, of each component and each of its variables, and two more
    columns = mapped_zeros(clauses.count + len(last) + int(variables.sum(dtype=np.int64)) + 2, np.uint8)
    begins, chosen = np.zeros(clauses.count, np.int32), slice(None) if order is None else order
    selected = clauses.table.selected[clauses.facts.owner]
    in_order = np.column_stack((np.arange(clauses.count, dtype=np.int32), selected))[chosen]
    outputs = step, tested, node_offset, node, last, columns, begins
    steps, used, nodes, ordered = build(reordered, in_order, clauses.tests.columns, work_area, often, *outputs)
    if ordered >> _PLACE_BITS:
        ordered, begins = 2, np.zeros(clauses.count, np.int32)
    place = np.empty(nodes, np.int32)
    size = max(count_rows(node_offset, nodes, place), 1)  # a row is fetched without a look, even of no node
    rows, step = np.zeros(net.ROW * size, np.int32), step[:steps]
    pack(node_offset, node, nodes, place, step, last, rows)
    direct.mark_direct(step, place, rows)
    width = step[:, [net.WIDTH, net.NEW_WIDTH]].astype(np.uint8)
    width[step[:, net.PARENT] <= net.APART] = 0
    test_offset = compact_zeros(np.append(step[:, net.TEST], used).astype(np.int32))
    of_steps = step[:, : net.KEPT].copy(), compact_zeros(width), test_offset, tested[:used].copy(), rows
    of_clauses = _clause_rows(clauses, components, chosen, last, begins)
    return StepColumns(*fixed(*of_steps, *of_clauses, columns[:ordered].copy()))


def _clause_rows(
    clauses: Clauses, components: StatedClauses, order: Ids | slice, last: Ids, begins: Ids
) -> tuple[Ids, Ids]:
    """The columns `clause` and `roots`. `last`: of each component, what stands in `roots`."""
    offset = components.component_offset
    begin, size = offset[:-1][order], np.diff(offset)[order]
    root, second = np.full(len(size), net.SEVERAL, np.int32), np.full(len(size), net.ABSENT, np.int32)
    few, two = (size == 1) | (size == 2), size == 2
    root[few], second[two] = last[begin[few]], last[begin[two] + 1]
    slice_offset, places = slices(offset, np.arange(clauses.count)[order][~few])
    roots = np.insert(last[places], slice_offset[:-1], size[~few])
    second[~few] = slice_offset[:-1] + np.arange(len(slice_offset) - 1)
    table, owner = clauses.table, clauses.facts.owner
    of_subscription = np.where(clauses.has_alternatives, np.uint8(0), np.uint8(net.ALONE))
    for flag, mark in ((EXACT, net.EXACT), (ASK, net.ASK), (DISTINCT, net.DISTINCT)):
        of_subscription |= np.where(table.flags & flag != 0, np.uint8(mark), np.uint8(0))
    marks: Bytes = of_subscription[owner]  # what a clause's solutions say of its subscription
    marks[residual_clauses(table, clauses.tests.is_residual)] &= ~np.uint8(net.EXACT)
    return np.column_stack([marks[order] | begins << net.MARKS, root, second, owner[order]]), roots


def _most_tested(clauses: Clauses, components: StatedClauses) -> int:
    """In how many places of patterns do tested variables stand, each as often as it has tests?"""
    variables = clauses.table.variables.astype(np.int64)
    begin = np.cumsum(variables) - variables
    clause, position = np.repeat(begin, np.diff(components.pattern_offset)), components.pattern
    is_variable = position < 0
    places = np.bincount((clause[:, None] - 1 - position)[is_variable], minlength=int(variables.sum()))
    tested = np.repeat(begin, np.diff(components.test_offset)) + components.test_variable
    return int(places[tested].sum())


@dataclass(slots=True)
class JoinDecisions:
    """Matches as columns, and the pairs (publication, clause) that are left."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    left_publication: Ids
    left_clause: Ids


class SharedJoins:
    """Decides pairs for the clauses of one segment. Any thread may ask. `proven`: nobody asks of a pair whose
    publication lacks a pattern without variables, so that these need not be in the network. `order`: the clauses in the
    order of the network's rows; None: that of their numbers. `network`: that of all this, where it has been made.
    """

    def __init__(
        self,
        clauses: Clauses,
        components: StatedClauses,
        proven: bool = False,
        order: Ids | None = None,
        network: StepColumns | None = None,
    ) -> None:
        self._clauses = clauses
        self._stated, self._proven, self._order, self._network = components, proven, order, network
        self._scratch: Pool[Lent] = Pool()

    def decide(self, view: View, publication: Ids, place: Ids, most: int) -> tuple[JoinDecisions, int]:
        """Of pairs of a publication and the place of a clause in the order: those that are matches, with at most `most`
        bindings or truncated, and those that are left. What is in neither is no match. Also how many steps and nodes of
        the network were solved. It is quickest when the pairs of a publication follow each other."""
        features, triples, pairs = view.features, view.batch.triples, len(place)
        columns, node_key = features.columns, together(features.node_term, features.node_test)
        matched, left = np.empty((2, 2, pairs), np.int32)
        verdicts = Verdicts(matched, np.empty(pairs, np.bool_), left)
        work = self._scratch.take(self._new_scratch)
        before = work.parts[-1].state.item(net.VISITED)
        matches, others = decide.decide(publication, place, work.table, triples, columns, node_key, most, verdicts)
        visited = work.parts[-1].state.item(net.VISITED) - before
        self._give(work)
        left_publication, left_clause = left[:, :others]
        if self._order is not None:
            left_clause = self._order[left_clause]
        columns_of_matches = matched[0, :matches], matched[1, :matches], verdicts.truncated[:matches]
        return JoinDecisions(*columns_of_matches, left_publication, left_clause), visited

    def listed(self, view: View, pairs: Pairs, most: int, most_steps: int) -> Solved:
        """The solutions of pairs that match, ascending by publication; LEFT where they are not listed here. Equal
        components of a publication's clauses are listed once."""
        outcome = np.full(len(pairs), LEFT, np.uint8)
        if not len(pairs):
            return Solved(outcome, np.zeros(0, np.int32), np.zeros((0, 4), np.int64))
        features, triples, columns = view.features, view.batch.triples, pairs.columns
        lists = listing.lists(*listing.most_lists(columns, fixed_array(self._stated.component_offset)))
        if self._order is not None:
            columns = columns._replace(clauses=fixed_array(self._place[pairs.clauses]))
        node_key, done = together(features.node_term, features.node_test), 0
        work = self._scratch.take(self._new_scratch)
        while done < len(pairs):
            done = listing.list_pairs(
                done, columns, work.table, triples, features.columns, node_key, most, most_steps, outcome, lists
            )
            if done < len(pairs):
                lists = lists.grown()
        self._give(work)
        rows, pieces = lists.rows[: lists.state[listing.ROWS]], lists.pieces[: lists.state[listing.PIECES]]
        return Solved(outcome, rows, pieces, int(lists.state[listing.LISTS]))

    @cached_property
    def network(self) -> StepColumns:
        """The network, which is made when it is first asked for, unless it was given."""
        self._network = self._network or made_network(self._clauses, self._stated, self._proven, self._order)
        return self._network

    @property
    def network_rows(self) -> int:
        """The steps and nodes of the network; 0 where it has not been made."""
        return 0 if self._network is None else len(self._network.step) + len(self._network.node) // net.ROW

    @cached_property
    def _place(self) -> Ids:
        """Clause -> its place in the order."""
        assert self._order is not None
        return inverse(self._order)

    def _give(self, work: Lent) -> None:
        """Keep a scratch for the next call, if it has stamps for many more publications."""
        if work.parts[-1].state.item(net.STAMP) < _MOST_STAMPS:
            self._scratch.give(work)

    def _new_scratch(self) -> Lent:
        tests, constants = self._clauses.tests, len(self._clauses.constants.hash) + 1
        scratch = net.scratch(constants, len(tests.kind) + 1, self.network, _ROOM, mapped_zeros)
        return Lent(net.LENT, self.network, tests.columns, scratch)
