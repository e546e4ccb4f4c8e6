"""Engines that share what another one has, without its texts being compiled again."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from triplewire.engine.engine import Engine
from triplewire.engine.tiers.matcher import empty_snapshot
from triplewire.ir.subscription import Subscription


def derived_engine(engine: Engine, added: Iterable[Subscription] = (), removed: Collection[str] = ()) -> Engine:
    """An engine with the subscriptions of another, without those `removed` (ids), and then with those `added`.

    Both share arrays that never change; later changes of the one are not seen by the other. A removed id may be added
    anew.
    """
    snapshot = engine._snapshot.changed((), removed) if removed else engine._snapshot
    new = tuple(added)
    # those that their text gives by itself need no proof of that
    for plain, group in ((True, [s for s in new if not s.rules]), (False, [s for s in new if s.rules])):
        if group:
            snapshot = snapshot.changed(group, (), plain=plain)
    return engine._with(snapshot)


def empty_engine(engine: Engine) -> Engine:
    """An engine of the same taxonomy, operators, limits, matcher and entailment, without subscriptions."""
    return engine._with(empty_snapshot(engine._matcher, engine._compiler))
