"""From a match back to its subscription and publication: both are there as long as somebody holds the match result."""

from __future__ import annotations

from typing import TypeAlias
from weakref import ref

import numpy as np

from triplewire.argument_checks import plain_text, refuse
from triplewire.engine.arguments import check_publication
from triplewire.engine.chunk import Snapshot
from triplewire.engine.match_block import ChunkOrigin
from triplewire.engine.result import MatchResult, Part
from triplewire.errors import ArgumentError, SubscriptionError
from triplewire.forks import new_lock
from triplewire.ir.evaluation.evaluate import CallResults
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Match
from triplewire.model.publication import Publication

_WHERE = "explain(match)"
_MANY = 64  # parts that are remembered, held or not

ExplainedOf: TypeAlias = tuple[Subscription, Publication, Snapshot, CallResults]


class RecentResults:
    """Weak references to the parts of an engine's match results, as long as callers hold these."""

    def __init__(self) -> None:
        self._parts: list[ref[Part]] = []
        self._most = _MANY  # before those that nobody holds are let go
        self._lock = new_lock()

    def keep(self, result: MatchResult) -> MatchResult:
        """Remember a result for as long as it is held; returns it."""
        with self._lock:
            self._parts += map(ref, result.parts)
            if len(self._parts) > self._most:
                self._parts = [part for part in self._parts if part() is not None]
                self._most = max(2 * len(self._parts), _MANY)
        return result

    def pair(self, snapshot: Snapshot, subscription: str | Match, publication: Publication | None) -> ExplainedOf:
        """The subscription and the publication that a caller names: by id, or by a match; the snapshot in which the
        subscription is; and the operator calls about the publication of a match that its result still holds.

        Of a match, the subscription is the one that matched, even if it was removed since. Raises `SubscriptionError`
        where there is none, and `ArgumentError` where the publication is missing or is another one.
        """
        if isinstance(subscription, Match):
            return self._of_match(snapshot, subscription, publication)
        if not isinstance(subscription, str):
            raise refuse("explain(subscription)", "the id of a subscription (str), or a Match", subscription)
        registered = snapshot.get(plain_text(subscription))
        if registered is None:
            raise SubscriptionError("there is no subscription of this id", source=subscription)
        check_publication("explain(publication)", publication)
        assert publication is not None
        return registered, publication, snapshot, {}

    def _of_match(self, snapshot: Snapshot, match: Match, publication: Publication | None) -> ExplainedOf:
        with self._lock:
            known = [reference() for reference in self._parts]
        parts = (part for part in known if part is not None and part.matched_at == match.matched_at)
        part, numbers = next(((part, numbers) for part in parts if (numbers := _numbers(part, match))), (None, []))
        calls: CallResults = {}
        if part is not None:
            snapshot = part.snapshot
            calls = dict(part.chunk.calls.of(numbers[0])) if len(numbers) == 1 else {}
        elif isinstance(match.origin, ChunkOrigin):  # a copy from another process has none
            snapshot = match.origin.snapshot
        registered = snapshot.get(match.subscription)
        if registered is None or match.revision not in ("", registered.revision):
            what = "the match's subscription is not registered" + (", but another of its id" if registered else "")
            raise SubscriptionError(what, source=match.subscription, remedy="subscribe it again")
        if publication is not None:
            check_publication("explain(publication)", publication)
            if publication.id != match.publication:
                what = f"the match is one of {match.publication!r}, the publication given is {publication.id!r}"
                raise ArgumentError(what, source=_WHERE)
            return registered, publication, snapshot, calls
        remedy = "give it as well: engine.explain(match, publication)"
        if part is None:
            what = f"the publication {match.publication!r} is missing: the match result that held it is gone"
            raise ArgumentError(what, source=_WHERE, remedy=remedy)
        graphs = {item.graph.triples: item for item in map(part.chunk.publication, numbers)}
        if len(graphs) != 1:
            what = f"{len(graphs)} publications of the id {match.publication!r} were matched together"
            raise ArgumentError(what, source=_WHERE, remedy=remedy)
        return registered, next(iter(graphs.values())), snapshot, calls


def _numbers(part: Part, match: Match) -> list[int]:
    """The numbers of the chunk's publications that have the match's id and matched its subscription."""
    numbers = [number for number, id in enumerate(part.publications) if id == match.publication]
    if not numbers:
        return []
    rows = np.flatnonzero(np.isin(part.rows.publication, numbers))
    places, ids = part.rows.publication[rows].tolist(), part.snapshot.ids(part.rows.subscription[rows])
    return sorted({place for place, id in zip(places, ids, strict=True) if id == match.subscription})
