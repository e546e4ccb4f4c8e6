"""Brokers that subscribe at each other, step by step: `settle` moves what is to cross until nothing moves any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from broker.serving import TOKEN, served
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.network.links import WORK, Link
from triplewire.broker.network.roots import PREFIX
from triplewire.config import ServiceSettings
from triplewire.service.app import service
from triplewire.store.tables import publications

ENOUGH = 300.0  # seconds until all is matched


@dataclass
class Node:
    """A broker of a network, its address, and its links to upstreams."""

    broker: Broker
    url: str
    links: list[Link]

    def subscribe(self, id: str, query: str, language: str = "sparql", owner: str = "owner", **more: object) -> None:
        self.broker.subscribe(Wanted(query, language, id, **more), owner)  # type: ignore[arg-type]  # what it takes

    def end(self, id: str) -> None:
        row = self.broker.find(id, owner="owner")
        assert row is not None
        self.broker.unsubscribe(row.number)

    def asked_of(self) -> list[str]:
        """The queries that other brokers have here."""
        rows = self.broker.subscriptions_of("owner")
        return sorted(row.query for row in rows if row.id.startswith(PREFIX) and row.state == "active")

    def told(self, owner: str = "owner") -> list[tuple[str, str, str, str]]:
        """The events of subscriptions that are no other broker's: of each, its type, publication and content."""
        events = self.broker.events(owner, 0, 100_000)
        return [(e.id, e.type, e.publication, e.content) for e in events if not e.id.startswith(PREFIX)]

    def crossed(self) -> dict[str, int]:
        """How many publications came over its links, by what became of them."""
        samples = [sample for metric in self.broker.counts.crossed.collect() for sample in metric.samples]
        return {sample.labels["outcome"]: int(sample.value) for sample in samples if sample.value}


@contextmanager
def network(new_database: Callable[[], str], **upstreams: str) -> Iterator[dict[str, Node]]:
    """Brokers by name, each with the names of its upstreams."""
    with ExitStack() as running:
        nodes: dict[str, Node] = {}
        for name in upstreams:
            broker = running.enter_context(Broker.open(new_database(), name.encode()))
            url = running.enter_context(served(service(broker, ServiceSettings(token=TOKEN, wait_seconds=300.0))))
            nodes[name] = Node(broker, url, [])
        for name, of in upstreams.items():
            relink(nodes, name, of)
        yield nodes
        for node in nodes.values():
            for link in node.links:
                link.stop()


def relink(nodes: dict[str, Node], name: str, upstreams: str) -> None:
    """Make the links of a broker anew, as another process would."""
    node = nodes[name]
    term = node.broker.database.alone_at(WORK, "a test")
    assert term is not None
    node.links = [Link(node.broker, nodes[upstream].url, TOKEN, term) for upstream in upstreams.split()]


def settle(nodes: dict[str, Node]) -> int:
    """Move what is to cross until nothing moves any more; returns in how many rounds."""
    for rounds in range(1, 100):
        steps = [link.step() for node in nodes.values() for link in node.links]
        for node in nodes.values():
            matched(node.broker)
        if not any(steps) and rounds > len(nodes):
            return rounds
    raise AssertionError("publications go in circles")


def matched(broker: Broker) -> None:
    """Wait until all that was accepted is matched."""
    waiting, end = sa.select(publications.c.number).where(publications.c.state == "accepted"), time.monotonic() + ENOUGH
    while True:
        with broker.database.reading() as connection:
            if connection.execute(waiting.limit(1)).first() is None:
                return
        assert time.monotonic() < end
        time.sleep(0.01)
