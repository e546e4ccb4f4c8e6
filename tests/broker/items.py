"""What tests of the broker publish, and a broker that matches at once."""

from __future__ import annotations

from collections.abc import Iterable

from triplewire import Engine, Settings
from triplewire.broker.broker import Broker
from triplewire.broker.subscriptions.quarantine import Limits
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

RSS = "http://purl.org/rss/1.0/"


def item(number: int, title: str) -> Publication:
    about = IRI(f"urn:item:{number}")
    return Publication(about.value, [Triple(about, IRI(RSS + "title"), Literal(title))])


def opened(url: str, limits: Limits | None = None, settings: Settings | None = None) -> Broker:
    return Broker.open(url, b"secret", engine=Engine(matcher="reference", settings=settings), limits=limits)


def publish(broker: Broker, given: Iterable[Publication], readers: Iterable[str] | None = None) -> dict[int, int]:
    """Publish, and wait until all is matched: by how many subscriptions, by the numbers of items."""
    taken = broker.publish(given, readers=readers)
    counts = broker.wait([one.number for one in taken], 300)
    assert len(counts) == len(taken)
    return {int(one.id.rpartition(":")[2]): counts[one.number] for one in taken}
