"""Clauses are decided together: each step of a join, and each pattern, once for all that have it.

The network: `triplewire.verify.network`. What is not decided is left to `triplewire.verify.solve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.mapped_zeros import mapped_zeros
from triplewire.clauses.node_tests.columns import inverse
from triplewire.clauses.view import View
from triplewire.encode.batch import Ids
from triplewire.kernels.joins.columns import StatedClauses
from triplewire.kernels.joins.network import decide as kernels
from triplewire.kernels.joins.network import listing, walk
from triplewire.kernels.joins.network.columns import ROW, Scratch, StepColumns
from triplewire.kernels.joins.network.publication import STAMP, VISITED
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.columns import fixed_array
from triplewire.kernels.shared.lending import Lent
from triplewire.kernels.shared.outcomes import LEFT, Verdicts
from triplewire.verify.network import made_network
from triplewire.verify.solve import Pairs, Solved, together

_ROOM = 1 << 17  # numbers in the rows of all steps, and in all sets, for a publication: one and a half megabytes
_MOST_STAMPS = 0x3FFFFFFF  # that a scratch has used, which is let go then; there are twice as many


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
        state = _state(work)
        before = state.item(VISITED)
        matches, others = kernels.decide(
            publication, place, work.table, triples, columns, node_key, most, verdicts
        )  # fmt: skip
        visited = state.item(VISITED) - before
        self._give(work)
        of_publication, of_subscription = matched[:, :matches]
        left_publication, left_clause = left[:, :others]
        if self._order is not None:
            left_clause = self._order[left_clause]
        decided = JoinDecisions(
            of_publication, of_subscription, verdicts.truncated[:matches], left_publication, left_clause
        )
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
        features, triples = view.features, view.batch.triples
        columns = pairs.columns._replace(clauses=fixed_array(self._places(pairs.clauses)))
        node_key, done = together(features.node_term, features.node_test), 0
        offset = self._stated.component_offset
        components = offset[pairs.clauses + 1] - offset[pairs.clauses] + 1  # at the most
        clauses = pairs.offset[1:] - pairs.offset[:-1]
        most_lists = np.bincount(np.repeat(pairs.publication, clauses), components).max(initial=0)
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
    def network(self) -> StepColumns:
        """The network, which is made when it is first asked for, unless it was given."""
        self._network = self._network or made_network(self._clauses, self._stated, self._proven, self._order)
        return self._network

    @property
    def network_rows(self) -> int:
        """The steps and nodes of the network; 0 where it has not been made."""
        return 0 if self._network is None else len(self._network.step) + len(self._network.node) // ROW

    def _places(self, clauses: Ids) -> Ids:
        """Clauses by their places in the order."""
        return clauses if self._order is None else self._place[clauses]

    @cached_property
    def _place(self) -> Ids:
        """Clause -> its place in the order."""
        assert self._order is not None
        return inverse(self._order)

    @property
    def _constants(self) -> int:
        return len(self._clauses.constants) + 1

    def _new_scratch(self) -> Lent:
        tests = self._clauses.tests
        scratch = kernels.scratch(self._constants, len(tests) + 1, self.network, _ROOM, mapped_zeros)
        return Lent(kernels.LENT, self.network, tests.columns, scratch)


def _state(work: Lent) -> NDArray[np.int64]:
    scratch: Scratch = work.parts[-1]
    state: NDArray[np.int64] = scratch.state
    return state
