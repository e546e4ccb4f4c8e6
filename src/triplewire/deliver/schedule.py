"""The schedule of deliveries: which one is sent when, and what its outcome is written as.

    look:       hosts that have pending deliveries, and when the first is due    (twice a second, or when told)
    dispatch:   round robin over hosts that are due: one delivery each to a free worker,
                as far as the limits of the host allow
    a worker:   sends, writes the outcome, and says that it is free

What is pending stays so in the store until its outcome is written: who is killed between sending and writing sends it
again, with the same id. A host that is slow or does not answer has one delivery at a time, and all such hosts together
have half of the workers, so that they hold up nobody else. What fails is tried again after the pauses of
`DeliverySettings.schedule`, then it is dead. Where a target fails again and again, a first try of a delivery counts for
all that is due there.
"""

from __future__ import annotations

import heapq
import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.broker import Broker
from triplewire.broker.events.event_log import MATCHED, Event, with_numbers
from triplewire.broker.events.matching import Batch
from triplewire.broker.repeating import Repeating
from triplewire.broker.subscriptions.targets import Target, end_target
from triplewire.broker.tickets import feed_key, opened
from triplewire.deliver.channels import Channels, shown_address
from triplewire.deliver.limits import Allowance, DeliverySettings
from triplewire.deliver.messages import Channel, Message, Outcome
from triplewire.deliver.shares import Shares, share_of
from triplewire.errors import BusyError, TriplewireError
from triplewire.net.addresses import shown
from triplewire.store.database import DAY, now
from triplewire.store.tables import deliveries, failing, hosts, targets

AHEAD = 20  # deliveries of a host that are read at once
LOOK = 0.5  # seconds between looks at what other processes have made, or what has become due
_LOOK_SHARE = 20.0  # a look takes at most one part of so many of the time
_DIGEST = 500  # events of a digest
_NOT_TRIED = "not tried, as others failed: "
_DOWN = 3  # failures one after the other, from which on what is due at the target is not tried one by one
_AGAIN = 5.0  # seconds after which what could not be written is tried again
_ABORT = 1.0  # seconds for those whose connections were closed then
_TESTS = 6.0  # test notifications to a host in a minute
_SWEEP = 600.0  # seconds between looks at what need not be kept

_OF_HOST = sa.and_(deliveries.c.host == sa.bindparam("host"), deliveries.c.state == "pending")
_NEXT_DUE = sa.select(sa.func.min(deliveries.c.due)).where(_OF_HOST)
_DUE = (
    sa.select(
        deliveries.c.number.label("delivery"), deliveries.c.event, deliveries.c.tries, deliveries.c.status, targets
    )
    .join(targets, targets.c.number == deliveries.c.target)
    .where(_OF_HOST, deliveries.c.due <= sa.bindparam("at"))
    .order_by(deliveries.c.due, deliveries.c.event)
    .limit(sa.bindparam("most"))
)

_log = logging.getLogger("triplewire.deliver")


class _Sending(NamedTuple):
    """A delivery that is sent, or waits to be."""

    number: int
    target: int
    tries: int
    failures: int  # of its target
    is_first: bool  # it was never tried itself
    message: Message
    others: tuple[int, ...] = ()  # the deliveries that are sent with it, in a digest


@dataclass
class _Host:
    """What is known of a host here."""

    name: str
    allowance: Allowance | None
    waiting: deque[_Sending] = field(default_factory=deque)
    sending: dict[int, _Sending] = field(default_factory=dict)
    is_quick: bool = False  # its last answer came soon, and was good
    is_ready: bool = False  # in the round
    is_held: bool = False  # it waits for a worker of those that are not quick
    has_more: bool = False  # beside those that wait here, more may be due in the store
    due: float = math.inf  # when it comes into the round


class _Done(NamedTuple):
    host: _Host
    sending: _Sending
    was_quick: bool  # the host, when this was given to a worker
    is_quick: bool
    is_written: bool
    outcome: Outcome


