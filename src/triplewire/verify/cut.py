"""Which bindings does a match keep that has too many? Those that `triplewire.ir.evaluation.evaluate` keeps, found by a
kernel.

For queries that are triple patterns with conditions on single variables, or a choice between such groups; others are
left to the evaluation. The order in which it finds solutions: `docs/decisions/023-bindings.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Ids
from triplewire.encode.decode import Decoder
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.patterns import fits
from triplewire.ir.evaluation.plan import Group, Run, Union, plan_of
from triplewire.ir.evaluation.state import Evaluation
from triplewire.ir.nodes import Expression, Label
from triplewire.ir.subscription import Subscription
from triplewire.kernels.joins import cut as kernels
from triplewire.model.match import term_key
from triplewire.model.publication import Publication
from triplewire.model.terms import Term
from triplewire.verify.answers import no_groups


class Cuts:
    """For matches of one batch. What is known of a publication is kept for the next match of it."""

    def __init__(self, batch: Batch, publications: Callable[[int], Publication], world: World) -> None:
        self._batch = batch
        self._publications = publications
        self._world = world
        self._decoder = Decoder(batch)
        self._graphs: dict[int, _Graph] = {}

    def rows(self, number: int, subscription: Subscription) -> Ids | None:
        """The first `most_bindings` rows of selected variables, as terms of the batch, -1 for unbound. None where the
        evaluation has to find them."""
        runs = list(_runs(plan_of(subscription).group))
        graph = self._graphs.get(number)
        if graph is None:
            graph = self._graphs[number] = _Graph.of(self._batch, number, self._decoder)
        search = _Search(graph, subscription.select, self._world, lambda: self._publications(number))
        try:
            for run in runs:
                if run is None or not search.add(run):
                    return None
        except TriplewireError:  # of a condition, for a term that the evaluation may not come to
            return None
        return graph.ids.take(search.rows[: search.count]) if search.is_full else None


def _runs(group: Group) -> Iterator[Run | None]:
    """What the solutions of a group come from, one after the other; None is anything but patterns."""
    (step,) = group.steps if len(group.steps) == 1 and not group.conditions else (None,)
    if isinstance(step, Union):
        for branch in step.branches:
            yield from _runs(branch)
    else:
        yield step if isinstance(step, Run) else None


@dataclass(frozen=True, slots=True)
class _Graph:
    """A publication's triples in order, of terms numbered in order; the arrays are those of the kernel."""

    ids: Ids  # term -> the same in the batch; one more is -1, so that rows[-1] is unbound
    terms: list[Term]
    number: dict[Term, int]
    triple: Ids
    offset: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, batch: Batch, number: int, decoder: Decoder) -> _Graph:
        """The publication with this number."""
        rows = slice(int(batch.offset[number]), int(batch.offset[number + 1]))
        stated = np.stack([column[rows] for column in (batch.subject, batch.predicate, batch.object)], axis=1)
        used, inverse = np.unique(stated, return_inverse=True)
        unordered = decoder.terms(used)
        order = sorted(range(len(unordered)), key=[term_key(term) for term in unordered].__getitem__)
        rank = np.empty(len(used), np.int32)
        rank[order] = np.arange(len(used))
        triple = rank[inverse].reshape(-1, 3)
        triple = np.ascontiguousarray(triple[np.lexsort(triple.T[::-1])])
        offset = np.zeros((3, len(used) + 1), np.int64)
        for k in range(3):
            np.cumsum(np.bincount(triple[:, k], minlength=len(used)), out=offset[k, 1:])
        by_object, by_predicate = (np.argsort(triple[:, k], kind="stable") for k in (2, 1))
        terms = [unordered[place] for place in order]
        numbers = {term: place for place, term in enumerate(terms)}
        ids = np.append(used[order], np.int32(-1))  # a plain -1 would make them 64 bits wide
        return cls(ids, terms, numbers, triple, offset, np.stack((by_object, by_predicate)))


class _Search:
    """The distinct rows of one match, as numbers of the graph's terms, in the order in which they are found."""

    def __init__(
        self, graph: _Graph, select: tuple[str, ...], world: World, publication: Callable[[], Publication]
    ) -> None:
        self._graph = graph
        self._select = select
        self._world = world
        self._publication = publication
        most = world.settings.most_bindings
        self.rows: Ids = np.empty((most, len(select)), np.int32)
        self._slots = np.zeros(1 << (2 * most).bit_length(), np.int64)
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Are there as many rows as may be?"""
        return self.count == len(self.rows)

    def add(self, run: Run) -> bool:
        """Add the solutions of some patterns. False: it takes an evaluation to find them."""
        if any(len(condition.variables) != 1 for condition in run.conditions):
            return False
        parts = run.components or (run,)
        asked = [part for part in parts if any(not atom.variables.isdisjoint(self._select) for atom in part.atoms)]
        for part in parts:
            if part not in asked:
                count = self._searched([part], np.empty((1, 0), np.int32), np.zeros(2, np.int64), 0)
                if count != 1:  # nothing, or too many steps
                    return count == 0
        count = self._searched(asked or list(parts), self.rows, self._slots, self.count)
        self.count = max(count, 0)
        return count >= 0

    def _searched(self, parts: list[Run], rows: Ids, slots: NDArray[np.int64], count: int) -> int:
        """How many rows there are with the solutions of all parts; OVER where it takes too many steps."""
        graph, number = self._graph, {name: k for k, name in enumerate(self._select)}
        code: list[int] = []
        tests: list[tuple[str, Expression | Label]] = []
        for atom in (atom for part in parts for atom in part.atoms):
            for k, (constant, name) in enumerate(zip(atom.constants, atom.names, strict=True)):
                place = graph.number.get(constant) if constant is not None else None
                if constant is not None and place is None:
                    return count
                label = atom.labels[k] if atom.labels else None
                key = name if name is not None else f"*{len(code)}"  # of a label or a wildcard, that nothing else has
                code.append(place if place is not None else -1 - number.setdefault(key, len(number)))
                if label is not None:
                    tests.append((key, label))
        tests += [(name, test.expression) for part in parts for test in part.conditions for name in test.variables]
        codes = np.array(code, np.int32).reshape(-1, 3)
        allowed = np.ones((len(number), len(graph.terms)), np.bool_)
        for key, test in tests:
            self._test(key, test, -1 - number[key], codes, allowed[number[key]])
        needed = len({variable for variable in code if -rows.shape[1] <= variable < 0})
        return kernels.search(
            codes, needed, len(rows), self._world.settings.max_steps, graph.triple, graph.offset, graph.order, allowed,
            count, rows, slots,
        )  # fmt: skip

    def _test(self, name: str, test: Expression | Label, variable: int, code: Ids, allowed: NDArray[np.bool_]) -> None:
        """Disallow the terms of which a test does not hold."""
        triple = self._graph.triple
        a, k = np.argwhere(code == variable)[0].tolist()
        there = ((triple == code[a]) | (code[a] < 0)).all(axis=1)
        for place in np.unique(triple[there, k]).tolist():
            term = self._graph.terms[place]
            if isinstance(test, Label):
                allowed[place] &= fits(test, term)
            else:
                allowed[place] &= holds(test, {name: term}, self._evaluation)

    @cached_property
    def _evaluation(self) -> Evaluation:
        return Evaluation(self._publication(), self._world, frozenset(), no_groups)
