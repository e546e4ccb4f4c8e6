"""Caches that are bounded by what they weigh, not by the number of their entries alone.

`BoundedCache` has random replacement. Least-recently-used replacement would never hit: each publication asks for all
subscriptions in the same order, so the entry that was used longest ago is the one that is asked for next.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Generic, TypeVar, cast

from triplewire.forks import new_lock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])


def cached_if_short(entries: int, longest: int) -> Callable[[F], F]:
    """Like `functools.lru_cache`, for functions whose first argument comes from publications or subscriptions: where it
    has more than `longest` characters or members, the value is made each time, and not kept."""

    def decorate(function: F) -> F:
        cached = lru_cache(entries)(function)

        @wraps(function)
        def call(first: Any, *others: Hashable) -> Any:
            return (cached if len(first) <= longest else function)(first, *others)

        return cast(F, call)

    return decorate


class BoundedCache(Generic[K, V]):
    """Values by key. Together they weigh at most the limit given to `put`, or one heavier value is there alone.

    Any number of threads may use it.
    """

    def __init__(self) -> None:
        self.weight = 0
        self._entries: dict[K, tuple[V, int]] = {}
        self._keys: list[K] = []  # in any order
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value, if it is there."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def get_or_make(self, key: K, make: Callable[[], V], weight: int, most: int) -> V:
        """The value. Where it is not there, `make` makes it, and it is kept. Raises what `make` raises."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value, weight, most)
        return value

    def put(self, key: K, value: V, weight: int, most: int) -> bool:
        """Add or replace a value, then evict random entries until all weigh at most `most`, or one is left.

        Returns whether the limit was exceeded before the eviction.
        """
        with self._lock:
            before = self._entries.get(key)
            if before is None:
                self._keys.append(key)
            self._entries[key] = value, weight
            self.weight += weight - (0 if before is None else before[1])
            is_full = self.weight > most
            while self.weight > most and len(self._keys) > 1:
                place = random.randrange(len(self._keys))
                dropped, self._keys[place] = self._keys[place], self._keys[-1]
                self._keys.pop()
                # there is none where a process was forked while another thread was in this block
                self.weight -= self._entries.pop(dropped, (value, 0))[1]
            return is_full
