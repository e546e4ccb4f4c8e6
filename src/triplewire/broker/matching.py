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

A publication that ended a process (a term began with it accepted) is matched alone, and its tries are counted before:
after `MOST_TRIES` it is refused, and the others go on.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from triplewire.broker.events import CHANGED, EXPIRED, MATCHED, SUSPENDED, UNMATCHED
from triplewire.broker.publications import restored
from triplewire.broker.subscriptions import ACTIVE, ENDED, HAS_TARGETS, Followed
from triplewire.encode.strings import TextColumn
from triplewire.errors import BusyError, TriplewireError
from triplewire.model.publication import Publication
from triplewire.store.database import Database, insert_rows, now
from triplewire.store.tables import attachments, changes, deliveries, events, publications, subscriptions, targets

WORK = "matching"
AT_ONCE = 100  # publications of one batch
MOST_TRIES = 2
_EXPIRING = 1_000  # subscriptions that end in one transaction
_LOOK = 0.5  # seconds between looks at what another process has accepted
_TAKE_OVER = 2.0  # seconds between tries to become the process that matches

_log = logging.getLogger("triplewire.broker")


class Accepted(NamedTuple):
    """A publication that waits to be matched."""

    number: int
    previous: int | None
    publication: Publication
    readers: frozenset[str] | None


