"""Clauses whose patterns join, or have several components, are decided together: each join step once for all of them.

The steps: `triplewire.kernels.joins.network_build`. What is not decided is left to `triplewire.verify.solve`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.table import ASK, DISTINCT, EXACT
from triplewire.clauses.untouched import untouched
from triplewire.clauses.view import View
from triplewire.encode.batch import Bytes, Ids
from triplewire.kernels.joins import network as kernels
from triplewire.kernels.joins.columns import StarClauses
from triplewire.kernels.joins.network_build import build
from triplewire.kernels.joins.network_columns import COLUMNS, Scratch, StepColumns
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.trie.stars import CHECK
from triplewire.verify.counts import Counted
from triplewire.verify.solve import node_features, residual_clauses

_ROOM = 1 << 18  # numbers in the rows of all steps for a publication: a megabyte
_MOST_STAMPS = 0x3FFFFFFF  # that a scratch has used; there are twice as many


class SharedJoins:
    """Decides pairs for the clauses of one segment. Any thread may ask."""

    def __init__(self, clauses: Clauses, components: StarClauses) -> None:
        self._clauses = clauses
        self._components = components
        several = np.diff(components.component_offset) > 1
        self._chosen = (several | (np.asarray(clauses.facts.status) == CHECK)).view(np.uint8)
        self._has_any = bool(self._chosen.any())
        self._scratch: Pool[Scratch] = Pool()

    def ready(self) -> None:
        """Make the network, which takes a while where there are many clauses."""
        if self._has_any:
            _ = self._steps

    def decide(self, view: View, publication: Ids, clause: Ids, most: int) -> Counted:
        """Of pairs (publication, clause): those that are matches, with at most `most` bindings or truncated, and those
        that are left. What is in neither is no match. It is quickest when the pairs of a publication follow each
        other."""
        if not self._has_any or not len(clause):
            return Counted(clause[:0], clause[:0], np.zeros(0, np.bool_), publication, clause)
        clauses, steps, outcome = self._clauses, self._steps, np.empty(len(clause), np.uint8)
        facts = node_features(view.features)
        with self._scratch.borrowed(self._new_scratch, _is_fresh) as work:
            kernels.decide(
                publication, clause, steps, clauses.tests.columns, view.batch.triples, view.features.term, facts, most,
                work, outcome,
            )  # fmt: skip
        return Counted.by_outcome(publication, clause, clauses.facts.owner, outcome)

    @cached_property
    def _steps(self) -> StepColumns:
        """The network, which is made when it is first asked for."""
        components, tests = self._components, self._clauses.tests.columns
        patterns, listed = len(components.pattern), len(components.test)
        step, tested = untouched((patterns + 1, COLUMNS), np.int32), untouched((listed + 1, 2), np.int32)
        last = untouched(len(components.component), np.int32)
        variables = np.zeros((4, int(self._clauses.table.variables.max(initial=0)) + 1), np.int64)
        predicate = components.pattern[:, 1]
        frequency = np.bincount(predicate[predicate >= 0], minlength=self._constants)
        own_order = components._replace(member=components.member.copy())
        steps, used = build(self._chosen, own_order, tests, variables, frequency, step, tested, last)
        columns = step[:steps].copy(), tested[:used].copy(), components.component_offset, last, self._marks()
        return StepColumns(*fixed(*columns))

    def _marks(self) -> Bytes:
        """Clause -> what its solutions say of its subscription."""
        table, owner = self._clauses.table, self._clauses.facts.owner
        of_subscription = np.zeros(len(table), np.uint8)
        of_subscription |= np.where(table.flags & EXACT != 0, np.uint8(kernels.EXACT), np.uint8(0))
        of_subscription |= np.where(table.flags & ASK != 0, np.uint8(kernels.ASK), np.uint8(0))
        of_subscription |= np.where(table.flags & DISTINCT != 0, np.uint8(kernels.DISTINCT), np.uint8(0))
        of_subscription |= np.where(self._clauses.has_alternatives, np.uint8(0), np.uint8(kernels.ALONE))
        marks: Bytes = of_subscription[owner] | self._chosen * np.uint8(kernels.PRESENT)
        marks[residual_clauses(self._clauses)] &= ~np.uint8(kernels.EXACT)
        return marks

    @property
    def _constants(self) -> int:
        return len(self._clauses.constants) + 1

    def _new_scratch(self) -> Scratch:
        return kernels.scratch(self._constants, len(self._clauses.tests) + 1, len(self._steps.step), _ROOM)


def _is_fresh(work: Scratch) -> bool:
    """Has it stamps for many more publications?"""
    return bool(work.state[kernels.STAMP] < _MOST_STAMPS)
