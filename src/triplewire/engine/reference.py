"""Snapshots of the matcher "reference": every pair, by the reference meaning. Slow, obvious, and right by definition.

The interpreted tier (`triplewire.engine.tiers`) matches with it, too. The subscriptions of one publication share its
operator calls (`triplewire.verify.operators`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.encode.strings import TextColumn
from triplewire.engine.chunk import Chunk, Detail, Details, Install, Rows
from triplewire.engine.compiler import Compiler, row_of
from triplewire.engine.stats import Clock, LookedAt
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.evaluation.evaluate import Answer
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.tables import kept_line, line_of
from triplewire.model.match import first_bindings
from triplewire.verify.operators import CallCounts, OperatorStage, threaded_map

if TYPE_CHECKING:
    from triplewire.languages.sources.row_columns import RowColumns
    from triplewire.languages.sources.rows import Row


class Reference:
    """What the matcher's name "reference" stands for: every pair, by the reference meaning."""


REFERENCE = Reference()
_RECENT = 256  # changes that are kept beside the large table, at least


class ReferenceSnapshot:
    """Subscriptions as objects. They are numbered in the order of their ids.

    There are two tables, so that a change copies the small one only. `recent` has the changes since `stated` was made:
    id -> subscription, or None where it was removed.
    """

    columnar = False

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self._stated: Mapping[str, Subscription] = {}
        self._recent: Mapping[str, Subscription | None] = {}
        self._count = 0
        self._stage = OperatorStage(compiler.world, learned=compiler.learned)
        self._sorted: tuple[Subscription, ...] | None = None  # as they are evaluated, made for the first publications

    def by_template(self, row: Mapping[str, Any]) -> Subscription | None:
        """See `triplewire.engine.chunk.Snapshot`."""
        return None

    def changed(self, added: Sequence[Subscription], removed: Collection[str], *, plain: bool = False) -> Self:
        """See `triplewire.engine.chunk.Snapshot`."""
        recent, count = dict(self._recent), self._count
        for id_ in removed:
            if self._lookup(recent, id_) is not None:
                recent[id_] = None
                count -= 1
        for subscription in added:
            recent.pop(subscription.id, None)  # it goes to the end
            recent[subscription.id] = subscription
        stated = self._stated
        if len(recent) ** 2 > max(len(stated), _RECENT**2):
            stated = {id_: subscription for id_, subscription in stated.items() if id_ not in recent}
            stated |= {id_: subscription for id_, subscription in recent.items() if subscription is not None}
            recent = {}
        other = copy(self)
        other._stated, other._recent, other._count, other._sorted = stated, recent, count + len(added), None
        return other

    def with_compiler(self, compiler: Compiler) -> Self:
        """See `triplewire.engine.chunk.Snapshot`."""

        def again(subscription: Subscription) -> Subscription:
            return compiler.checked_again(subscription, self.compiler)

        other = copy(self)
        other.compiler = compiler
        other._stage = OperatorStage(compiler.world, learned=compiler.learned)
        other._stated = {id_: again(subscription) for id_, subscription in self._stated.items()}
        other._recent = {id_: None if changed is None else again(changed) for id_, changed in self._recent.items()}
        other._sorted = None
        return other

    def background_work(self) -> Callable[[], Install] | None:
        """Nothing."""
        return None

    def _lookup(self, recent: Mapping[str, Subscription | None], id: str) -> Subscription | None:
        return recent[id] if id in recent else self._stated.get(id)

    def get(self, id: str) -> Subscription | None:
        """See `triplewire.engine.chunk.Snapshot`."""
        return self._lookup(self._recent, id)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __len__(self) -> int:
        return self._count

    def registered(self, ids: Collection[str]) -> set[str]:
        """See `triplewire.engine.chunk.Snapshot`."""
        return {id for id in ids if id in self}

    def unchanged(self, rows: Sequence[Row] | RowColumns) -> NDArray[np.bool_]:
        """See `triplewire.engine.chunk.Snapshot`."""
        each = ((row, self.get(row.id)) for row in rows if not isinstance(row, Refusal))
        same = [stated is not None and line_of(row_of(stated)) == kept_line(row) for row, stated in each]
        return np.array(same, np.bool_)

    def all_ids(self) -> list[str]:
        """See `triplewire.engine.chunk.Snapshot`."""
        return [subscription.id for subscription in self._each()]

    def left_to_verification(self) -> list[str]:
        """See `triplewire.engine.chunk.Snapshot`: there is no index."""
        return []

    def all(self, start: int = 0) -> Iterator[Subscription]:
        """See `triplewire.engine.chunk.Snapshot`."""
        return islice(self._each(), start, None)

    def _each(self) -> Iterator[Subscription]:
        for id_, subscription in self._stated.items():
            if id_ not in self._recent:
                yield subscription
        yield from (added for added in self._recent.values() if added is not None)

    def _meant(self) -> tuple[Subscription, ...]:
        """The subscriptions as they are evaluated, by number. At worst two threads make them at once."""
        if self._sorted is None:
            self._sorted = tuple(sorted(map(self.compiler.meant, self._each()), key=attrgetter("id")))
        return self._sorted

    def match(self, chunk: Chunk, stage: Clock) -> Rows:
        """See `triplewire.engine.chunk.Snapshot`."""
        with stage("load"):
            subscriptions = self._meant()
        pairs: list[tuple[int, int, bool]] = []
        details: list[Detail] = []
        failures: list[tuple[int, int, TriplewireError]] = []
        candidates = len(chunk) * len(subscriptions)
        publications = list(map(chunk.publication, range(len(chunk))))
        triples = sum(len(current.triples) for current in publications)
        at_once, world = self._stage.caller.at_once, self.compiler.world
        most_bytes = world.settings.max_binding_bytes
        counts = [CallCounts() for _ in publications]

        def decide(place: int) -> list[Answer | TriplewireError]:
            current, calls = publications[place], chunk.calls.of(place)
            return self._stage.decide(current, subscriptions, calls, counts[place], world.known(current))

        decided = threaded_map(decide, range(len(publications)), at_once)
        for row in range(len(chunk)):
            with stage("verify"):
                outcomes = next(decided)
            for number, outcome in enumerate(outcomes):
                if isinstance(outcome, TriplewireError):
                    failures.append((row, number, outcome))
                elif outcome.bindings:
                    bindings = first_bindings(outcome.bindings, most_bytes)
                    pairs.append((row, number, outcome.truncated or len(bindings) < len(outcome.bindings)))
                    details.append((bindings, subscriptions[number].construct))
                elif outcome.undecided:
                    failures += [(row, number, failure) for failure in outcome.failures]
        if world.recall is not None:
            world.recall.flush()
        operators = CallCounts()
        for calls in counts:
            operators.add(calls)
        return Rows(
            np.array([row for row, _, _ in pairs], np.int32),
            np.array([number for _, number, _ in pairs], np.int32),
            np.array([is_cut for _, _, is_cut in pairs], np.bool_),
            tuple(failures), LookedAt(triples, 0, candidates, candidates), details, operators=operators,
        )  # fmt: skip

    def details(self, chunk: Chunk, rows: Rows, places: NDArray[np.int64]) -> Details:
        """See `triplewire.engine.chunk.Snapshot`."""
        assert rows.details is not None
        return Details.of([rows.details[place] for place in places.tolist()])

    def ranks(self, numbers: Ids) -> NDArray[np.int64]:
        """See `triplewire.engine.chunk.Snapshot`."""
        return numbers.astype(np.int64)

    def ids(self, numbers: Ids) -> list[str]:
        """See `triplewire.engine.chunk.Snapshot`."""
        subscriptions = self._meant()
        return [subscriptions[number].id for number in numbers.tolist()]

    def id_column(self, numbers: Ids) -> TextColumn:
        """See `triplewire.engine.chunk.Snapshot`."""
        return TextColumn.of([id_.encode("utf-8", "surrogatepass") for id_ in self.ids(numbers)])

    @property
    def id_array(self) -> None:
        """See `triplewire.engine.chunk.Snapshot`."""
        return None

    def revisions(self, numbers: Ids) -> NDArray[np.uint64]:
        """See `triplewire.engine.chunk.Snapshot`."""
        return np.array([int(self.revision(id_), 16) for id_ in self.ids(numbers)], np.uint64)

    def revision(self, id: str) -> str:
        """See `triplewire.engine.chunk.Snapshot`."""
        subscription = self.get(id)
        return subscription.revision if subscription is not None else ""
