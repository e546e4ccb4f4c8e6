"""The seam of verification: who decides what an index leaves open, and lists the bindings of matches.

The default is the join network (`triplewire.verify.batch_verifier`). A matcher brings its own where its maker has a
method `verifier` (`VerifierMaker`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.view import View
from triplewire.encode.batch import Ids
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Expression
from triplewire.ir.subscription import Subscription
from triplewire.select.index import Index
from triplewire.verify.operators import Content
from triplewire.verify.rows import Bindings, Row

Failure = tuple[int, int, TriplewireError]


@dataclass(slots=True)
class Verified:
    """What became of pairs. Those that match are columns, each pair once. `failures` could not be decided, and say why.
    `waiting` are the pairs (publication, subscription) that operators have to decide. `join_steps`: shared ones that
    were solved."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    failures: list[Failure] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    join_steps: int = 0

    def distinct(self, has_alternatives: NDArray[np.bool_]) -> Verified:
        """Each pair once: of the clauses of an ASK query each may be a match. `has_alternatives`: subscription -> has
        it several clauses?"""
        several = np.flatnonzero(has_alternatives[self.subscription])
        keys = self.publication[several].astype(np.int64) << 32 | self.subscription[several]
        is_first = np.ones(len(self.publication), np.bool_)
        is_first[np.delete(several, np.unique(keys, return_index=True)[1])] = False
        if is_first.all():
            return self
        columns = self.publication[is_first], self.subscription[is_first], self.truncated[is_first]
        return Verified(*columns, self.failures, self.waiting, self.join_steps)


class Verifier(Protocol):
    """Verifies for one segment, which never changes. Any thread may ask it."""

    @property
    def network_rows(self) -> int:
        """How many rows the join network has, its steps and its nodes; 0 where there is none, or not yet."""

    def verify(self, view: View, publication: Ids, place: Ids, content: Content) -> Verified:
        """Which pairs (publication, subscription) match, of these pairs of a publication and the place of a clause in
        the order of the index? What had to be evaluated is added to the answers of `content`."""

    def bindings(self, view: View, publication: Ids, subscription: Ids, content: Content) -> Bindings:
        """The bindings of pairs that match, in the order of the pairs. Of more than `max_bindings` those that are kept
        depend on the publication and the subscription alone."""

    def few_rows(self, view: View, publication: Ids, subscription: Ids) -> list[list[Row]] | None:
        """The rows of `bindings` of a few pairs, ascending by publication, in any order, as Python lists. None where
        `bindings` has to be asked."""

    def prepare(self, most: int) -> None:
        """Compute in advance what this many residual predicates need."""

    def ready(self) -> None:
        """Make what the first pair would wait for, which takes a while where there are many clauses."""

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """What is saved, for `VerifierInput.saved`; nothing where nothing was made."""


@dataclass(frozen=True, slots=True)
class VerifierInput:
    """What a verifier is made of. `expression` gives the residual predicate with a number, `subscription` the
    subscription with a number, as it is evaluated. `saved`: what `arrays` gave when these clauses were saved."""

    clauses: Clauses
    index: Index
    expression: Callable[[int], Expression]
    subscription: Callable[[int], Subscription]
    world: World
    saved: Mapping[str, NDArray[Any]] | None = None


@runtime_checkable
class VerifierMaker(Protocol):
    """An `IndexMaker` that brings its own verifier."""

    def verifier(self, given: VerifierInput) -> Verifier:
        """The verifier of a segment whose index this maker made."""


@runtime_checkable
class NamesClauses(Protocol):
    """An index that says whether it leaves clauses to verification as a rule. Of one that does, verifiers are made
    ready in the background and saved; of any other when something is first left to check, or bindings are asked for."""

    names_clauses: bool
