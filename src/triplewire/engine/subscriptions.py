"""The subscriptions of an engine as a sequence, a view of one moment, and its MDV rules.

Each is looked up when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import overload

from triplewire.engine.chunk import Snapshot
from triplewire.ir.subscription import Subscription


class SubscriptionsView(Sequence[Subscription]):
    """The subscriptions of a snapshot in the order of their registration. Equal to any sequence of the same ones."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def ids(self) -> list[str]:
        """Their ids, in the same order. No text is parsed for it, as for each subscription that is looked at."""
        return self._snapshot.all_ids()

    def __len__(self) -> int:
        return len(self._snapshot)

    def __iter__(self) -> Iterator[Subscription]:
        return self._snapshot.all()

    @overload
    def __getitem__(self, index: int) -> Subscription: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Subscription, ...]: ...

    def __getitem__(self, index: int | slice) -> Subscription | tuple[Subscription, ...]:
        numbers = range(len(self))[index]
        if isinstance(numbers, int):
            return next(self._snapshot.all(numbers))
        if not numbers:
            return ()
        first, last = min(numbers), max(numbers)
        span = tuple(islice(self._snapshot.all(first), last - first + 1))
        return tuple(span[number - first] for number in numbers)

    def __contains__(self, subscription: object) -> bool:
        return isinstance(subscription, Subscription) and self._snapshot.get(subscription.id) == subscription

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as lists, which it may be equal to

    def __repr__(self) -> str:
        return f"<{len(self)} subscriptions>"


class Rules(Mapping[str, Subscription]):
    """The MDV rules among subscriptions: `get` gives the one of an id, `each` gives all."""

    def __init__(self, get: Callable[[str], Subscription | None], each: Callable[[], Iterable[Subscription]]) -> None:
        self._get, self._each = get, each

    @classmethod
    def of(cls, snapshot: Snapshot) -> Rules:
        """Those of a snapshot, looked up there one by one."""
        return cls(snapshot.get, snapshot.all)

    def __getitem__(self, name: str) -> Subscription:
        rule = self._get(name)
        if rule is None or rule.language != "mdv":
            raise KeyError(name)
        return rule

    def __iter__(self) -> Iterator[str]:
        return (rule.id for rule in self._each() if rule.language == "mdv")

    def __len__(self) -> int:
        return sum(1 for _ in self)
