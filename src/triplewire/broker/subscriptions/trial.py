"""Queries tried out before they are registered: what is wrong with each, its warnings, and what it will cost.

    {"matches_a_day": 3.2, "share": 0.004, "microseconds": 35.1, "of": 1000}

is a price: `share` of the last `of` publications that its owner may see match; at the rate at which these came, so many
do a day; and matching one of them took so much time of a processor. Of several queries that are tried together, the
time is the mean of all. What calls operators has no price: calls may take long, and cost something.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from triplewire.broker.publications.window import Kept
from triplewire.engine import Engine
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.walk import calls_in
from triplewire.languages.sources.rows import Row
from triplewire.model.origins import FROM_SOURCE
from triplewire.store.database import DAY

SECONDS = 0.5  # after which no more publications are tried: `of` says how many were
FEW = 20  # queries up to which no index is worth its building
MANY = 1_000  # queries from which they are loaded as a table is, which waits for kernels

_MOST_STEPS = 50_000  # of one pair
_AT_ONCE = 50  # publications between looks at the clock


class Query(NamedTuple):
    """A query as somebody asks for it."""

    text: str
    language: str
    prefixes: Mapping[str, str] | None = None


def engine_like(engine: Engine, most_steps: int, matcher: str = "reference") -> Engine:
    """An engine without subscriptions, of the same taxonomy and operators, and with fewer steps for a pair."""
    settings = replace(engine.settings, max_steps=min(most_steps, engine.settings.max_steps))
    return Engine(matcher=matcher, taxonomy=engine.taxonomy, operators=engine.operators, settings=settings)


class Trial:
    """Some queries in an engine of their own. `answers`: of each, by its place, the warnings, or what is wrong with it.
    `engine` has the taxonomy, the operators and the limits."""

    name = "queries"

    def __init__(self, queries: Sequence[Query], engine: Engine) -> None:
        self._queries = queries
        self._engine = engine_like(engine, _MOST_STEPS, "reference" if len(queries) <= FEW else "trie")
        self.answers: list[tuple[str, ...] | TriplewireError] = [()] * len(queries)
        refused: Sequence[int] = range(len(queries))
        if len(queries) > MANY:
            refused = self._loaded()
        for place in refused:
            text, language, prefixes = queries[place]
            try:
                registered = self._engine.subscribe(text, language, id=str(place), prefixes=prefixes)
                self.answers[place] = registered.warnings
            except TriplewireError as error:
                self.answers[place] = error

    def _loaded(self) -> list[int]:
        """Register all as a table is loaded; returns those that are refused."""
        refused: list[int] = []

        def warn(id: str, warning: str) -> None:
            earlier = self.answers[int(id)]
            assert isinstance(earlier, tuple)
            self.answers[int(id)] = (*earlier, warning)

        self._engine.load_subscriptions(
            self, on_refusal=lambda refusal: refused.append(int(refusal.subject)), on_warning=warn
        )
        return refused

    def rows(self, ids: Collection[str] | None = None) -> Iterator[Row | Refusal]:
        """The queries as a table of texts (`triplewire.languages.sources.tables`)."""
        for place in range(len(self._queries)) if ids is None else map(int, ids):
            text, language, prefixes = self._queries[place]
            yield Row(str(place), language, text, prefixes or {}, source="the list", table=self.name)

    def prices(self, window: Sequence[Kept]) -> list[dict[str, Any]]:
        """The price of each query by these publications; {} where it is not known, or the query is refused."""
        calling = self._remove_calls()
        prices: list[dict[str, Any]] = [{} for _ in self._queries]
        if not (window and len(self._engine)):
            return prices
        counts: Counter[str] = Counter()
        tried, seconds, end = 0, 0.0, time.monotonic() + SECONDS
        while tried < len(window) and time.monotonic() < end:
            part = [seen.publication for seen in window[tried : tried + _AT_ONCE]]
            begun = time.thread_time()
            counts.update(self._engine.match(part).subscription_ids)
            seconds += time.thread_time() - begun
            tried += len(part)
        days = max((window[0].received - window[tried - 1].received) / DAY, 1 / 24)
        microseconds = round(seconds * 1e6 / tried / len(self._engine), 1)
        for place, price in enumerate(prices):
            if place not in calling and isinstance(self.answers[place], tuple):
                count = counts[str(place)]
                price |= {"matches_a_day": round(count / days, 2), "share": count / tried}
                price |= {"microseconds": microseconds, "of": tried}
        return prices

    def _remove_calls(self) -> set[int]:
        """Take queries that call operators out of the engine; returns their places."""
        calling: set[int] = set()
        named = re.compile("|".join(map(re.escape, {*self._engine.operators} - {FROM_SOURCE})) or "(?!)")
        for place, query in enumerate(self._queries):
            subscription = self._engine.get(str(place)) if named.search(query.text) else None
            if subscription and any(call.operator != FROM_SOURCE for call in calls_in(subscription.where)):
                self._engine.unsubscribe(str(place))
                calling.add(place)
        return calling
