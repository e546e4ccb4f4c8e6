"""The hub of our own feeds (WebSub, W3C Recommendation of 23 January 2018; sections below are its own).

A topic is the address of a feed in one form, and a subscription of the hub is a target of the kind "websub": the
callback, the form, and the end of a lease. What a subscriber asks for waits as an intent until its callback, asked with
a challenge, confirms it (5.3); until then all stays as it was. A hub can be used to have a third party asked. So of one
host few callbacks that have not confirmed are asked in an hour, and those behind them wait, or are forgotten.

`ask` is what the door calls, `Hub` asks callbacks in threads, `message_of` makes what is delivered to one.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.broker import Broker
from triplewire.broker.repeating import Repeating
from triplewire.broker.subscriptions.followed import ENDED
from triplewire.broker.subscriptions.targets import Target, add_target, end_target
from triplewire.errors import RequestError
from triplewire.net.client import Answer, Client
from triplewire.net.guard import target_of
from triplewire.store.database import DAY, Database, now
from triplewire.store.tables import changes, deliveries, intents, subscriptions, targets

KIND = "websub"
SUBSCRIBE, UNSUBSCRIBE, DENIED = "subscribe", "unsubscribe", "denied"
LEASE, SHORTEST_LEASE, LONGEST_LEASE = 10 * DAY, 60.0, 30 * DAY
"""Seconds of a lease: unless a subscriber asks for another, at least, and at most."""

MOST_UNVERIFIED = 5
"""Callbacks of one host that are asked in an hour, and have not confirmed."""

MOST_UNVERIFIED_OF_FEED = 50
"""The same of one feed: whoever knows one may name any number of hosts, which may all be one machine."""

MOST_WAITING = 1_000
"""Intents of one host, or of one feed, that wait."""

_HOUR, _MINUTE = 3_600.0, 60.0
_LASTING = 600.0  # seconds after which an intent is not asked any more
_SECONDS = 4.0  # that a callback has to answer
_AT_ONCE = 8  # callbacks that are asked at once
_LOOK = 0.5  # seconds between looks at what waits
_SMALL = 1 << 12  # bytes of an answer that are read

Render = Callable[[Broker, Row[Any], str, str], tuple[str, bytes]]
"""Makes the feed of a subscription in a form, for a service at an address: its Content-Type, and its bytes."""

_log = logging.getLogger("triplewire.broker")


@dataclass(frozen=True)
class Intent:
    """What a subscriber asks for: to subscribe its callback to a topic, or to unsubscribe it (5.1)."""

    mode: str
    subscription: int
    form: str
    topic: str
    callback: str
    seconds: float = LEASE
    secret: str = ""
    reason: str = ""


def ask(database: Database, intent: Intent, clock: Callable[[], float] = now) -> bool:
    """Have an intent verified, in place of one of the same topic and callback that waits. False where too many wait."""

    def write(connection: Connection) -> bool:
        if intent.mode == UNSUBSCRIBE and not _targets_of(connection, intent):
            return True  # nobody is asked about nothing
        return _add_intent(connection, intent, clock())

    return database.write(write)


def _targets_of(connection: Connection, intent: Intent | Row[Any]) -> Sequence[int]:
    """The numbers of the active targets that an intent is about: one or none."""
    here = sa.select(targets.c.number).where(
        targets.c.subscription == intent.subscription,
        targets.c.kind == KIND,
        targets.c.address == intent.callback,
        targets.c.form == intent.form,
        targets.c.state == "active",
    )
    return connection.execute(here).scalars().all()


def _add_intent(connection: Connection, intent: Intent, at: float) -> bool:
    """Write an intent. The callback is asked at once, or a minute after it was asked in vain."""
    table, host = intents, (urlsplit(intent.callback).hostname or "").rstrip(".")
    _alone(connection)
    same = (table.c.callback == intent.callback, table.c.topic == intent.topic)
    connection.execute(table.delete().where(*same, table.c.state == "waiting"))
    together = (table.c.host == host) | (table.c.subscription == intent.subscription)
    waiting = sa.select(sa.func.count()).where(together, table.c.state == "waiting")
    if intent.mode != DENIED and connection.execute(waiting).scalar_one() >= MOST_WAITING:
        return False
    last = connection.execute(sa.select(sa.func.max(table.c.asked)).where(*same)).scalar()
    due = at if last is None else max(at, last + _MINUTE)
    values = {**intent.__dict__, "host": host, "state": "waiting", "created": at, "due": due}
    connection.execute(table.insert().values(values))
    return True


def _alone(connection: Connection) -> None:
    """Count intents in one transaction at a time: of PostgreSQL, which has several, as of SQLite."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("LOCK TABLE intents IN SHARE ROW EXCLUSIVE MODE"))