class Deliveries(Repeating):
    """Delivers what a broker owes, in threads of its own, until it is stopped.

    with Broker.open(url, secret) as broker, Deliveries(broker, DeliverySettings()): ...

    `clock`: seconds since 1970; `channels`: more channels by kind.
    """

    def __init__(
        self,
        broker: Broker,
        settings: DeliverySettings | None = None,
        *,
        clock: Callable[[], float] = now,
        channels: Mapping[str, Channel] | None = None,
    ) -> None:
        super().__init__("deliveries")
        self.settings = settings or DeliverySettings()
        self.channels = Channels(self.settings, channels)
        self._broker = broker
        self._database = broker.database
        self._clock = clock
        self._shares = Shares(broker.database)
        self._hosts: dict[str, _Host] = {}
        self._ready: deque[_Host] = deque()
        self._held: deque[_Host] = deque()
        self._planned: list[tuple[float, str]] = []  # a heap: when a host comes into the round
        self._next_look = self._next_sweep = 0.0  # by `time.monotonic`
        self._not_quick = 0  # workers that send to hosts that are not quick
        self._most_not_quick = max(self.settings.workers // 2, 1)
        self._free = 0  # workers that wait
        self._tests: dict[str, Allowance] = {}
        self._tests_lock = threading.Lock()
        self._told: SimpleQueue[set[str]] = SimpleQueue()
        self._done: SimpleQueue[_Done] = SimpleQueue()
        self._tasks: SimpleQueue[tuple[_Host, _Sending, bool] | None] = SimpleQueue()
        self._ended = threading.Event()
        self._workers: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to deliver."""
        self._broker.listeners.append(self._listen)
        super().start()

    def stop(self, seconds: float | None = None) -> None:
        """Begin nothing more, and wait as long for what is under way as a receiver has to answer, but no longer than a
        stop takes; what has not ended by then is sent again by who comes next."""
        if self._stop.is_set():
            return
        if self._listen in self._broker.listeners:
            self._broker.listeners.remove(self._listen)
        super().stop(seconds)
        for _ in self._workers:
            self._tasks.put(None)
        self._wait_for_workers(min(self.settings.delivery_seconds, self.settings.stop_seconds))
        self._ended.set()
        self.channels.close()
        self._wait_for_workers(_ABORT)
        self._shares.close()

    def _wait_for_workers(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for worker in self._workers:
            worker.join(max(end - time.monotonic(), 0))

    def wake(self) -> None:
        """Look at once for what is due."""
        self._told.put(set())
        super().wake()

    def try_target(self, row: Row[Any], subscription: Row[Any]) -> Outcome:
        """Send a test notification to a target, which is marked as such and owed to nobody; returns what came of it.
        Raises `BusyError` where its host has had many of them."""
        at = self._clock()
        with self._tests_lock:
            tests = self._tests.setdefault(row.host, Allowance(_TESTS, at))
            if wait := tests.seconds_until(at):
                raise BusyError("this host has had many tests", remedy=f"try again in {math.ceil(wait)} s")
            tests.take()
        event = Event(
            int(at * 1_000), subscription.number, subscription.id, subscription.owner, 0, MATCHED, at,
            "urn:triplewire:test", None, "", "A test notification", "", None, "", "[]", None,
        )  # fmt: skip
        return self._outcome(self._message(event, row, is_test=True))

    # --- the round ---------------------------------------------------------------------------------------------------

    def _listen(self, batch: Batch) -> None:
        if batch.hosts:
            self._told.put(batch.hosts)
            super().wake()

    def _turn(self) -> float:
        """One look, and one round; returns how many seconds may pass until the next."""
        self._take_done()
        told: set[str] = set()
        is_time = time.monotonic() >= self._next_look
        while True:
            try:
                names = self._told.get_nowait()
            except Empty:
                break
            told |= names
            is_time = is_time or not names
        if is_time:
            self._look()
        for name in told:
            self._plan(name, 0)
        return self._dispatch()

    def _look(self) -> None:
        """Find the hosts that something is owed to. With many hosts it takes a while, and is done less often."""
        begun = time.monotonic()
        busy = {share_of(name) for name, host in self._hosts.items() if host.sending}
        self._shares.update(busy.__contains__)
        first = sa.select(sa.func.min(deliveries.c.due)).where(
            deliveries.c.state == "pending", deliveries.c.host == hosts.c.name
        )
        for row in self._database.rows(sa.select(hosts, first.scalar_subquery().label("due"))):
            if row.due is not None and self._shares.has(row.name):
                self._plan(row.name, row.due, row.per_minute)
        if time.monotonic() >= self._next_sweep and self._shares.has(""):
            is_more = self._broker.delivery_log.forget(self._clock() - self.settings.keep_days * DAY)
            self._next_sweep = time.monotonic() + (0 if is_more else _SWEEP)
        ended = time.monotonic()
        self._next_look = ended + max(LOOK, _LOOK_SHARE * (ended - begun))

    def _plan(self, name: str, due: float, per_minute: float | None = None) -> None:
        """Have a host in the round from an instant on."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(name, self._allowance(name))
        if per_minute is not None and host.allowance is not None:
            host.allowance.allow(per_minute)
        if due < host.due and not (host.is_ready or host.is_held):
            host.due = due
            heapq.heappush(self._planned, (due, name))

    def _allowance(self, name: str) -> Allowance | None:
        if name.startswith("kafka:") or name.rpartition(":")[0] in self.settings.without_rate:
            return None
        return Allowance(self.settings.deliveries_per_minute, self._clock())

    def _make_ready(self, host: _Host) -> None:
        if not host.is_ready and not host.is_held:
            host.is_ready, host.due = True, math.inf
            self._ready.append(host)

    def _dispatch(self) -> float:
        at = self._clock()
        while self._planned and self._planned[0][0] <= at:
            due, name = heapq.heappop(self._planned)
            if self._hosts[name].due == due:
                self._make_ready(self._hosts[name])
        while self._ready or (self._held and self._not_quick < self._most_not_quick):
            if not self._has_worker():
                break
            if not self._ready:
                self._held[0].is_held = False
                self._make_ready(self._held.popleft())
            host = self._ready.popleft()
            host.is_ready = False
            if self._send_one(host, at):
                self._make_ready(host)
        return min(max(self._planned[0][0] - at, 0.0), LOOK) if self._planned else LOOK

    def _has_worker(self) -> bool:
        if not self._free and len(self._workers) < self.settings.workers:
            self._workers.append(threading.Thread(target=self._work, name="delivery", daemon=True))
            self._workers[-1].start()
            self._free += 1
        return self._free > 0

    def _send_one(self, host: _Host, at: float) -> bool:
        """Give the next delivery of a host to a worker, if its limits allow it; False where it has none for now. Then
        it comes into the round again when a worker has done, or more is told of, or at the time that was planned."""
        if not self._shares.has(host.name):
            host.waiting.clear()
            return False
        if len(host.sending) >= (self.settings.deliveries_at_once if host.is_quick else 1):
            return False
        if not host.is_quick and self._not_quick >= self._most_not_quick:
            host.is_held = True
            self._held.append(host)
            return False
        if not host.waiting and not self._read(host, at):
            return False
        if host.allowance is not None:
            if wait := host.allowance.seconds_until(at):
                self._plan(host.name, at + wait)
                return False
            host.allowance.take()
        sending = host.waiting.popleft()
        host.sending[sending.number] = sending
        self._not_quick += not host.is_quick
        self._free -= 1
        self._tasks.put((host, sending, host.is_quick))
        return bool(host.waiting) or host.has_more

    def _take_done(self) -> None:
        """See which workers have done."""
        while True:
            try:
                done = self._done.get_nowait()
            except Empty:
                return
            host = done.host
            del host.sending[done.sending.number]
            self._free += 1
            self._not_quick -= not done.was_quick
            host.is_quick = done.is_quick
            outcome = "delivered" if done.outcome.is_delivered else "gone" if done.outcome.is_gone else "failed"
            self._broker.counts.notifications.labels(done.sending.message.target.kind, outcome).inc()
            if done.outcome.per_minute is not None and host.allowance is not None:
                host.allowance.allow(done.outcome.per_minute)
            if not done.outcome.is_delivered:  # what is to be sent to the same target may have to wait, too
                host.waiting.clear()
            if done.is_written:
                self._make_ready(host)
            else:
                self._plan(host.name, self._clock() + _AGAIN)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _read(self, host: _Host, at: float) -> bool:
        """Read the next deliveries of a host; False where none can be sent now. Then the next time is planned."""
        most = AHEAD + len(host.sending)
        with self._database.reading() as connection:
            rows = connection.execute(_DUE, {"host": host.name, "at": at, "most": most}).all()
            host.has_more = len(rows) == most
            if not rows:
                if (due := connection.execute(_NEXT_DUE, {"host": host.name}).scalar()) is not None:
                    self._plan(host.name, due)
                return False
            events = with_numbers(connection, [row.event for row in rows])
            wishes = {row.number: json.loads(row.settings) for row in rows}
            firsts = {number: _first(connection, number) for number, said in wishes.items() if said.get("ordered")}
            digests = {number: _digest(connection, number, at) for number, said in wishes.items() if said.get("digest")}
        expired: dict[int, str] = {}
        later: dict[int, float] = {}  # of targets
        for row in rows:
            if row.delivery in host.sending:
                continue
            if row.state == "gone" or (row.expires is not None and row.expires <= at):
                expired[row.delivery] = "the target had ended"
            elif row.event not in events:
                expired[row.delivery] = "its event was not kept"
            elif row.until > at:
                later[row.number] = row.until
            elif (first := firsts.get(row.number)) is not None and first.event != row.event:
                later[row.number] = first.due
            else:
                digest = digests.get(row.number, {})
                if digest and row.number in {each.target for each in (*host.waiting, *host.sending.values())}:
                    continue
                digest.pop(row.delivery, None)
                message = self._message(events[row.event], row, others=tuple(digest.values()))
                sending = _Sending(row.delivery, row.number, row.tries, row.failures, _is_first(row), message)
                host.waiting.append(sending._replace(others=tuple(digest)))
        if expired or any(due > at for due in later.values()):
            self._database.write(lambda connection: _postpone(connection, expired, later, at))
            if not host.waiting and not host.sending:
                self._plan(host.name, at)
        return bool(host.waiting)

    def _message(self, event: Event, row: Row[Any], is_test: bool = False, others: tuple[Event, ...] = ()) -> Message:
        target = Target(row.kind, row.address, row.secret, json.loads(row.settings), row.expires, row.state, row.form)
        key = feed_key(event.subscription, self._broker.secret)
        return Message(event, target, key, self.settings.base_url, is_test, others)

    # --- sending, in a worker ----------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None and not self._stop.is_set():
            host, sending, was_quick = task
            begun = time.monotonic()
            outcome = self._outcome(sending.message)
            is_quick = outcome.is_delivered and time.monotonic() - begun < self.settings.quick
            if self._ended.is_set():
                return
            is_written = False
            try:
                self._settle(sending, outcome)
                is_written = True
            except Exception:  # as of a full disk: it is sent again
                _log.exception("the outcome of a delivery could not be written")
            self._done.put(_Done(host, sending, was_quick, is_quick, is_written, outcome))
            super().wake()

    def _outcome(self, message: Message) -> Outcome:
        try:
            secret = opened(message.target.secret, self._broker.secret)
            return self.channels.send(replace(message, target=replace(message.target, secret=secret)))
        except TriplewireError as error:
            return Outcome(shown(str(error)))
        except Exception:
            _log.exception("a channel failed: %s", message.target.kind)
            return Outcome("a fault of the service; it is in its log")

    def _settle(self, sending: _Sending, outcome: Outcome) -> None:
        """Write what came of a try."""
        at, table = self._clock(), deliveries
        this = table.c.number.in_((sending.number, *sending.others)), table.c.state == "pending"
        by = table.c.target if sending.others else table.c.number  # those of a digest stay together
        target = targets.update().where(targets.c.number == sending.target)

        def write(connection: Connection) -> None:
            here = sa.select(targets.c.number).where(targets.c.number == sending.target)
            if connection.execute(here).first() is None:  # all of its owner was removed
                return
            if outcome.per_minute is not None:
                named = hosts.update().where(hosts.c.name == sa.select(targets.c.host).where(
                    targets.c.number == sending.target).scalar_subquery())  # fmt: skip
                connection.execute(named.values(per_minute=outcome.per_minute))
            tried = {"due": at, "tries": sending.tries + 1, "status": outcome.text}
            if outcome.is_delivered:
                connection.execute(table.update().where(*this).values(state="delivered", **tried))
                if sending.failures:
                    connection.execute(target.values(failures=0))
                    connection.execute(failing.delete().where(failing.c.target == sending.target, failing.c.is_told))
                return
            until = sa.case((targets.c.until > at + outcome.pause, targets.c.until), else_=at + outcome.pause)
            connection.execute(target.values(failures=targets.c.failures + 1, until=until))
            if outcome.is_gone:
                connection.execute(table.update().where(*this).values(state="dead", **tried))
                end_target(connection, sending.target, "the target is gone")
                _note_failing(connection, sending, outcome)
                return
            failed = table.update().where(*this).values(self._failed(outcome, at, by, 0.5))
            states = connection.execute(failed.returning(table.c.state)).scalars().all()
            failures = connection.execute(sa.select(targets.c.failures).where(targets.c.number == sending.target))
            if outcome.of_target and sending.is_first and failures.scalar_one() >= _DOWN:
                never = (table.c.status == "") | table.c.status.startswith(_NOT_TRIED, autoescape=True)
                said = sa.case((never, _NOT_TRIED + outcome.text), else_=table.c.status)
                due = table.c.target == sending.target, table.c.state == "pending", table.c.due <= at
                values = self._failed(outcome, at, table.c.target, 0.0) | {"status": said}
                failed = table.update().where(*due).values(values).returning(table.c.state)
                states = [*states, *connection.execute(failed).scalars()]
            if "dead" in states:
                _note_failing(connection, sending, outcome)

        self._database.write(write)

    def _failed(self, outcome: Outcome, at: float, by: sa.Column[int], part: float) -> dict[str, Any]:
        """The values of a delivery that failed once more. The jitter is in one half of what is allowed: what was only
        thought to fail comes before what was tried, and, by the number of its target, all at one time."""
        table, schedule = deliveries.c, self.settings.schedule
        share = part + sa.cast(by * 61 % 100, sa.Float) / 200
        jitter = 1.0 + share * self.settings.jitter
        pauses = dict(enumerate(schedule[1:]))
        pause = sa.case(pauses, value=table.tries, else_=schedule[-1]) * jitter
        is_last = table.tries + 1 >= len(schedule)
        return {
            "state": sa.case((is_last, "dead"), else_="pending"),
            "due": at + sa.case((is_last, 0.0), (pause < outcome.pause, outcome.pause), else_=pause),
            "tries": table.tries + 1,
            "status": outcome.text,
        }


def _note_failing(connection: Connection, sending: _Sending, outcome: Outcome) -> None:
    """Have the owner told that deliveries to a target were given up, unless that was told since it took something. Who
    subscribes by a hub is another one, of whom the owner knows nothing."""
    target = sending.message.target
    if target.form:
        return
    said = {"address": shown_address(target.kind, target.address), "answer": outcome.text}
    solution = {name: {"type": "literal", "value": value} for name, value in said.items()}
    text = "INSERT INTO failing (target, subscription, solution, is_told) VALUES (:target, :subscription, :solution, "
    values = {"target": sending.target, "subscription": sending.message.event.subscription}
    there = sa.text(text + "FALSE) ON CONFLICT (target) DO NOTHING")
    connection.execute(there, {**values, "solution": json.dumps(solution)})


def _digest(connection: Connection, target: int, at: float) -> dict[int, Event]:
    """The deliveries that a target is sent together now, with their events."""
    here = sa.select(deliveries.c.number, deliveries.c.event).where(
        deliveries.c.target == target, deliveries.c.state == "pending", deliveries.c.due <= at
    )
    rows = connection.execute(here.order_by(deliveries.c.event).limit(_DIGEST)).all()
    events = with_numbers(connection, [row.event for row in rows])
    return {row.number: events[row.event] for row in rows if row.event in events}


def _is_first(row: Row[Any]) -> bool:
    return not row.status or row.status.startswith(_NOT_TRIED)


def _first(connection: Connection, target: int) -> Any:
    """The event and the time of the first delivery that a target waits for."""
    here = sa.select(deliveries.c.event, deliveries.c.due)
    here = here.where(deliveries.c.target == target, deliveries.c.state == "pending").order_by(deliveries.c.event)
    return connection.execute(here.limit(1)).first()


def _postpone(connection: Connection, expired: Mapping[int, str], later: Mapping[int, float], at: float) -> None:
    """End deliveries that nobody waits for, and have those of targets wait."""
    table = deliveries
    for number, reason in expired.items():
        here = table.update().where(table.c.number == number, table.c.state == "pending")
        connection.execute(here.values(state="expired", due=at, status=reason))
    for target, due in later.items():
        here = table.update().where(table.c.target == target, table.c.state == "pending", table.c.due < due)
        connection.execute(here.values(due=due))
