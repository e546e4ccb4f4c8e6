"""The verifier for batches: clauses are joined by a kernel over ids, and only what they do not say is evaluated.

Pairs come from `triplewire.select.walk`. A subscription whose clauses say all is decided by them alone; for any other
they are the first hurdle, and `triplewire.ir.evaluate` decides. Bindings: `triplewire.verify.rows`.

What one pair can cost: `max_steps` triples tried by the join and, where that was not enough to decide, `max_steps` of
the evaluation; past it the pair, and no other, fails with `LimitError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Ids
from triplewire.encode.decode import Decoder
from triplewire.errors import TriplewireError
from triplewire.ir.evaluate import Answer, World, evaluate
from triplewire.ir.nodes import Expression
from triplewire.ir.subscription import Subscription
from triplewire.kernels.solutions import MATCH, MISS, MORE, UNKNOWN
from triplewire.model.publication import Publication
from triplewire.select.features import Features
from triplewire.select.programs import DISTINCT, EXACT, Programs
from triplewire.select.tests import Tests
from triplewire.verify.answers import LazyTests
from triplewire.verify.cut import Cuts
from triplewire.verify.rows import Bindings, gathered
from triplewire.verify.solve import Pairs, Solver, ends

Publications = Callable[[int], Publication]
_ROWS = 1 << 20  # that are put together at once, to count how many there are

Failure = tuple[int, int, TriplewireError]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The pairs that match, each once, ascending; and the pairs that could not be decided, with the reason."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    failures: list[Failure] = field(default_factory=list)


class Columnar:
    """Verifies for one segment. Any thread may ask it.

    `expression` gives the lazy test with a number, `subscription` the subscription with a number, as it is evaluated.
    """

    def __init__(
        self,
        programs: Programs,
        tests: Tests,
        expression: Callable[[int], Expression],
        subscription: Callable[[int], Subscription],
        world: World,
    ) -> None:
        self._programs = programs
        self._subscription = subscription
        self._world = world
        self._owner = programs.owners()
        exact = (programs.flags & EXACT) != 0
        self._width = np.where(exact, programs.selected, 0).astype(np.int32)
        self._solver = Solver(
            programs, self._width[self._owner], tests, LazyTests(len(tests), expression, world), world
        )

    def verify(
        self,
        batch: Batch,
        features: Features,
        publication: Ids,
        clause: Ids,
        publications: Publications | None = None,
    ) -> Verdict:
        """Which pairs (publication, subscription) match, of these pairs (publication, clause)? `publications` gives a
        publication by its number, with all that is known of it; without it, with what the batch holds."""
        if not len(clause):
            return Verdict(publication, clause, np.zeros(0, np.bool_))
        publications = publications or Decoder(batch).publication
        pairs, subscription = self._grouped(publication, clause)
        exact = (self._programs.flags[subscription] & EXACT) != 0
        outcome = self._solver.solve(batch, features, pairs, False, publications).outcome
        truncated = outcome == MORE
        unsure = np.flatnonzero(truncated & ~self._counted(pairs, subscription))
        step = max(_ROWS // self._most, 1)
        for again in (unsure[start : start + step] for start in range(0, len(unsure), step)):
            some = pairs.taken(again)
            solved = self._solver.solve(batch, features, some, True, publications)
            outcome[again] = solved.outcome
            truncated[again] = gathered(solved, some, self._most).more
        matches = exact & ((outcome == MATCH) | (outcome == MORE))
        failures: list[Failure] = []
        for at in np.flatnonzero((outcome != MISS) & ~matches).tolist():
            where, number = int(pairs.publication[at]), int(subscription[at])
            answer = self._evaluated(where, number, publications, failures)
            matches[at] = answer is not None and bool(answer.bindings)
            truncated[at] = answer is not None and answer.truncated
        return Verdict(pairs.publication[matches], subscription[matches], truncated[matches], failures)

    def bindings(
        self,
        batch: Batch,
        features: Features,
        publication: Ids,
        subscription: Ids,
        publications: Publications | None = None,
    ) -> Bindings:
        """The bindings of pairs that match, in their order. Those of a subscription that its clauses do not say are
        what `triplewire.ir.evaluate` answers; so are those that are cut, where `Cuts` does not find the same. Raises
        what it raises."""
        publications = publications or Decoder(batch).publication
        order = np.argsort(publication, kind="stable")
        programs, own = self._programs, subscription[order]
        exact = (programs.flags[own] & EXACT) != 0
        lengths = np.where(exact, programs.clause_offset[own + 1] - programs.clause_offset[own], 0)
        offset = ends(lengths)
        clauses = np.arange(offset[-1]) + np.repeat(programs.clause_offset[:-1][own] - offset[:-1], lengths)
        pairs = Pairs(publication[order], offset, clauses.astype(np.int32), self._width[own])
        solved = self._solver.solve(batch, features, pairs, True, publications)
        found, cuts = gathered(solved, pairs, self._most), Cuts(batch, publications, self._world)
        for at in np.flatnonzero(~exact | found.more | (solved.outcome >= UNKNOWN)).tolist():
            one, number = self._subscription(int(own[at])), int(pairs.publication[at])
            if not found.more[at] or not found.replace(at, cuts.rows(number, one)):
                found.answers[at] = evaluate(one, publications(number), self._world)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return found.ordered(places)

    @property
    def _most(self) -> int:
        return self._world.settings.max_bindings

    def _grouped(self, publication: Ids, clause: Ids) -> tuple[Pairs, Ids]:
        """The clauses of each pair (publication, subscription), and its subscription."""
        keys = np.sort(publication.astype(np.int64) << 32 | clause)
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        keys = keys[first]
        publication, clause = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
        owner = self._owner[clause]
        first = np.ones(len(keys), np.bool_)
        first[1:] = (owner[1:] != owner[:-1]) | (publication[1:] != publication[:-1])
        begins = np.flatnonzero(first)
        subscription = owner[begins]
        offset = np.append(begins, len(keys))
        return Pairs(publication[begins], offset, clause, self._width[subscription]), subscription

    def _counted(self, pairs: Pairs, subscription: Ids) -> NDArray[np.bool_]:
        """Are solutions surely counted once each?"""
        distinct = (self._programs.flags[subscription] & DISTINCT) != 0
        counted: NDArray[np.bool_] = distinct & (np.diff(pairs.offset) == 1)
        return counted

    def _evaluated(
        self, publication: int, number: int, publications: Publications, failures: list[Failure]
    ) -> Answer | None:
        try:
            answer = evaluate(self._subscription(number), publications(publication), self._world)
        except TriplewireError as error:
            failures.append((publication, number, error))
            return None
        failures.extend((publication, number, error) for error in answer.failures)
        return answer
