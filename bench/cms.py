"""Pull against push at the source (paper 000, section 1, figures 1 and 2). Counted, not timed.

That is requests and bytes of a month that the servers of 100 feeds see: with 1 to 10,000 aggregators that ask each feed
each hour, where a service asks for all of them by the rule of its poller, and where the feeds push each item once.

    python -m bench.cms ../shared/data/04-feeds/arxiv-derived-feeds.tar.gz docs/experiments

The items are those of the twelve monthly feeds of the archive, each month's in turn; the items of a day come evenly
over it. A feed has its newest 15 items. An answer is 304 where no item has come since the last request (`ETag`), else
the whole feed. What heads of HTTP take is about that of a request by the project's poller and an answer of nginx.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.drawing import to_csv, to_svg
from triplewire.config import ServiceSettings
from triplewire.read import read_document
from triplewire.sources.poller import next_interval

FEEDS, HOUR, DAYS = 100, 3_600.0, 28
AGGREGATORS = (1, 10, 100, 1_000, 10_000)
_NEWEST = 15  # items of a feed
_ASKED, _ANSWERED, _UNCHANGED = 260, 330, 210  # bytes of the heads of a request, of an answer, and of a 304
_FEED_HEAD = 900  # bytes of a feed without its items


class Item(NamedTuple):
    """When an item comes, in seconds, and its bytes."""

    at: float
    size: int


class Load(NamedTuple):
    """What the servers of the feeds see."""

    requests: int
    bytes: int


def items_of(archive: Path) -> list[list[Item]]:
    """The items of each month, in the order in which they come."""
    months: list[list[Item]] = []
    with tarfile.open(archive) as files:
        for name in sorted(member for member in files.getnames() if member.endswith(".rss10.rdf")):
            content = files.extractfile(name)
            assert content is not None
            data = content.read()
            published = [each.published for each in read_document(data, name) if each.published is not None]
            months.append(_spread(published, len(data) // max(len(published), 1)))
    return months


def _spread(published: Sequence[dt.datetime], size: int) -> list[Item]:
    """Items of the first days of a month, those of a day evenly over it."""
    items: list[Item] = []
    for day in range(1, DAYS + 1):
        count = sum(date.day == day for date in published)
        items += (Item((day - 1) * 86_400.0 + (place + 0.5) * 86_400.0 / count, size) for place in range(count))
    return items


def polled(items: Sequence[Item], shortest: float, longest: float) -> Load:
    """One that asks a feed at the poller's intervals, between these bounds."""
    requests = size = taken = 0
    at, interval = 0.0, shortest
    while at < DAYS * 86_400.0:
        there = taken
        while there < len(items) and items[there].at <= at:
            there += 1
        requests += 1
        size += _ASKED + _UNCHANGED
        if there > taken or requests == 1:
            newest = items[max(there - _NEWEST, 0) : there]
            size += _ANSWERED - _UNCHANGED + _FEED_HEAD + sum(item.size for item in newest)
        interval = next_interval(interval, there > taken, shortest, longest)
        taken, at = there, at + interval
    return Load(requests, size)


def pushed(items: Sequence[Item]) -> Load:
    """A feed that posts each item once, whoever is interested."""
    return Load(len(items), sum(_ASKED + _ANSWERED + _FEED_HEAD + item.size for item in items))


def loads(months: Sequence[Sequence[Item]]) -> dict[str, list[Load]]:
    """What the servers of all feeds see for each number of aggregators, by who asks or pushes."""
    feeds = [months[number % len(months)] for number in range(FEEDS)]

    def together(of_feeds: Sequence[Load], times: int = 1) -> Load:
        return Load(times * sum(load.requests for load in of_feeds), times * sum(load.bytes for load in of_feeds))

    hourly = [polled(feed, HOUR, HOUR) for feed in feeds]
    usual = ServiceSettings()
    by_service = together([polled(feed, usual.shortest_poll, usual.longest_poll) for feed in feeds])
    push = together([pushed(feed) for feed in feeds])
    return {
        "pull, each hour": [together(hourly, aggregators) for aggregators in AGGREGATORS],
        "pull by a service for all": [by_service] * len(AGGREGATORS),
        "push": [push] * len(AGGREGATORS),
    }


def main(archive: Path, folder: Path) -> None:
    """Write the table and two pictures."""
    counted = loads(items_of(archive))
    rows = [
        (aggregators, who, load.requests, load.bytes)
        for who, of_who in counted.items()
        for aggregators, load in zip(AGGREGATORS, of_who, strict=True)
    ]
    to_csv(folder / "000-pull-push.csv", ("aggregators", "who", "requests a month", "bytes a month"), rows)
    for name in ("requests", "bytes"):
        lines = {who: [math.log10(getattr(load, name)) for load in of_who] for who, of_who in counted.items()}
        places = [f"{aggregators:,}" for aggregators in AGGREGATORS]
        text = to_svg(f"Pull and push: {name}", "aggregators", f"{name} a month, powers of 10", places, lines)
        (folder / f"000-pull-push-{name}.svg").write_text(text, "utf-8")
    for row in rows:
        print(*row, sep="\t")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
