"""Sources that foreign hubs push (WebSub, W3C Recommendation of 23 January 2018; sections below are its own).

Each source that is polled is asked once a day whether a hub pushes it. Where one does, we subscribe, with a secret, and
renew before the lease ends; polling goes on. A hub confirms at an address with a key that only we can make
(`/websub/{number}/{key}`), and what it sends there counts where it is signed.

`Subscriber` looks for hubs and asks them, in a thread; `verify` and `receive` are what the door calls.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import urlencode, urljoin

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker import tickets
from triplewire.broker.broker import Broker
from triplewire.broker.incoming.intake import take
from triplewire.broker.publications.kept_contents import read_body
from triplewire.broker.repeating import Repeating
from triplewire.errors import ReadError, RequestError, TriplewireError, text_of_raised
from triplewire.net.addresses import Connections
from triplewire.net.client import Client
from triplewire.net.guard import Target, target_of
from triplewire.sources.discovery import offer_of
from triplewire.sources.fetch import MOST_HOPS, Known, fetch, with_encoding
from triplewire.store.database import DAY, now
from triplewire.store.tables import leases, sources

LEASE = 10 * DAY
"""Seconds of a lease that is asked for."""

METHODS = ("sha1", "sha256", "sha384", "sha512")
"""How a hub may sign (7.1); to forge an HMAC of SHA-1 is as good as impossible, too."""

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{1,256}")
_PENDING = 600.0  # seconds in which a hub may ask whether we mean it
_RENEWED = 0.8  # of a lease, after which it is renewed
_LEAST = 60.0  # seconds between two requests to a hub
_AGAIN = 3_600.0  # seconds after a failure, doubled for each in a row up to a day
_SECONDS = 4.0  # that a server has to answer
_LOOK = 2.0  # seconds between looks at what is due
_AT_ONCE = 50

_log = logging.getLogger("triplewire.broker")


def secret_of(lease: Row[Any], secret: bytes) -> str:
    """What the hub of a lease signs with: made anew when it is needed, and kept nowhere."""
    return hmac.digest(secret, f"websub {lease.number} {lease.topic}".encode(), "sha256").hex()


def lease_of(broker: Broker, number: int, key: str) -> Row[Any] | None:
    """The lease that a callback address is of; None where there is none any more. Raises `ValueError` for a key that
    was not made here."""
    if not hmac.compare_digest(tickets.callback_key(number, broker.secret).encode(), key.encode("utf-8", "replace")):
        raise ValueError("no callback of this service")
    return broker.database.first(sa.select(leases).where(leases.c.number == number))


def verify(broker: Broker, lease: Row[Any], mode: str, topic: str, challenge: str, seconds: str) -> bool:
    """Do we mean what a hub asks (5.3)? Once, and only within minutes of our request. What it denies (5.2) is kept."""
    at, here = now(), leases.c.number == lease.number
    written: sa.Update | sa.Delete
    wanted = {"ending": "unsubscribe", "subscribing": "subscribe", "active": "subscribe"}.get(lease.state)
    lasting = float(seconds[:9]) if seconds.isascii() and seconds.isdecimal() else 0.0
    if topic != lease.topic:
        return False
    if mode == "denied":
        denied = {"state": "denied", "pending": None, "due": at + DAY, "reason": "the hub has denied it"}
        written = leases.update().where(here).values(denied)
    elif mode != wanted or not _CHALLENGE.fullmatch(challenge):
        return False
    elif mode == "unsubscribe":
        written = leases.delete().where(here, leases.c.pending >= at)
    elif lasting:
        active = {"state": "active", "pending": None, "failures": 0, "reason": "", "expires": at + lasting}
        active |= {"due": at + max(_RENEWED * lasting, _LEAST)}
        written = leases.update().where(here, leases.c.pending >= at).values(active)
    else:
        return False
    return bool(broker.database.execute(written))


def receive(broker: Broker, lease: Row[Any], body: bytes, content_type: str, signed: str) -> bool:
    """Take in what a hub sends, where the lease lasts and the signature is right (7.1); else it is ignored."""
    method, _, text = signed.strip().partition("=")
    if lease.state != "active" or lease.expires <= now() or method not in METHODS:
        return False
    right = hmac.digest(secret_of(lease, broker.secret).encode(), body, method).hex()
    if not hmac.compare_digest(right.encode(), text.strip().lower().encode("utf-8", "replace")):
        return False
    source = broker.database.first(sa.select(sources).where(sources.c.number == lease.source))
    if source is not None:
        take(broker, read_body(with_encoding(body, content_type), source.url, broker.settings), [source])
    return source is not None


class Subscriber(Repeating):
    """Subscribes to the hubs of sources, from `with` on. `base_url`: the address of this service as hubs reach it."""

    def __init__(
        self,
        broker: Broker,
        base_url: str,
        allow_private_addresses: bool = False,
        clock: Callable[[], float] = now,
    ) -> None:
        super().__init__("subscriber")
        self._broker = broker
        self._base = base_url.rstrip("/")
        self._allow_private = allow_private_addresses
        allow = {"allow_private_addresses": "true" if allow_private_addresses else "false"}
        self._connections = Connections({"http:": allow, "https:": allow})
        self._clock = clock

    def __exit__(self, *_: object) -> None:
        self.stop(_SECONDS + 1)  # it is at one request; what comes of it is asked for again

    def _turn(self) -> float:
        self.step()
        return _LOOK

    def step(self) -> int:
        """Look for the hubs that are due, and ask them; returns how many."""
        due = self._due()
        for lease in due:
            if not self._stop.is_set():
                self._step(lease)
        return len(due)

    def _due(self) -> list[Row[Any]]:
        """Leases to be looked after. Another process does not get them for an hour."""
        at = self._clock()

        def write(connection: Connection) -> list[Row[Any]]:
            known, there = sa.select(leases.c.source), sa.select(sources.c.number).where(sources.c.kind == "poll")
            new = there.where(sources.c.number.not_in(known)).limit(_AT_ONCE)
            for source in connection.execute(new).scalars().all():
                nothing = {"hub": "", "topic": "", "state": "none", "failures": 0, "reason": ""}
                connection.execute(leases.insert().values(source=source, due=at, **nothing))
            dropped = leases.c.source.not_in(there) & (leases.c.state != "ending")
            connection.execute(leases.update().where(dropped).values(state="ending", due=at, failures=0))
            here = sa.select(leases).where(leases.c.due <= at).order_by(leases.c.due).limit(_AT_ONCE)
            rows = list(connection.execute(here.with_for_update(skip_locked=True)).all())
            taken = leases.c.number.in_([row.number for row in rows])
            connection.execute(leases.update().where(taken).values(due=at + _AGAIN))
            return rows

        return self._broker.database.write(write)

    def _step(self, lease: Row[Any]) -> None:
        """Look for the hub of a source and subscribe, or unsubscribe from that of one that is not there any more."""
        try:
            if lease.state == "ending":
                self._end(lease)
            else:
                self._begin(lease)
        except Exception as error:  # also what no one thought of: one hub must not keep the others from being asked
            reason = error.what if isinstance(error, TriplewireError) else text_of_raised(error)
            pause = min(_AGAIN * 2.0 ** min(lease.failures, 10), DAY)
            self._set(lease.number, failures=lease.failures + 1, reason=reason, due=self._clock() + pause)

    def _begin(self, lease: Row[Any]) -> None:
        url = self._broker.database.value(sa.select(sources.c.url).where(sources.c.number == lease.source))
        if url is None:
            return
        answer = fetch(url, Known(), self._connections, _SECONDS)
        offer = offer_of(answer.link, answer.body, answer.address) if answer.status == 200 else None
        at = self._clock()
        if offer is None:
            if lease.state != "active":
                self._set(lease.number, state="none", failures=0, reason="it names no hub", due=at + DAY)
            return
        state = "active" if lease.state == "active" and lease.topic == offer.topic else "subscribing"
        values = {"hub": offer.hubs[0], "topic": offer.topic, "state": state, "pending": at + _PENDING}
        self._set(lease.number, **values)  # before it is asked: it may confirm before it answers
        self._ask(lease.number, "subscribe")

    def _end(self, lease: Row[Any]) -> None:
        """Unsubscribe; the lease goes once the hub has confirmed that, or is given up."""
        if not lease.hub or lease.expires is None or lease.failures > 3:
            self._broker.database.execute(leases.delete().where(leases.c.number == lease.number))
            return
        self._set(lease.number, pending=self._clock() + _PENDING, failures=lease.failures + 1)
        self._ask(lease.number, "unsubscribe")

    def _ask(self, number: int, mode: str) -> None:
        """Ask a hub (5.1); where it redirects with 307 or 308, the one that it names. Raises `TriplewireError`."""
        (lease,) = self._broker.database.rows(sa.select(leases).where(leases.c.number == number))
        callback = f"{self._base}/websub/{number}/{tickets.callback_key(number, self._broker.secret)}"
        form = {"hub.mode": mode, "hub.topic": lease.topic, "hub.callback": callback}
        if mode == "subscribe":
            form |= {"hub.lease_seconds": f"{LEASE:.0f}", "hub.secret": secret_of(lease, self._broker.secret)}
        body, hub = urlencode(form).encode(), lease.hub
        for _ in range(MOST_HOPS + 1):
            with closing(Client(self._target(hub))) as client:
                headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept-Encoding": "identity"}
                answer = client.request("POST", headers, body, seconds=_SECONDS, whole=False)
            if answer.status not in (307, 308) or not answer.headers.get("location"):
                break
            following = urljoin(hub, answer.headers["location"])
            if hub.startswith("https:") and not following.startswith("https:"):
                raise ReadError("the hub leads from https to http")
            hub = following
        if not 200 <= answer.status < 300:
            raise RequestError(f"the hub answers {answer.status}")

    def _target(self, url: str) -> Target:
        try:
            target = target_of(url, self._allow_private)
        except ValueError as error:
            raise ReadError(f"the hub has an address that cannot be asked: {error}") from None
        if not (self._allow_private or target.has_web_port):
            raise ReadError(f"the hub is at port {target.port}, which is not one of the web")
        return target

    def _set(self, number: int, **values: Any) -> None:
        self._broker.database.execute(leases.update().where(leases.c.number == number).values(values))
