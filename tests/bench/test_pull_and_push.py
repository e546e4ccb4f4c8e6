"""Pull against push: what is counted of feeds that are small enough to be counted by hand."""

from __future__ import annotations

from bench.cms import AGGREGATORS, DAYS, FEEDS, HOUR, Item, loads, polled, pushed


def test_an_hourly_poll_asks_each_hour_and_takes_the_feed_where_it_has_changed() -> None:
    idle = polled([], HOUR, HOUR)
    assert idle.requests == DAYS * 24
    one = polled([Item(90 * 60.0, 1_000)], HOUR, HOUR)
    assert one.requests == idle.requests
    assert one.bytes - idle.bytes == 330 - 210 + 900 + 1_000
    assert polled([], 60.0, 6 * HOUR).requests < DAYS * 4 + 20


def test_what_is_pushed_follows_the_items_alone() -> None:
    items = [Item(day * 86_400.0, 1_000) for day in range(10)]
    assert pushed(items).requests == 10
    counted = loads([items])
    assert [load.requests for load in counted["pull, each hour"]] == [FEEDS * DAYS * 24 * n for n in AGGREGATORS]
    assert len(set(counted["push"])) == 1
    assert counted["push"][0].requests == 10 * FEEDS