def asking(callback: str, parameters: Mapping[str, str]) -> str:
    """The address of a callback with parameters behind those that it has (5.1.1)."""
    separator = "?" if "?" not in callback else "" if callback.endswith(("?", "&")) else "&"
    return callback + separator + urlencode(parameters)


def message_of(broker: Broker, subscription: int, target: Target, render: Render) -> tuple[dict[str, str], bytes]:
    """What a subscriber is sent (7): headers, and the whole topic as it is now."""
    row = broker.by_number(subscription)
    assert row is not None  # no subscription is ever removed
    topic = str(target.settings["topic"])
    base = topic.rpartition("/s/")[0]
    content_type, body = render(broker, row, target.form, base)
    headers = {"Content-Type": content_type, "Link": f'<{base}/hub>; rel="hub", <{topic}>; rel="self"'}
    if target.secret:
        headers["X-Hub-Signature"] = f"sha256={hmac.digest(target.secret.encode(), body, 'sha256').hex()}"
    return headers, body


class Hub(Repeating):
    """Asks callbacks whether they mean what was asked for in their name, and tells them when a topic ends. Any process
    of a store may have one."""

    def __init__(self, broker: Broker, allow_private_addresses: bool = False, clock: Callable[[], float] = now) -> None:
        super().__init__("hub")
        self._broker = broker
        self._allow_private = allow_private_addresses
        self._clock = clock
        self._swept = 0.0
        self._pool = ThreadPoolExecutor(_AT_ONCE, "hub")

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._pool.shutdown(cancel_futures=True)

    def _turn(self) -> float:
        if abs(self._clock() - self._swept) > _MINUTE:
            self._swept = self._clock()
            self.sweep()
        while not self._stop.is_set() and (intent := self._take()) is not None:
            self._pool.submit(self._settle, intent)
        return _LOOK

    def step(self) -> bool:
        """Ask the next callback that is due; False for none."""
        intent = self._take()
        if intent is None:
            return False
        self._settle(intent)
        return True

    def _take(self) -> Row[Any] | None:
        """The next intent whose callback may be asked now. It counts as asked from here on."""
        table, at = intents, self._clock()
        lately = (table.c.asked > at - _HOUR, table.c.mode != DENIED)
        counted = ((table.c.host, MOST_UNVERIFIED), (table.c.subscription, MOST_UNVERIFIED_OF_FEED))
        may_be_asked = [
            column.not_in(sa.select(column).where(*lately).group_by(column).having(sa.func.count() >= most))
            for column, most in counted
        ]
        left = (table.c.state == "asked") & (table.c.asked < at - _MINUTE)  # by a process that was killed
        here = sa.select(table).where(
            (table.c.state == "waiting") | left,
            table.c.due <= at,
            table.c.created > at - _LASTING,
            (table.c.mode == DENIED) | sa.and_(*may_be_asked),
        )
        if not self._broker.database.rows(here.limit(1)):
            return None

        def write(connection: Connection) -> Row[Any] | None:
            _alone(connection)
            row = connection.execute(here.order_by(table.c.number).limit(1)).first()
            if row is not None:
                taken = table.update().where(table.c.number == row.number)
                connection.execute(taken.values(state="asked", asked=at))
            return row

        return self._broker.database.write(write)

    def _settle(self, intent: Row[Any]) -> None:
        """Ask a callback, and do what it confirms."""
        try:
            is_confirmed = self._is_confirmed(intent)
            self._broker.database.write(lambda connection: self._write(connection, intent, is_confirmed))
            self._broker.followed.follow()
        except Exception:  # it is asked again
            _log.exception("a callback could not be asked")

    def _is_confirmed(self, intent: Row[Any]) -> bool:
        """Does the callback mean it (5.3.1)? A topic that has ended is denied (5.2)."""
        row = self._broker.by_number(intent.subscription)
        about = {"hub.mode": intent.mode, "hub.topic": intent.topic}
        if intent.mode == DENIED or (intent.mode == SUBSCRIBE and (row is None or row.state == ENDED)):
            reason = intent.reason or "the subscription behind this feed has ended"
            self._get(intent.callback, {**about, "hub.mode": DENIED, "hub.reason": reason})
            return bool(intent.mode == DENIED)
        challenge = secrets.token_urlsafe(32)
        lease = {"hub.lease_seconds": f"{intent.seconds:.0f}"} if intent.mode == SUBSCRIBE else {}
        answer = self._get(intent.callback, {**about, "hub.challenge": challenge, **lease})
        said = answer.body if answer is not None and 200 <= answer.status < 300 else b""
        return hmac.compare_digest(said, challenge.encode())

    def _get(self, callback: str, parameters: Mapping[str, str]) -> Answer | None:
        """What a callback answers; None where it does not, or may not be asked."""
        try:
            with closing(Client(target_of(asking(callback, parameters), self._allow_private))) as client:
                return client.request("GET", {"Accept-Encoding": "identity"}, seconds=_SECONDS, most=_SMALL)
        except (RequestError, ValueError):
            return None

    def _write(self, connection: Connection, intent: Row[Any], is_confirmed: bool) -> None:
        here = intents.c.number == intent.number
        if not is_confirmed:
            connection.execute(intents.update().where(here).values(state="failed"))
            return
        connection.execute(intents.delete().where(here))
        if intent.mode == SUBSCRIBE:
            expires = self._clock() + intent.seconds
            settings = {"topic": intent.topic}
            target = Target(KIND, intent.callback, intent.secret, settings, expires, form=intent.form)
            add_target(connection, intent.subscription, target)
            connection.execute(changes.insert().values(subscription=intent.subscription))
        elif intent.mode == UNSUBSCRIBE:
            for number in _targets_of(connection, intent):
                end_target(connection, number, "its subscriber has unsubscribed")

    def sweep(self) -> None:
        """End leases that are over, tell subscribers of topics that have ended, and forget old intents."""
        at = self._clock()
        ours = sa.select(targets).where(targets.c.kind == KIND, targets.c.state == "active")
        over = ours.where(targets.c.expires <= at)
        pending = sa.exists().where(deliveries.c.target == targets.c.number, deliveries.c.state == "pending")
        ended = ours.join(subscriptions, subscriptions.c.number == targets.c.subscription).where(
            subscriptions.c.state == ENDED, ~pending
        )

        def write(connection: Connection) -> None:
            _alone(connection)
            connection.execute(intents.delete().where(intents.c.created < at - _HOUR))
            for target in connection.execute(over).all():
                end_target(connection, target.number, "its lease is over")
            for target in connection.execute(ended).all():
                end_target(connection, target.number, "the subscription has ended")
                topic = json.loads(target.settings)["topic"]
                denied = Intent(DENIED, target.subscription, target.form, topic, target.address, reason="it has ended")
                _add_intent(connection, denied, at)

        self._broker.database.write(write)
        self._broker.followed.follow()
