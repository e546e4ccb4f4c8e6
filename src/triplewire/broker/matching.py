"""Turns accepted publications into events, in one process at a time.

A batch of accepted publications is matched, and its events, the deliveries that they cause and the state of the
publications are written in one transaction. So a process that is killed leaves a batch either as it was, or told.

    numbers and sequences of events are counted in memory, from what the store has when a term begins
    for each batch of accepted publications, in the order of their numbers, no two contents of one id in it:
        take over changes of subscriptions                       (so who subscribed before is told)
        match the batch
        for each publication:
            was  = the subscriptions that were told of its content before
            now  = the subscriptions that match, without those of owners who may not read it
            matched: now - was    changed: now and was    unmatched: was - now
        write all, where this term still lasts

A publication that may have ended a process (it is in the first batch of a term) is matched alone, and its tries are
counted before: after `MOST_TRIES` it is refused, and the others go on. Tries that the database alone has cut short do
not count. Where one subscription is to blame for `MOST_BLAMED` publications, it is suspended and they are matched after
all (`triplewire.broker.blame`).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from triplewire import crash
from triplewire.broker.blame import who_ends_it
from triplewire.broker.events import CHANGED, EXPIRED, EXPIRING, MATCHED, UNMATCHED
from triplewire.broker.owed import add_total
from triplewire.broker.publications import restored
from triplewire.broker.skipped import first_numbers
from triplewire.broker.subscriptions import ACTIVE, ENDED, HAS_TARGETS, PAUSED, SUSPENDED, Followed, StoreTexts
from triplewire.errors import StoreError, TriplewireError, UnavailableError
from triplewire.languages.sources.rows import Row
from triplewire.model.match import bindings_text
from triplewire.model.publication import Publication
from triplewire.store.database import Database, insert_rows, now
from triplewire.store.tables import attachments, changes, deliveries, events, publications, subscriptions, targets

WORK = "matching"
AT_ONCE = 100  # publications of one batch
MOST_TRIES = 2
MOST_BLAMED = 2  # publications that a subscription has ended the process with
_EXPIRING = 1_000  # subscriptions that end in one transaction
_LOOK_AT_ENDS = 1.0  # seconds between looks at subscriptions whose time is over
_LOOK = 0.5  # seconds between looks at what another process has accepted
_TAKE_OVER = 0.5  # seconds between tries to become the process that matches
_AFTER_ERROR = 2.0  # seconds

_log = logging.getLogger("triplewire.broker")


class Accepted(NamedTuple):
    """A publication that waits to be matched."""

    number: int
    previous: int | None
    publication: Publication
    readers: frozenset[str] | None


@dataclass
class Batch:
    """What matching a batch has found, as rows to be written."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    delivering: list[tuple[int, int]] = field(default_factory=list)  # event, subscription
    hosts: set[str] = field(default_factory=set)  # of the targets that events are delivered to
    matched: dict[int, int] = field(default_factory=dict)  # publication -> how many subscriptions
    refused: dict[int, str] = field(default_factory=dict)  # publication -> why it could not be matched
    seconds: float = 0.0  # that matching took


