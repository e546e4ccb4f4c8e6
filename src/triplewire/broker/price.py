"""What a subscription will cost, as its owner is told at registration: from the last publications.

    {"matches_a_day": 3.2, "share": 0.004, "microseconds": 35.1, "of": 1000}

`share` of the last `of` publications that its owner may see match; at the rate at which these came, so many do a day;
and matching one of them took so long. Of several that are registered together, the time is the mean of all. What calls
operators is not tried out: calls may take long, and cost something.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from triplewire.broker.window import WINDOW, newest
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.ir.walk import calls_in
from triplewire.store.database import Database

_DAY = 86_400.0
SECONDS = 0.5  # after which no more publications are tried: `of` says how many were
_MOST_STEPS = 50_000  # of one pair
_AT_ONCE = 50
_FEW = 20  # queries up to which no index is worth its building

Query = tuple[str, str, Mapping[str, str] | None]
"""A text, its language, and prefixes."""


def prices(queries: Sequence[Query], owner: str, database: Database, engine: Engine) -> list[dict[str, Any]]:
    """The price of each of these queries, {} where it is not known. `engine` has the taxonomy and the limits. It raises
    nothing that a query is to blame for."""
    with database.reading() as connection:
        window = newest(connection, owner, WINDOW)
    if not window:
        return [{}] * len(queries)
    settings = replace(engine.settings, max_steps=min(_MOST_STEPS, engine.settings.max_steps))
    matcher = "reference" if len(queries) <= _FEW else "trie"
    trial = Engine(matcher=matcher, taxonomy=engine.taxonomy, operators=engine.operators, settings=settings)
    for number, (text, language, prefixes) in enumerate(queries):
        try:
            subscription = trial.subscribe(text, language, id=str(number), prefixes=prefixes)
        except TriplewireError:
            continue
        if any(calls_in(subscription.where)):
            trial.unsubscribe(str(number))
    if not len(trial):
        return [{}] * len(queries)
    counts: Counter[str] = Counter()
    tried, begun = 0, time.perf_counter()
    while tried < len(window) and time.perf_counter() < begun + SECONDS:
        part = [publication for _, publication in window[tried : tried + _AT_ONCE]]
        counts.update(trial.match(part).subscription_ids)
        tried += len(part)
    seconds = time.perf_counter() - begun
    received = [row.received for row, _ in window[:tried]]
    days = max((received[0] - received[-1]) / _DAY, 1 / 24)
    return [
        {
            "matches_a_day": round(counts[str(number)] / days, 2),
            "share": counts[str(number)] / tried,
            "microseconds": round(seconds * 1e6 / tried / len(trial), 1),
            "of": tried,
        }
        if str(number) in trial
        else {}
        for number in range(len(queries))
    ]
