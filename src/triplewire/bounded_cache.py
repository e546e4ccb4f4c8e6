"""Caches that are bounded by what they weigh, not by the number of their entries alone.

`BoundedCache` has random replacement. Least-recently-used replacement would never hit: each publication asks for all
subscriptions in the same order, so the entry that was used longest ago is the one that is asked for next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast

from cachetools import RRCache

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
        self._entries: RRCache[K, tuple[V, int]] = RRCache(math.inf, getsizeof=itemgetter(1))
        self._lock = new_lock()

    @property
    def weight(self) -> int:
        """What the values weigh together."""
        return int(self._entries.currsize)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """The value, if it is there."""
        try:
            value: V = self._entries[key][0]
        except KeyError:
            return None
        return value

    def get_or_make(self, key: K, make: Callable[[], V], weight: int, most: int) -> V:
        """The value. Where it is not there, `make` makes it, and it is kept. Raises what `make` raises."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value, weight, most)
        return value

    def put(self, key: K, value: V, weight: int, most: int) -> bool:
        """Add or replace a value. Before, random ones are dropped until all weigh at most `most`, or none is left;
        returns whether there was need."""
        with self._lock:
            entries, is_full = self._entries, False
            try:
                entries.pop(key, None)
                is_full = entries.currsize + weight > most
                while len(entries) and entries.currsize + weight > most:
                    entries.popitem()
            except KeyError:  # in a process that was forked while another thread was in this block
                entries.clear()
            entries[key] = value, weight
            return is_full
