"""The verifier for batches: clauses are joined by a kernel over ids, and only what they do not say is evaluated.

Pairs come from `triplewire.select.walk`. A subscription whose clauses say all is decided by them alone; for any other
they are the first hurdle, and `triplewire.ir.evaluate` decides. Bindings: `triplewire.verify.rows`.

What one pair can cost: `max_steps` triples tried by the join and, where that was not enough to decide, `max_steps` of
the evaluation; past it the pair, and no other, fails with `LimitError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Ids
from triplewire.encode.decode import Decoder
from triplewire.errors import TriplewireError
from triplewire.ir.evaluate import Answer, World, evaluate
from triplewire.ir.nodes import Expression
from triplewire.ir.subscription import Subscription
from triplewire.kernels.alike import forms
from triplewire.kernels.solutions import MATCH, MISS, MORE, UNKNOWN
from triplewire.model.publication import Publication
from triplewire.select.columns import ends
from triplewire.select.features import Features
from triplewire.select.programs import DISTINCT, EXACT, Programs
from triplewire.select.tests import Tests
from triplewire.verify.answers import LazyTests
from triplewire.verify.cut import Cuts
from triplewire.verify.rows import Bindings, distinct, gathered
from triplewire.verify.solve import Pairs, Solver, fixed

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
        what it raises. Pairs of one publication and the same clauses are solved once."""
        publications = publications or Decoder(batch).publication
        number, first = distinct(publication.astype(np.int64) << 32 | self._forms[subscription])
        first = first[np.argsort(publication[first], kind="stable")]
        found, unsure = self._solved(batch, features, publication[first], subscription[first], publications)
        group = np.empty(len(first), np.int32)
        group[number[first]] = np.arange(len(first))
        found = found.of_groups(group[number])
        cuts, own = Cuts(batch, publications, self._world), {}
        for at in np.flatnonzero(unsure[found.group]).tolist():
            one, place = self._subscription(int(subscription[at])), int(publication[at])
            rows = cuts.rows(place, one) if found.more[at] else None
            if rows is not None and rows.shape == (found.count[at], found.width[at]):
                own[at] = rows
            else:
                found.answers[at] = evaluate(one, publications(place), self._world)
        return found.replaced(own)

    def _solved(
        self, batch: Batch, features: Features, publication: Ids, subscription: Ids, publications: Publications
    ) -> tuple[Bindings, NDArray[np.bool_]]:
        """What the clauses say of pairs, ascending by publication; and where that is not all, or too much."""
        programs = self._programs
        exact = (programs.flags[subscription] & EXACT) != 0
        begin = programs.clause_offset[:-1][subscription]
        lengths = np.where(exact, programs.clause_offset[subscription + 1] - begin, 0)
        offset = ends(lengths)
        clauses = np.arange(offset[-1]) + np.repeat(begin - offset[:-1], lengths)
        pairs = Pairs(publication, offset, clauses.astype(np.int32), self._width[subscription])
        solved = self._solver.solve(batch, features, pairs, True, publications)
        found = gathered(solved, pairs, self._most)
        return found, ~exact | found.more | (solved.outcome >= UNKNOWN)

    @cached_property
    def _forms(self) -> Ids:
        """Of each subscription, the first that has the same clauses, where they say all."""
        programs = self._programs
        exact = (programs.flags & EXACT) != 0
        kind = np.where(exact, programs.selected, -1 - np.arange(len(programs))).astype(np.int32)
        form, slots = np.empty(len(kind), np.int32), np.full(1 << (2 * len(kind)).bit_length(), -1, np.int32)
        clause, first, pattern = fixed(programs.clause_offset, programs.pattern_offset, programs.pattern.reshape(-1))
        first_test, variable, test = fixed(programs.test_offset, programs.test_variable, programs.test)
        forms(kind, clause, first, pattern, first_test, variable, test, slots, form)
        return form

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