class Matching:
    """Matches what was accepted, as long as this process has the term. `told` is called with what was matched."""

    def __init__(
        self,
        database: Database,
        followed: Followed,
        holder: str,
        told: Callable[[Batch], None] = lambda batch: None,
        chosen: Callable[[Connection, Sequence[Accepted], Batch], None] = lambda connection, accepted, batch: None,
    ) -> None:
        self._database = database
        self._followed = followed
        self._holder = holder
        self._told = told
        self._chosen = chosen  # may change what is told, in the transaction that writes it: `triplewire.broker.stories`
        self._term: int | None = None
        self._next_number = self._first_sequence = 1
        self._sequences: NDArray[np.int64] = np.zeros(1_024, np.int64)
        self._careful: set[int] = set()  # the first batch of this term: one of it may have ended the process before
        self._counted: set[int] = set()  # tries that are counted already, but were cut short by the database alone
        self._ends_due = 0.0  # by the monotonic clock
        self._working = threading.Lock()  # numbers are counted by one thread at a time
        self.wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="matching", daemon=True)

    @property
    def is_ours(self) -> bool:
        """Does this process match now?"""
        return self._term is not None

    def start(self) -> None:
        """Begin in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End once the batch that is under way is written."""
        self._stop.set()
        self.wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._term is None and not self._begin_term():
                    self._stop.wait(_TAKE_OVER)
                    continue
                if time.monotonic() >= self._ends_due and self.expire() < _EXPIRING:
                    self._ends_due = time.monotonic() + _LOOK_AT_ENDS
                self.wake.clear()
                if not self.step() and not self._stop.is_set():  # `stop` may have come before the clearing
                    self.wake.wait(_LOOK)
            except (StoreError, UnavailableError) as error:  # another process matches, the disk is full, and the like
                _log.warning("matching waits: %s", error)
                self._stop.wait(_AFTER_ERROR)
            except Exception:
                _log.exception("matching failed, and is tried again")
                self._counted.clear()
                self._stop.wait(_AFTER_ERROR)

    def _begin_term(self) -> bool:
        term = self._database.alone_at(WORK, self._holder)
        if term is None:
            self._followed.follow()  # to be ready when the other process ends
            return False
        with self._database.reading() as connection:
            first, self._first_sequence = first_numbers(connection)
            last = connection.execute(sa.select(sa.func.max(events.c.number))).scalar() or 0
            self._next_number = max(first, last + 1)
            newest = sa.select(events.c.subscription, sa.func.max(events.c.sequence)).group_by(events.c.subscription)
            newest_rows = connection.execute(newest).all()
            waiting = sa.select(publications.c.number).where(publications.c.state == "accepted")
            oldest = waiting.order_by(publications.c.number).limit(AT_ONCE)
            self._careful = set(connection.execute(oldest).scalars())
        self._sequences = np.full(1_024, self._first_sequence - 1, np.int64)
        if newest_rows:
            numbers, sequences = np.array(newest_rows, np.int64).T
            self._grow(int(numbers.max()))
            self._sequences[numbers] = np.maximum(sequences, self._first_sequence - 1)
        self._term = term
        return True

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Numbers of events are counted by one thread at a time. Where they could not be written, this term is over:
        the next one begins with those that the store has."""
        with self._working:
            try:
                yield
            except BaseException:
                self._term = None
                raise

    def step(self) -> int:
        """Match the next batch; returns how many publications were in it. Raises what the database does."""
        with self._counting():
            return self._step()

    def _step(self) -> int:
        accepted = self._next_batch()
        if not accepted:
            return 0
        self._followed.follow()
        crash.point("matching.begun")
        begun = time.perf_counter()
        batch = self._matched(accepted)
        batch.seconds = time.perf_counter() - begun
        crash.point("matching.found")
        self._database.write(lambda connection: self._write(connection, accepted, batch))
        crash.point("events.committed")
        self._careful.difference_update(entry.number for entry in accepted)
        self._counted.difference_update(entry.number for entry in accepted)
        self._told(batch)
        return len(accepted)

    def _next_batch(self) -> list[Accepted]:
        table = publications
        with self._database.reading() as connection:
            rows = connection.execute(
                sa.select(table).where(table.c.state == "accepted").order_by(table.c.number).limit(AT_ONCE)
            ).all()
            files: dict[int, dict[str, bytes]] = {}
            for file in connection.execute(
                sa.select(attachments).where(attachments.c.publication.in_([row.number for row in rows]))
            ):
                files.setdefault(file.publication, {})[file.name] = file.content
        if rows and rows[0].number in self._careful:
            rows = rows[:1]
            if rows[0].tries >= MOST_TRIES and rows[0].number not in self._counted:
                self._give_up(rows[0], files.get(rows[0].number))
                return self._next_batch()
            if rows[0].number not in self._counted:
                one_more = table.update().where(table.c.number == rows[0].number).values(tries=table.c.tries + 1)
                self._database.write(lambda connection: connection.execute(one_more))
                self._counted.add(rows[0].number)
        accepted: list[Accepted] = []
        seen: set[str] = set()
        for row in rows:
            if row.id in seen:  # another content of it: the first one is told first
                break
            seen.add(row.id)
            readers = None if row.readers is None else frozenset(json.loads(row.readers))
            publication = restored(row.body, row.id, row.source, files.get(row.number))
            accepted.append(Accepted(row.number, row.previous, publication, readers))
        return accepted

    def _give_up(self, row: Any, files: Mapping[str, bytes] | None) -> None:
        """Refuse a publication that has ended the process, or suspend the subscription that did it again and again."""
        texts = list(StoreTexts(self._database).rows())
        given = restored(row.body, row.id, row.source, files)
        culprit = who_ends_it(self._followed.engine, [text for text in texts if isinstance(text, Row)], given)
        table, by = publications, subscriptions.c.number == culprit
        blamed = table.c.culprit == culprit
        refused = table.update().where(table.c.number == row.number)
        reason = f"it ended the process that matched it {row.tries} times"

        def write(connection: Connection) -> None:
            connection.execute(refused.values(state="refused", reason=reason, culprit=culprit))
            count = connection.execute(sa.select(sa.func.count()).select_from(table).where(blamed)).scalar_one()
            if culprit is None or count < MOST_BLAMED:
                return
            why = f"it ended the process that matched it with {count} publications, as {row.id}"
            connection.execute(subscriptions.update().where(by).values(state=SUSPENDED, reason=why))
            connection.execute(changes.insert().values(subscription=culprit))
            again = table.update().where(blamed, table.c.state == "refused")
            connection.execute(again.values(state="accepted", tries=0, reason="", culprit=None))

        self._database.write(write)

    def expire(self) -> int:
        """End the subscriptions whose time is over, each with an event, and tell of those that end within a day;
        returns how many. Nothing where another process matches. A subscription that is renewed at the same moment is
        either renewed, or has ended."""
        table, at = subscriptions, now()
        lasting = table.c.state.in_((ACTIVE, PAUSED, SUSPENDED))
        over = sa.select(table.c.number).where(lasting, table.c.expires <= at)
        soon = sa.select(table.c.number).where(lasting, table.c.warns <= at, table.c.expires > at)
        ended = self._tell(over, EXPIRED, at, {"state": ENDED, "reason": "its time is over", "warns": None})
        if ended:
            self._followed.follow()
        return ended + self._tell(soon, EXPIRING, at, {"warns": None})

    def _tell(self, which: sa.Select[Any], kind: str, at: float, values: dict[str, Any]) -> int:
        """Give an event to each of these subscriptions, and change its row; returns how many."""
        if self._term is None:
            return 0
        which = which.limit(_EXPIRING)
        with self._database.reading() as connection:
            if connection.execute(which.limit(1)).first() is None:
                return 0

        def write(connection: Connection) -> Batch:
            assert self._term is not None
            self._database.check_term(connection, WORK, self._term)
            batch = Batch()
            for number in connection.execute(which.with_for_update()).scalars().all():
                connection.execute(subscriptions.update().where(subscriptions.c.number == number).values(values))
                if "state" in values:
                    connection.execute(changes.insert().values(subscription=number))
                self._add(batch, number, kind, None, at, "[]")
            insert_rows(connection, events, batch.events)
            if batch.delivering:
                self._deliver(connection, batch)
            return batch

        with self._counting():
            if self._term is None:
                return 0
            batch = self._database.write(write)
        self._told(batch)
        return len(batch.events)

    # --- events ------------------------------------------------------------------------------------------------------

    def _matched(self, accepted: Sequence[Accepted]) -> Batch:
        """The events of a batch. A publication that cannot be matched is refused, and does not hold up others."""
        batch = Batch()
        try:
            pairs = self._pairs([entry.publication for entry in accepted])
        except (StoreError, UnavailableError):  # it is the database that has texts of subscriptions, not a publication
            raise
        except TriplewireError:
            pairs = []
            for entry in accepted:
                try:
                    pairs += self._pairs([entry.publication])
                except (StoreError, UnavailableError):
                    raise
                except TriplewireError as error:
                    batch.refused[entry.number] = str(error)
                    pairs.append(([], []))
        previous = self._told_before(accepted)
        at = now()
        for entry, (numbers, bindings) in zip(accepted, pairs, strict=True):
            if entry.number in batch.refused:
                continue
            if entry.readers is not None and numbers:
                allowed = np.isin(self._followed.owner[numbers], self._followed.owners_among(entry.readers))
                numbers = [number for number, may in zip(numbers, allowed, strict=True) if may]
                bindings = [text for text, may in zip(bindings, allowed, strict=True) if may]
            was = previous.get(entry.previous, set()) if entry.previous is not None else set()
            batch.matched[entry.number] = len(numbers)
            for number, text in zip(numbers, bindings, strict=True):
                self._add(batch, number, CHANGED if number in was else MATCHED, entry.number, at, text)
            for number in sorted(was.difference(numbers)):
                if str(number) in self._followed.engine:
                    self._add(batch, number, UNMATCHED, entry.number, at, "[]")
        return batch

    def _pairs(self, given: list[Publication]) -> list[tuple[list[int], list[str]]]:
        """Of each publication: the numbers of the subscriptions that match, and the bindings of each as JSON."""
        place = {publication.id: number for number, publication in enumerate(given)}
        pairs: list[tuple[list[int], list[str]]] = [([], []) for _ in given]
        result = self._followed.engine.match(given)
        for refusal in result.refusals:
            _log.warning("%s", refusal)
        for match in result:
            numbers, bindings = pairs[place[match.publication]]
            numbers.append(int(match.subscription))
            bindings.append(bindings_text(match.bindings))
        return pairs

    def _told_before(self, accepted: Sequence[Accepted]) -> dict[int, set[int]]:
        """Content before -> the subscriptions that it matched; of one that was refused, those of the one before it."""
        numbers = {entry.previous for entry in accepted if entry.previous is not None}
        stands_for = {number: number for number in numbers}
        no_events = publications.c.state.not_in(("accepted", "matched"))
        refused = sa.select(publications.c.number, publications.c.previous).where(no_events)
        with self._database.reading() as connection:
            while numbers:
                passed_over = connection.execute(refused.where(publications.c.number.in_(numbers))).all()
                steps = [(number, before) for number, before in passed_over if before]
                stands_for |= {before: stands_for[number] for number, before in steps}
                numbers = {before for _, before in steps}
            told: dict[int, set[int]] = {of: set() for of in stands_for.values()}
            here = sa.select(events.c.publication, events.c.subscription).where(
                events.c.publication.in_(list(stands_for)), events.c.type != UNMATCHED
            )
            for publication, subscription in connection.execute(here) if stands_for else ():
                told[stands_for[publication]].add(subscription)
        return told

    def _add(
        self, batch: Batch, subscription: int, kind: str, publication: int | None, at: float, bindings: str
    ) -> None:
        if subscription >= len(self._sequences):
            self._grow(subscription)
        self._sequences[subscription] += 1
        number = self._next_number
        self._next_number += 1
        sequence = int(self._sequences[subscription])
        batch.events.append((number, subscription, sequence, kind, publication, at, bindings, None))
        if self._followed.flags[subscription] & HAS_TARGETS:
            batch.delivering.append((number, subscription))

    def _grow(self, number: int) -> None:
        if number >= len(self._sequences):
            more = np.full(2 * number - len(self._sequences), self._first_sequence - 1, np.int64)
            self._sequences = np.concatenate([self._sequences, more])

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self, connection: Connection, accepted: Sequence[Accepted], batch: Batch) -> None:
        assert self._term is not None
        self._database.check_term(connection, WORK, self._term)
        self._chosen(connection, accepted, batch)
        insert_rows(connection, events, batch.events)
        crash.point("events.inserted")
        if batch.delivering:
            self._deliver(connection, batch)
        done = list(batch.matched)
        for begin in range(0, len(done), 500):
            part = publications.c.number.in_(done[begin : begin + 500])
            connection.execute(publications.update().where(part).values(state="matched"))
        self._refuse(connection, batch.refused)
        crash.point("events.written")

    def _deliver(self, connection: Connection, batch: Batch) -> None:
        waiting = sorted({subscription for _, subscription in batch.delivering})
        due = now()
        lasts = targets.c.expires.is_(None) | (targets.c.expires > due)
        of_subscription: dict[int, list[tuple[int, str]]] = {}
        for begin in range(0, len(waiting), 500):
            here = sa.select(targets.c.subscription, targets.c.number, targets.c.host).where(
                targets.c.subscription.in_(waiting[begin : begin + 500]), targets.c.state == "active", lasts
            )
            for subscription, target, host in connection.execute(here):
                of_subscription.setdefault(subscription, []).append((target, host))
        pending = {"state": "pending", "due": due, "tries": 0, "status": ""}
        rows = [
            {"event": event, "target": target, "host": host, **pending}
            for event, subscription in batch.delivering
            for target, host in of_subscription.get(subscription, ())
        ]
        if rows:
            connection.execute(deliveries.insert(), rows)
            add_total(connection, "matched", len(rows))
            batch.hosts.update(host for held in of_subscription.values() for _, host in held)

    @staticmethod
    def _refuse(connection: Connection, refused: dict[int, str]) -> None:
        for number, reason in refused.items():
            here = publications.update().where(publications.c.number == number)
            connection.execute(here.values(state="refused", reason=reason))
