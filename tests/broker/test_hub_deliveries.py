"""What the hub sends goes over the schedule of deliveries: W13 and W14 of WebSub."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hub_tools import Said, echo, published
from test_hub import World, world

from triplewire.broker.feeds.websub import message_of
from triplewire.service.feeds import rendered
from triplewire.store.tables import deliveries
from waiting import until

limits = pytest.importorskip("triplewire.deliver.limits")
schedule = pytest.importorskip("triplewire.deliver.schedule")
webhooks = pytest.importorskip("triplewire.deliver.webhooks")

__all__ = ["world"]


@pytest.fixture
def delivering(world: World) -> Iterator[Any]:
    """What delivers, with three tries a tenth of a second apart."""
    how = limits.DeliverySettings(allow_private_addresses=True, schedule=(0.0, 0.1, 0.1), jitter=0.0)
    posts = webhooks.Posts(how, lambda each: message_of(world.broker, each.event.subscription, each.target, rendered))
    with schedule.Deliveries(world.broker, how, channels={"websub": posts}) as delivering:
        yield delivering


def states(world: World) -> list[str]:
    """The states of all deliveries."""
    with world.broker.database.reading() as connection:
        return list(connection.execute(sa.select(deliveries.c.state).order_by(deliveries.c.number)).scalars())


@pytest.mark.usefixtures("delivering")
def test_w13_only_a_success_is_one_and_410_ends_a_subscription(world: World) -> None:
    world.subscribe()
    world.subscriber.answer = lambda came: Said(299, {}, b"its body is ignored" * 100_000)
    published(world.broker, 1)
    until(lambda: states(world) == ["delivered"])
    world.subscriber.answer = lambda came: Said(302, {"Location": "/elsewhere"}, b"")
    published(world.broker, 2)
    until(lambda: states(world) == ["delivered", "dead"])
    assert {came.path for came in world.subscriber.of("POST")} == {"/callback?x=1"}
    assert [row.state for row in world.rows()] == ["active"]
    world.subscriber.answer = lambda came: Said(410, {}, b"")
    published(world.broker, 3)
    until(lambda: [row.state for row in world.rows()] == ["gone"])
    before = len(world.subscriber.of("POST"))
    published(world.broker, 4)
    assert len(states(world)) == 3
    assert len(world.subscriber.of("POST")) == before


@pytest.mark.usefixtures("delivering")
def test_w14_who_fails_is_tried_again_and_stays_until_the_lease_ends(world: World) -> None:
    world.subscribe()
    failing = [500, 404]
    world.subscriber.answer = lambda came: Said(failing.pop(0) if failing else 200, {}, b"")
    published(world.broker, 1)
    until(lambda: states(world) == ["delivered"])
    assert len(world.subscriber.of("POST")) == 3
    world.subscriber.answer = lambda came: Said(500, {}, b"")
    published(world.broker, 2)
    until(lambda: states(world)[1] == "dead")
    assert [row.state for row in world.rows()] == ["active"]
    world.subscriber.answer = echo
    published(world.broker, 3)
    until(lambda: states(world)[2] == "delivered")
    assert b"Olympic games 2" in world.subscriber.of("POST")[-1].body, "the feed has what was missed"
    world.set_expiry(time.time() - 1)
    published(world.broker, 4)
    assert len(states(world)) == 3
