"""What is sent of an event, what came of it, and what a channel is.

An event goes out as a CloudEvent (CloudEvents 1.0.2): its attributes, and an object of JSON as its data. Its id is the
number of the event, the same whenever and wherever it is sent.
"""

from __future__ import annotations

import datetime as dt
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from email.utils import format_datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from triplewire.broker.events.event_log import Event
from triplewire.broker.subscriptions.targets import Target
from triplewire.deliver.limits import DeliverySettings

TYPE = "net.triplewire.notification."
MOST_BYTES = 20_000  # of a body (Standard Webhooks, section "Payload size")
_MOST_TITLE, _MOST_ID = 300, 2_000


class Outcome(NamedTuple):
    """What came of a try. `text`: what the receiver answered, for people. `is_gone`: it wants no more. `of_target`: it
    is not there, or takes nothing now, whatever is sent. `pause`: seconds that it asks for. `per_minute`: the rate that
    it allows."""

    text: str
    is_delivered: bool = False
    is_gone: bool = False
    of_target: bool = False
    pause: float = 0.0
    per_minute: float | None = None


@dataclass(frozen=True)
class Message:
    """An event for a target. `feed`: the key of the feed of its subscription; `base_url`: of this service; `others`: in
    a digest, the events that are told with it."""

    event: Event
    target: Target
    feed: str = ""
    base_url: str = ""
    is_test: bool = False
    others: tuple[Event, ...] = ()

    @property
    def title(self) -> str:
        """What it is about, in one line."""
        if self.others:
            return f"{1 + len(self.others)} events of {self.event.id}"
        return self.event.title or self.event.id

    @property
    def id(self) -> str:
        """The same for each try."""
        return f"test-{self.event.number}" if self.is_test else str(self.event.number)

    @property
    def time(self) -> str:
        """When the event came about (RFC 3339)."""
        return f"{dt.datetime.fromtimestamp(self.event.at, dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"

    @property
    def date(self) -> str:
        """The same as heads of messages have it (RFC 5322, section 3.3)."""
        return format_datetime(dt.datetime.fromtimestamp(self.event.at, dt.UTC))

    @property
    def link(self) -> str:
        """Where the whole event can be read."""
        return f"{self.base_url.rstrip('/')}/s/{self.feed}/events/{self.event.sequence}"

    def data(self) -> tuple[dict[str, Any], bool]:
        """The event as an object of JSON, and whether it is whole: what is longer than `MOST_BYTES` has a link in place
        of its bindings."""
        event = self.event
        publication = {
            "id": event.publication,
            "title": event.title,
            "link": event.link,
            "source": event.source,
            "content": event.content,
        }
        said = {
            "id": self.id,
            "type": event.type,
            "subscription": event.id,
            **({"user": event.user} if event.user else {}),
            "sequence": event.sequence,
            "time": self.time,
            **({"test": True} if self.is_test else {}),
        }
        whole = {
            **said,
            **({"publication": publication} if event.publication else {}),
            "bindings": json.loads(event.bindings),
        }
        if len(json_bytes(whole)) <= MOST_BYTES:
            return whole, True
        short = {"id": event.publication[:_MOST_ID], "title": event.title[:_MOST_TITLE]}
        return {**said, "publication": short, "link": self.link}, False

    def attributes(self, is_whole: bool = True) -> dict[str, str]:
        """The attributes of the CloudEvent. `sequence` (extension "Sequence") is compared as a text, so it has a fixed
        width; `partitionkey`, `dataref`: extensions "Partitioning" and "Dataref"."""
        event = self.event
        source = f"{self.base_url.rstrip('/')}/subscriptions/{quote(event.id, safe='', errors='replace')}"
        return {
            "specversion": "1.0",
            "id": self.id,
            "source": source,
            "type": TYPE + event.type,
            **({"subject": event.publication} if event.publication else {}),
            "time": self.time,
            "sequence": f"{event.sequence:020d}",
            "partitionkey": f"{event.owner}/{event.id}",
            **({} if is_whole else {"dataref": self.link}),
        }

    def text(self) -> str:
        """The event for people, as plain text; of a digest each one with its title and its link."""
        event = self.event
        lines = [f"{event.title or event.id}: {event.type}", event.link or event.publication, ""]
        for other in self.others:
            lines += [f"{other.title or other.id}: {other.type}", other.link or other.publication, ""]
        for binding in () if self.others else json.loads(event.bindings):
            lines += [f"{name}: {term.get('value', '')}" for name, term in binding.items() if isinstance(term, dict)]
        shortened = "\n".join(lines)[: MOST_BYTES if self.others else MOST_BYTES // 4].strip()
        return f"{'This is a test. ' if self.is_test else ''}{shortened}\n\nSubscription {event.id}"


class Channel(ABC):
    """A way to deliver. Any number of threads may use it."""

    def __init__(self, settings: DeliverySettings) -> None:
        self._settings = settings

    @abstractmethod
    def check(self, address: str) -> None:
        """Raises `TriplewireError` where it is no address of this channel, or may not be used."""

    @abstractmethod
    def send(self, message: Message) -> Outcome:
        """One try, which ends in time. Raises `TriplewireError` where nothing could be tried."""

    def close(self) -> None:  # noqa: B027  # most have nothing open
        """Give up what stays open between tries."""


def json_bytes(data: dict[str, Any]) -> bytes:
    """An object of JSON in UTF-8; where a text has half a character (a lone surrogate), in ASCII."""
    try:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(data, separators=(",", ":")).encode()
