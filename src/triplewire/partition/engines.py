"""An engine of some subscriptions, made from their texts where that gives the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from triplewire.engine import Engine
from triplewire.engine.compiler import line_of, row_of
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.plugins import DEFAULT_MATCHER


def engine_of(
    subscriptions: Iterable[Subscription], world: World, entailment: str = "none", matcher: str = DEFAULT_MATCHER
) -> Engine:
    """An engine of this world and entailment with these subscriptions. Raises what `Engine.subscribe` raises."""
    engine = Engine(
        taxonomy=world.taxonomy,
        matcher=matcher,
        operators=world.operators,
        settings=world.settings,
        entailment=entailment,
    )
    add(engine, subscriptions)
    return engine


def add(engine: Engine, subscriptions: Iterable[Subscription]) -> None:
    """Register subscriptions as they are. What an MDV rule means depends on others, and what a program made has no
    text: these are taken one at a time."""
    with tempfile.TemporaryDirectory(prefix="triplewire-shard-") as folder:
        path, count = Path(folder, "subscriptions.jsonl"), 0
        with path.open("wb") as rows:
            for subscription in subscriptions:
                if subscription.language == "mdv" or not subscription.text:
                    engine.subscribe(subscription)
                else:
                    rows.write(line_of(row_of(subscription)))
                    count += 1
        if count:
            engine.load_subscriptions(path)