@dataclass
class Pairs:
    """What one publication matches: numbers of subscriptions, the bindings of each as JSON text, and the subscriptions
    whose evaluation has passed a limit, with the reason."""

    subscriptions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    bindings: list[str] = field(default_factory=list)
    undecided: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Batch:
    """What matching a batch has found, as rows to be written."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    delivering: list[tuple[int, int]] = field(default_factory=list)  # event, subscription
    matched: dict[int, int] = field(default_factory=dict)  # publication -> how many subscriptions
    refused: dict[int, str] = field(default_factory=dict)  # publication -> why it could not be matched
    numbers: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # publication -> the subscriptions
    undecided: list[tuple[int, str]] = field(default_factory=list)  # subscriptions that passed a limit, and the reason


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
        self._next_number = 1
        self._sequences: NDArray[np.int64] = np.zeros(1_024, np.int64)
        self._careful: set[int] = set()  # accepted when the term began: one of them may have ended a process
        self._working = threading.Lock()  # numbers are counted by one thread at a time
        self.judge: Callable[[Sequence[Accepted], Batch], None] = lambda accepted, batch: None
        """Called with what was matched and told, to look at what it has cost."""
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
                self.wake.clear()
                if not self.step():
                    self.wake.wait(_LOOK)
            except BusyError:
                self._term = None
            except Exception:  # as of a full disk or a database that is away: nothing is lost, so try again
                _log.exception("matching failed, and is tried again")
                self._term = None
                self._stop.wait(_TAKE_OVER)

    def _begin_term(self) -> bool:
        term = self._database.alone_at(WORK, self._holder)
        if term is None:
            self._followed.follow()  # to be ready when the other process ends
            return False
        with self._database.reading() as connection:
            self._next_number = (connection.execute(sa.select(sa.func.max(events.c.number))).scalar() or 0) + 1
            newest = sa.select(events.c.subscription, sa.func.max(events.c.sequence)).group_by(events.c.subscription)
            found = connection.execute(newest).all()
            waiting = sa.select(publications.c.number).where(publications.c.state == "accepted")
            self._careful = set(connection.execute(waiting).scalars())
        self._sequences = np.zeros(1_024, np.int64)
        if found:
            numbers, sequences = np.array(found, np.int64).T
            self._grow(int(numbers.max()))
            self._sequences[numbers] = sequences
        self._term = term
        return True

    def step(self) -> int:
        """Match the next batch; returns how many publications were in it."""
        with self._working:
            accepted, batch = self._step()
        if accepted:
            self.judge(accepted, batch)
        return len(accepted)

    def _step(self) -> tuple[Sequence[Accepted], Batch]:
        accepted = self._next_batch()
        if not accepted:
            return (), Batch()
        self._followed.follow()
        batch = self._matched(accepted)
        # where this fails, the next term begins with the numbers that the store has
        self._database.write(lambda connection: self._write(connection, accepted, batch))
        self._careful.difference_update(entry.number for entry in accepted)
        self._told(batch)
        return accepted, batch

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
            if rows[0].tries >= MOST_TRIES:
                reason = f"it ended the process that matched it {rows[0].tries} times"
                self._database.write(lambda connection: self._refuse(connection, {rows[0].number: reason}))
                return self._next_batch()
            one_more = table.update().where(table.c.number == rows[0].number).values(tries=rows[0].tries + 1)
            self._database.write(lambda connection: connection.execute(one_more))
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

    def expire(self) -> int:
        """End the subscriptions whose time is over, each with an event; returns how many. Nothing where another process
        matches. A subscription that is renewed at the same moment is either renewed, or has ended."""
        if self._term is None:
            return 0
        table, at = subscriptions, now()
        over = sa.select(table.c.number).where(table.c.state != ENDED, table.c.expires <= at).limit(_EXPIRING)

        def write(connection: Connection) -> list[int]:
            assert self._term is not None
            self._database.check_term(connection, WORK, self._term)
            ended = list(connection.execute(over.with_for_update()).scalars())
            batch = Batch()
            for number in ended:
                here = table.update().where(table.c.number == number)
                connection.execute(here.values(state=ENDED, reason="its time is over"))
                connection.execute(changes.insert().values(subscription=number))
            self._add(batch, np.array(ended, np.int64), repeat(EXPIRED), None, at, repeat("[]"))
            insert_rows(connection, events, batch.events)
            if batch.delivering:
                self._deliver(connection, batch)
            return ended

        with self._working:
            ended = self._database.write(write)
        self._followed.follow()
        return len(ended)

    def suspend(self, reasons: Mapping[int, str]) -> None:
        """Take subscriptions out of matching, each with an event; their owners see why. Nothing where another process
        matches, or of those that are not active any more."""
        table, at = subscriptions, now()

        def write(connection: Connection) -> Batch:
            assert self._term is not None
            self._database.check_term(connection, WORK, self._term)
            batch = Batch()
            suspended: list[int] = []
            for number, reason in sorted(reasons.items()):
                here = table.update().where(table.c.number == number, table.c.state == ACTIVE)
                if connection.execute(here.values(state=SUSPENDED, reason=reason)).rowcount:
                    connection.execute(changes.insert().values(subscription=number))
                    suspended.append(number)
            self._add(batch, np.array(suspended, np.int64), repeat(SUSPENDED), None, at, repeat("[]"))
            insert_rows(connection, events, batch.events)
            if batch.delivering:
                self._deliver(connection, batch)
            return batch

        if self._term is None:
            return
        with self._working:
            batch = self._database.write(write)
        self._followed.follow()
        self._told(batch)

    # --- events ------------------------------------------------------------------------------------------------------

    def _matched(self, accepted: Sequence[Accepted]) -> Batch:
        """The events of a batch. A publication that cannot be matched is refused, and does not hold up others."""
        batch = Batch()
        try:
            of_each = self._pairs([entry.publication for entry in accepted])
        except TriplewireError:
            of_each = []
            for entry in accepted:
                try:
                    of_each += self._pairs([entry.publication])
                except TriplewireError as error:
                    batch.refused[entry.number] = str(error)
                    of_each.append(Pairs())
        previous = self._told_before(accepted)
        at = now()
        for entry, pairs in zip(accepted, of_each, strict=True):
            if entry.number in batch.refused:
                continue
            numbers, bindings = pairs.subscriptions, pairs.bindings
            if entry.readers is not None:
                may = np.isin(self._followed.owner[numbers], self._followed.owners_among(entry.readers))
                numbers, bindings = numbers[may], [text for text, it_may in zip(bindings, may, strict=True) if it_may]
            batch.matched[entry.number], batch.numbers[entry.number] = len(numbers), numbers
            batch.undecided += pairs.undecided
            was = previous.get(entry.previous, set()) if entry.previous is not None else set()
            kinds: Iterable[str] = repeat(MATCHED)
            if was:
                kinds = [CHANGED if number in was else MATCHED for number in numbers.tolist()]
            self._add(batch, numbers, kinds, entry.number, at, bindings)
            gone = [n for n in sorted(was.difference(numbers.tolist())) if str(n) in self._followed.engine]
            for told_of, subscriptions_ in self._by_sight(entry, np.array(gone, np.int64)):
                self._add(batch, subscriptions_, repeat(UNMATCHED), told_of, at, repeat("[]"))
        return batch

    def _by_sight(self, entry: Accepted, numbers: NDArray[np.int64]) -> Iterable[tuple[int | None, NDArray[np.int64]]]:
        """Subscriptions that a publication matches no more, by the content that their owners may be told of: this one,
        or where they may not read it, that before."""
        if entry.readers is None:
            return [(entry.number, numbers)]
        may = np.isin(self._followed.owner[numbers], self._followed.owners_among(entry.readers))
        return [(entry.number, numbers[may]), (entry.previous, numbers[~may])]

    def _pairs(self, given: list[Publication]) -> list[Pairs]:
        """What each publication matches."""
        place = {publication.id: number for number, publication in enumerate(given)}
        result = self._followed.engine.match(given)
        of_each = [Pairs() for _ in given]
        for refusal in result.refusals:
            _log.warning("%s", refusal)
            publication, _, subscription = refusal.subject.rpartition(" ")
            if refusal.kind == "pair" and "max_steps" in refusal.remedy:  # no operator is to blame
                of_each[place[publication]].undecided.append((int(subscription), refusal.reason))
        for part in result.parts:
            subscriptions_ = np.fromiter(map(int, part.ids()), np.int64, len(part))
            bindings = [text for texts in part.texts() for text in _decoded(texts.bindings)]
            ends = np.searchsorted(part.publication, np.arange(len(part.publications)), "right").tolist()
            begin = 0
            for id_, end in zip(part.publications, ends, strict=True):
                pairs = of_each[place[id_]]
                pairs.subscriptions = np.concatenate([pairs.subscriptions, subscriptions_[begin:end]])
                pairs.bindings += bindings[begin:end]
                begin = end
        return of_each

    def _told_before(self, accepted: Sequence[Accepted]) -> dict[int, set[int]]:
        """Content before -> the subscriptions that it matched."""
        numbers = [entry.previous for entry in accepted if entry.previous is not None]
        told: dict[int, set[int]] = {number: set() for number in numbers}
        if numbers:
            here = sa.select(events.c.publication, events.c.subscription).where(
                events.c.publication.in_(numbers), events.c.type != UNMATCHED
            )
            with self._database.reading() as connection:
                for publication, subscription in connection.execute(here):
                    told[publication].add(subscription)
        return told

    def _add(
        self,
        batch: Batch,
        numbers: NDArray[np.int64],
        kinds: Iterable[str],
        publication: int | None,
        at: float,
        bindings: Iterable[str],
    ) -> None:
        """Add an event for each of these subscriptions, each of which is there once."""
        count = len(numbers)
        if not count:
            return
        self._grow(int(numbers.max()))
        self._sequences[numbers] += 1
        first, self._next_number = self._next_number, self._next_number + count
        sequences = self._sequences[numbers].tolist()
        listed = numbers.tolist()
        every = (range(first, first + count), listed, sequences, kinds, repeat(publication), repeat(at), bindings)
        batch.events += zip(*every, repeat(None), strict=False)
        waiting = np.flatnonzero(self._followed.flags[numbers] & HAS_TARGETS).tolist()
        batch.delivering += [(first + place, listed[place]) for place in waiting]

    def _grow(self, number: int) -> None:
        if number >= len(self._sequences):
            self._sequences = np.concatenate([self._sequences, np.zeros(2 * number - len(self._sequences), np.int64)])

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self, connection: Connection, accepted: Sequence[Accepted], batch: Batch) -> None:
        assert self._term is not None
        self._database.check_term(connection, WORK, self._term)
        self._chosen(connection, accepted, batch)
        insert_rows(connection, events, batch.events)
        if batch.delivering:
            self._deliver(connection, batch)
        done = list(batch.matched)
        for begin in range(0, len(done), 500):
            part = publications.c.number.in_(done[begin : begin + 500])
            connection.execute(publications.update().where(part).values(state="matched"))
        self._refuse(connection, batch.refused)

    def _deliver(self, connection: Connection, batch: Batch) -> None:
        waiting = sorted({subscription for _, subscription in batch.delivering})
        of_subscription: dict[int, list[int]] = {}
        for begin in range(0, len(waiting), 500):
            here = sa.select(targets.c.subscription, targets.c.number).where(
                targets.c.subscription.in_(waiting[begin : begin + 500]), targets.c.state == "active"
            )
            for subscription, target in connection.execute(here):
                of_subscription.setdefault(subscription, []).append(target)
        due = now()
        rows = [
            {"event": event, "target": target, "state": "pending", "due": due, "tries": 0, "status": ""}
            for event, subscription in batch.delivering
            for target in of_subscription.get(subscription, ())
        ]
        if rows:
            connection.execute(deliveries.insert(), rows)

    @staticmethod
    def _refuse(connection: Connection, refused: dict[int, str]) -> None:
        for number, reason in refused.items():
            here = publications.update().where(publications.c.number == number)
            connection.execute(here.values(state="refused", reason=reason))


def _decoded(column: TextColumn) -> list[str]:
    """The texts of a column by row; rows that share a text share the string."""
    data, offset = column.text.tobytes(), column.offset.tolist()
    texts = [data[begin:end].decode("utf-8") for begin, end in pairwise(offset)]
    return list(map(texts.__getitem__, column.number.tolist()))
