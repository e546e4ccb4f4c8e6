"""Three brokers in a line, each an upstream of the next (`docs/network.md`), beside one broker.

What crosses their links, beside what matches behind them, and how fast? Half of the subscriptions are contained in
others, and half of the publications match nothing.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain

from bench.partition import AIMED_OVERLAP, editions_of, overlapping
from bench.report import Figure
from bench.webhooks import ask, served
from bench.workloads import rtf
from bench.workloads.catalogue import Case, Place
from bench.workloads.corpus import to_nquads as written
from triplewire.read.names import to_nquads

NAME = "network"
CROSSING = 1.0
_SUBSCRIPTIONS, _MATCHES, _PUBLICATIONS = 1_000, 5, 400
_AT_ONCE = 20  # publications of a request; subscriptions: ten times as many
_ENOUGH = 600.0  # seconds
_STABLE = 5.0  # seconds without a change


def cases(place: Place) -> list[Case]:
    """Subscriptions of which half are contained in others."""
    return [overlapping(place, "network", place.sized(_SUBSCRIPTIONS), AIMED_OVERLAP, _MATCHES)]


def figures(place: Place, given: list[Case], matcher: str) -> Iterator[Figure]:
    """All figures of the network."""
    (case,) = given
    count = _PUBLICATIONS if place.size is None else 2 * _AT_ONCE
    rows = [json.loads(line) for line in case.subscriptions.read_text().splitlines()]
    matching = [to_nquads(publication, 1).encode() for publication in editions_of(case, count)]
    others = [written([document]) for document in rtf.publications(count)]
    documents = list(chain.from_iterable(zip(matching, others, strict=True)))
    requests = [b"".join(documents[begin : begin + _AT_ONCE]) for begin in range(0, len(documents), _AT_ONCE)]
    with ExitStack() as running:

        def start(name: str, *more: str) -> str:
            return running.enter_context(served(place.work / name, *more))

        first, alone = start("network-first"), start("network-alone")
        middle = start("network-middle", "--upstream", first)
        last = start("network-last", "--upstream", middle)
        for url in (alone, last):
            _subscribe(url, rows)
        roots = _settled({first: middle, middle: last})
        seconds_alone, wanted = _published(alone, alone, requests, None)
        seconds, told = _published(first, last, requests, wanted)
        behind = len({publication for publication, _ in wanted})
        yield Figure(NAME, "subscriptions that the first one has", 100 * roots / len(rows), "%")
        for name, url in (("first to middle", middle), ("middle to last", last)):
            crossing = f"{name}: publications that cross / those that match behind"
            yield Figure(NAME, crossing, _gauges(url, "crossed_total") / behind if behind else None, "x", CROSSING)
        wrong = (wanted - told).total() + (told - wanted).total()
        yield Figure(NAME, "events other than those of one broker", wrong, "", 0)
        yield Figure(NAME, "three in a line", len(documents) / seconds, "publications/s", at_least=True)
        yield Figure(NAME, "time of three in a line / of one", seconds / seconds_alone, "x")


def _subscribe(url: str, rows: Sequence[dict[str, str]]) -> None:
    for begin in range(0, len(rows), 10 * _AT_ONCE):
        part = rows[begin : begin + 10 * _AT_ONCE]
        body = [{name: row[name] for name in ("id", "language", "query")} for row in part]
        status, said = ask(f"{url}/subscriptions", json.dumps(body).encode())
        assert status == 201, said


def _settled(below: dict[str, str]) -> int:
    """Wait until each broker has all roots of the one below it; returns how many the first one has."""
    begun, since, counts = time.monotonic(), time.monotonic(), list[float]()
    while time.monotonic() - since < _STABLE:
        there = [len(json.loads(ask(f"{url}/subscriptions", None)[1])) for url in below]
        now = [*there, *(_gauges(url, "upstream_roots") for url in below.values())]
        if now != counts or now[:2] != now[2:] or not all(now):
            counts, since = now, time.monotonic()
        assert time.monotonic() - begun < _ENOUGH
        time.sleep(0.5)
    return int(counts[0])


def _published(
    url: str, told_by: str, requests: Sequence[bytes], wanted: Counter[tuple[str, str]] | None
) -> tuple[float, Counter[tuple[str, str]]]:
    """Publish at one broker until another has told all, or what is wanted; returns the seconds, and what was told."""
    begun = time.monotonic()
    for body in requests:
        status, said = ask(f"{url}/publish?wait=1", body, "application/n-quads")
        assert status == 202, said
    told, after = Counter[tuple[str, str]](), 0
    while True:
        page = ask(f"{told_by}/events?after={after}", None)[1].splitlines()
        for event in map(json.loads, page):
            after = event["number"]
            if not event["subscription"].startswith("net."):
                told[event["publication"], event["subscription"]] += 1
        if wanted is None or told.total() >= wanted.total() or time.monotonic() - begun > _ENOUGH:
            return time.monotonic() - begun, told
        time.sleep(0.05)


def _gauges(url: str, name: str) -> float:
    """The sum of the metrics of a name."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"triplewire_{name}{{"))
