"""Snapshots of a matcher that is a selector and a verifier: "reference", and most plug-ins.

Such a matcher stands over one fixed set of subscriptions, kept here as objects. After a change it is made anew when the
next publications come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.errors import TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.matchers import Chunk, Detail, Details, Install, MakeMatcher, Matcher, Meaning, Rows, Stage

_RECENT = 256  # changes that are kept beside the large table, at least


class PairSnapshot:
    """Subscriptions, and the matcher over them. They are numbered in the order of their ids.

    Two tables, so that a change copies the small one only: `recent` says what became of ids after `stated` was made,
    None where it was removed.
    """

    columnar = False

    def __init__(
        self,
        make: MakeMatcher,
        meaning: Meaning,
        stated: Mapping[str, Subscription] | None = None,
        recent: Mapping[str, Subscription | None] | None = None,
        count: int = 0,
    ) -> None:
        self._make = make
        self._meaning = meaning
        self._stated = stated or {}
        self._recent = recent or {}
        self._count = count
        self._lock = threading.Lock()  # held by the reader that makes the matcher
        self._made: _Made | None = None

    def changed(self, added: Sequence[Subscription], removed: Collection[str], *, plain: bool = False) -> PairSnapshot:
        """See `triplewire.matchers.Snapshot`."""
        recent, count = dict(self._recent), self._count
        for id_ in removed:
            if self._found(recent, id_) is not None:
                recent[id_] = None
                count -= 1
        for one in added:
            recent.pop(one.id, None)  # it goes to the end
            recent[one.id] = one
        count += len(added)
        if len(recent) ** 2 <= max(len(self._stated), _RECENT**2):
            return PairSnapshot(self._make, self._meaning, self._stated, recent, count)
        whole = {id_: one for id_, one in self._stated.items() if id_ not in recent}
        whole |= {id_: one for id_, one in recent.items() if one is not None}
        return PairSnapshot(self._make, self._meaning, whole, {}, count)

    def due(self) -> Callable[[], Install] | None:
        """Nothing."""
        return None

    def _found(self, recent: Mapping[str, Subscription | None], id: str) -> Subscription | None:
        return recent[id] if id in recent else self._stated.get(id)

    def get(self, id: str) -> Subscription | None:
        """See `triplewire.matchers.Snapshot`."""
        return self._found(self._recent, id)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __len__(self) -> int:
        return self._count

    def all(self, start: int = 0) -> Iterator[Subscription]:
        """See `triplewire.matchers.Snapshot`."""
        return islice(self._each(), start, None)

    def _each(self) -> Iterator[Subscription]:
        for id_, one in self._stated.items():
            if id_ not in self._recent:
                yield one
        for found in self._recent.values():
            if found is not None:
                yield found

    def _ready(self) -> _Made:
        if self._made is None:
            with self._lock:
                if self._made is None:
                    meant = tuple(map(self._meaning.meant, self._each()))
                    self._made = _Made(self._make(meant, self._meaning.world), meant)
        return self._made

    def match(self, chunk: Chunk, stage: Stage) -> Rows:
        """See `triplewire.matchers.Snapshot`."""
        with stage("load"):
            made = self._ready()
        publication: list[int] = []
        subscription: list[int] = []
        truncated: list[bool] = []
        details: list[Detail] = []
        failures: list[tuple[int, int, TriplewireError]] = []
        triples = candidates = 0
        for row in range(len(chunk)):
            one = chunk.publication(row)
            triples += len(one.triples)
            with stage("select"):
                some = made.matcher.selector.candidates(one)
            candidates += len(some)
            with stage("verify"):
                for asked, outcome in made.matcher.verifier.verify(one, some):
                    number = made.numbers[asked.id]
                    if isinstance(outcome, TriplewireError):
                        failures.append((row, number, outcome))
                        continue
                    failures += [(row, number, failure) for failure in outcome.failures]
                    if outcome.bindings:
                        publication.append(row)
                        subscription.append(number)
                        truncated.append(outcome.truncated)
                        details.append((outcome.bindings, asked.construct))
        return Rows(
            np.array(publication, np.int32),
            np.array(subscription, np.int32),
            np.array(truncated, np.bool_),
            tuple(failures),
            triples=triples,
            candidates=candidates,
            verified=candidates,
            details=details,
        )

    def details(self, chunk: Chunk, rows: Rows, places: NDArray[np.int64]) -> Details:
        """See `triplewire.matchers.Snapshot`."""
        assert rows.details is not None
        return Details.of([rows.details[place] for place in places.tolist()])

    def ranks(self, numbers: Ids) -> NDArray[np.int64]:
        """See `triplewire.matchers.Snapshot`."""
        return numbers.astype(np.int64)

    def ids(self, numbers: Ids) -> list[str]:
        """See `triplewire.matchers.Snapshot`."""
        names = self._ready().ids
        return [names[number] for number in numbers.tolist()]


class _Made:
    """A matcher, and the numbers of its subscriptions."""

    def __init__(self, matcher: Matcher, subscriptions: Sequence[Subscription]) -> None:
        self.matcher = matcher
        self.ids = sorted(one.id for one in subscriptions)
        self.numbers = {id_: number for number, id_ in enumerate(self.ids)}
