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
            where the content is the same and another source brought it:
                matched: now - was - the subscriptions that match it as it came before
        write all, where this term still lasts

A publication that may have ended a process (it is in the first batch of a term) is matched alone, and its tries are
counted before: after `MOST_TRIES` it is refused, and the others go on. Tries that the database alone has cut short do
not count. Where one subscription is to blame for `MOST_BLAMED` publications, it is suspended and they are matched after
all (`triplewire.broker.events.culprit`).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from triplewire import crash
from triplewire.broker.events.culprit import culprit_of
from triplewire.broker.events.delivery_log import add_total
from triplewire.broker.events.event_log import (
    CHANGED,
    EXPIRED,
    EXPIRING,
    MATCHED,
    UNDELIVERED,
    UNMATCHED,
    first_numbers,
)
from triplewire.broker.publications.kept_contents import restored
from triplewire.broker.repeating import Repeating
from triplewire.broker.subscriptions.followed import (
    ACTIVE,
    ENDED,
    HAS_TARGETS,
    PAUSED,
    SUSPENDED,
    Followed,
    StoreTexts,
    rows_with,
)
from triplewire.broker.subscriptions.targets import due_at
from triplewire.encode.strings import TextColumn
from triplewire.errors import StoreError, TriplewireError, UnavailableError
from triplewire.model.publication import Publication
from triplewire.store.database import Database, insert_rows, now
from triplewire.store.tables import (
    attachments,
    changes,
    deliveries,
    events,
    failing,
    publications,
    subscriptions,
    targets,
)

WORK = "matching"
AT_ONCE = 100  # publications of one batch
MOST_TRIES = 2
MOST_BLAMED = 2  # publications that a subscription has ended the process with
_FAILING = 500  # targets that are told of in one transaction
_EXPIRING = 1_000  # subscriptions that end in one transaction
_LOOK_AT_ENDS = 1.0  # seconds between looks at subscriptions whose time is over
_LOOK = 0.5  # seconds between looks at what another process has accepted, or tries to become the one that matches

_before = publications.alias("before")
_IS_SAME = sa.and_(  # another source has brought what was there: `triplewire.broker.publications.accepted`
    _before.c.content == publications.c.content, _before.c.readers.is_not_distinct_from(publications.c.readers)
)
_NEXT = (
    sa.select(publications, sa.case((_IS_SAME, _before.c.body)).label("same"), _before.c.source.label("sources"))
    .outerjoin(_before, _before.c.number == publications.c.previous)
    .where(publications.c.state == "accepted")
    .order_by(publications.c.number)
    .limit(AT_ONCE)
)
_FILES = sa.select(attachments).where(attachments.c.publication.in_(sa.bindparam("numbers", expanding=True)))

_log = logging.getLogger("triplewire.broker")


class Accepted(NamedTuple):
    """A publication that waits to be matched."""

    number: int
    previous: int | None
    publication: Publication
    readers: frozenset[str] | None
    same: Publication | None = None  # as other sources have brought it before, with the same content


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
    hosts: set[str] = field(default_factory=set)  # of the targets that events are delivered to
    matched: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # publication -> subscriptions
    undecided: list[tuple[int, str]] = field(default_factory=list)  # subscriptions that passed a limit, and the reason
    refused: dict[int, str] = field(default_factory=dict)  # publication -> why it could not be matched
    seconds: float = 0.0  # that matching took


class Matching(Repeating):
    """Matches what was accepted, as long as this process has the term. `told` is called with what was matched."""

    def __init__(
        self,
        database: Database,
        followed: Followed,
        holder: str,
        told: Callable[[Batch], None] = lambda batch: None,
        chosen: Callable[[Connection, Sequence[Accepted], Batch], None] = lambda connection, accepted, batch: None,
        judge: Callable[[Sequence[Accepted], Batch], Mapping[int, str]] = lambda accepted, batch: {},
    ) -> None:
        super().__init__("matching")
        self._database = database
        self._followed = followed
        self._holder = holder
        self._told = told
        self._chosen = (
            chosen  # may change what is told, in the transaction that writes it: `triplewire.broker.events.stories`
        )
        self._judge = judge  # subscriptions to suspend, and why: `triplewire.broker.subscriptions.quarantine`
        self._term: int | None = None
        self._next_number = self._first_sequence = 1
        self._sequences: NDArray[np.int64] = np.zeros(1_024, np.int64)
        self._careful: set[int] = set()  # the first batch of this term: one of it may have ended the process before
        self._counted: set[int] = set()  # tries that are counted already, but were cut short by the database alone
        self._ends_due = 0.0  # by the monotonic clock
        self._working = threading.RLock()  # numbers are counted by one thread at a time

    @property
    def is_ours(self) -> bool:
        """Does this process match now?"""
        return self._term is not None

    def _turn(self) -> float:
        if self._term is None and not self._begin_term():
            return _LOOK
        if time.monotonic() >= self._ends_due and self.expire() < _EXPIRING:
            self._ends_due = time.monotonic() + _LOOK_AT_ENDS
        try:
            return 0.0 if self.step() else _LOOK
        except (StoreError, UnavailableError):
            raise
        except Exception:
            self._counted.clear()
            raise

    def _begin_term(self) -> bool:
        term = self._database.alone_at(WORK, self._holder)
        if term is None:
            self._followed.follow()  # to be ready when the other process ends
            return False
        with self._database.reading() as connection:
            self._next_number, self._first_sequence = first_numbers(connection)
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
            accepted = self._next_batch()
            if not accepted:
                return 0
            self._followed.follow(is_matching=True)
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
        self.suspend(self._judge(accepted, batch))
        return len(accepted)

    def _next_batch(self) -> list[Accepted]:
        table = publications
        with self._database.reading() as connection:
            rows = connection.execute(_NEXT).all()
            if not rows:
                return []
            files: dict[int, dict[str, bytes]] = {}
            for file in connection.execute(_FILES, {"numbers": [row.number for row in rows]}):
                files.setdefault(file.publication, {})[file.name] = file.content
        if rows[0].number in self._careful:
            rows = rows[:1]
            if rows[0].tries >= MOST_TRIES and rows[0].number not in self._counted:
                self._give_up(rows[0], files.get(rows[0].number))
                return self._next_batch()
            if rows[0].number not in self._counted:
                one_more = table.update().where(table.c.number == rows[0].number).values(tries=table.c.tries + 1)
                self._database.execute(one_more)
                self._counted.add(rows[0].number)
        accepted: list[Accepted] = []
        seen: set[str] = set()
        for row in rows:
            if row.id in seen:  # another content of it: the first one is told first
                break
            seen.add(row.id)
            readers = None if row.readers is None else frozenset(json.loads(row.readers))
            body, source, attached = row.body, row.source, files.get(row.number)
            same = None
            if row.same is not None:
                same = restored(row.same, row.id, row.sources, attached)
                source = source.partition("\n")[0]
            accepted.append(Accepted(row.number, row.previous, restored(body, row.id, source, attached), readers, same))
        return accepted

    def _give_up(self, row: Any, files: Mapping[str, bytes] | None) -> None:
        """Refuse a publication that has ended the process, or suspend the subscription that did it again and again."""
        given = restored(row.body, row.id, row.source, files)
        culprit = culprit_of(self._followed.engine, list(StoreTexts(self._database).rows()), given)
        table = publications
        blamed = table.c.culprit == culprit
        count = 1 + self._database.value(sa.select(sa.func.count()).select_from(table).where(blamed))
        if culprit is None or count < MOST_BLAMED:
            reason = f"it ended the process that matched it {row.tries} times"
            refused = table.update().where(table.c.number == row.number)
            self._database.execute(refused.values(state="refused", reason=reason, culprit=culprit))
            return
        why = f"it ended the process that matched it with {count} publications, as {row.id}"
        again = table.update().where((blamed & (table.c.state == "refused")) | (table.c.number == row.number))
        self.suspend({culprit: why}, again.values(state="accepted", tries=0, reason="", culprit=None))

    def expire(self) -> int:
        """End the subscriptions whose time is over, each with an event, and tell of those that end within a day;
        returns how many. Nothing where another process matches. A subscription that is renewed at the same moment is
        either renewed, or has ended."""
        table, at = subscriptions, now()
        lasting = table.c.state.in_((ACTIVE, PAUSED, SUSPENDED))
        over = (lasting, table.c.expires <= at)
        # of a state by !=, so that SQLite takes the index of warns: by that of states it would read all that last
        soon = (table.c.state != ENDED, table.c.warns <= at, table.c.expires > at)
        self._tell_of_failing()
        ended = self._tell(over, EXPIRED, {"state": ENDED, "reason": "its time is over", "warns": None})
        return ended + self._tell(soon, EXPIRING, {"warns": None})

    def _tell_of_failing(self) -> None:
        """Tell in its feed, and to no target, that deliveries of a subscription were given up."""
        new = sa.select(failing).where(sa.not_(failing.c.is_told)).order_by(failing.c.target).limit(_FAILING)

        def add(connection: Connection, batch: Batch) -> None:
            solutions: dict[int, list[Any]] = {}
            for row in (rows := connection.execute(new.with_for_update()).all()):
                solutions.setdefault(row.subscription, []).append(json.loads(row.solution))
            these = failing.c.target.in_([row.target for row in rows])
            works = sa.exists().where(targets.c.number == failing.c.target, targets.c.failures == 0)
            connection.execute(failing.delete().where(these, works))
            connection.execute(failing.update().where(these).values(is_told=True))
            numbers = np.array(list(solutions), np.int64)
            self._add(batch, numbers, repeat(UNDELIVERED), None, now(), map(json.dumps, solutions.values()))
            batch.delivering.clear()  # else what tells of a failure would fail next

        self._tell_of(new, add)

    def suspend(self, reasons: Mapping[int, str], *more: sa.Update) -> None:
        """Take active subscriptions out of matching, each with an event, for these reasons; with each, execute more.
        Nothing where another process matches."""
        for number, reason in sorted(reasons.items()):
            active = (subscriptions.c.number == number, subscriptions.c.state == ACTIVE)
            self._tell(active, SUSPENDED, {"state": SUSPENDED, "reason": reason}, *more)

    def _tell(
        self, which: Sequence[sa.ColumnElement[bool]], kind: str, values: Mapping[str, Any], *more: sa.Update
    ) -> int:
        """Give an event to each subscription of which this holds, change its row and execute more; returns how many
        there were."""
        rows = sa.select(subscriptions.c.number).where(*which).limit(_EXPIRING)

        def add(connection: Connection, batch: Batch) -> None:
            numbers = connection.execute(rows.with_for_update()).scalars().all()
            changed = subscriptions.update().where(subscriptions.c.number.in_(numbers))
            connection.execute(changed.values(**values))
            if numbers and "state" in values:
                connection.execute(changes.insert(), [{"subscription": number} for number in numbers])
            self._add(batch, np.array(numbers, np.int64), repeat(kind), None, now(), repeat("[]"))
            for statement in more:
                connection.execute(statement)

        count = self._tell_of(rows, add)
        if count and "state" in values:
            self._followed.follow()
        return count

    def _tell_of(self, rows: sa.Select[Any], add: Callable[[Connection, Batch], None]) -> int:
        """Where there are such rows, write the events that `add` makes of them; returns how many. None where another
        process matches."""
        batch = Batch()
        with self._counting():
            if self._term is None:
                return 0
            if not self._database.rows(rows.limit(1)):
                return 0

            def write(connection: Connection) -> None:
                assert self._term is not None
                self._database.check_term(connection, WORK, self._term)
                add(connection, batch)
                self._insert(connection, batch)

            self._database.write(write)
        self._told(batch)
        return len(batch.events)

    # --- events ------------------------------------------------------------------------------------------------------

    def _matched(self, accepted: Sequence[Accepted]) -> Batch:
        """The events of a batch. A publication that cannot be matched is refused, and does not hold up others."""
        batch = Batch()
        try:
            of_each = self._new_pairs(accepted)
        except (StoreError, UnavailableError):  # it is the database that has texts of subscriptions, not a publication
            raise
        except TriplewireError:
            of_each = []
            for entry in accepted:
                try:
                    of_each += self._new_pairs([entry])
                except (StoreError, UnavailableError):
                    raise
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
                may_read = self._may_read(entry, numbers)
                numbers, bindings = numbers[may_read], list(compress(bindings, may_read))
            batch.matched[entry.number] = numbers
            batch.undecided += pairs.undecided
            was = previous.get(entry.previous, set()) if entry.previous is not None else set()
            if entry.same is not None:
                is_new = ~np.isin(numbers, list(was))
                numbers, bindings, was = numbers[is_new], list(compress(bindings, is_new)), set()
            kinds: Iterable[str] = repeat(MATCHED)
            if was:
                kinds = [CHANGED if number in was else MATCHED for number in numbers.tolist()]
            self._add(batch, numbers, kinds, entry.number, at, bindings)
            missed = [n for n in sorted(was.difference(numbers.tolist())) if str(n) in self._followed.engine]
            if missed:  # an owner who may not read the new content is told of the one before
                gone = np.array(missed, np.int64)
                may_read = self._may_read(entry, gone)
                self._add(batch, gone[may_read], repeat(UNMATCHED), entry.number, at, repeat("[]"))
                self._add(batch, gone[~may_read], repeat(UNMATCHED), entry.previous, at, repeat("[]"))
        return batch

    def _may_read(self, entry: Accepted, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of each subscription: may its owner read the publication?"""
        if entry.readers is None:
            return np.ones(len(numbers), np.bool_)
        return np.isin(self._followed.owner[numbers], self._followed.owners_among(entry.readers))

    def _new_pairs(self, accepted: Sequence[Accepted]) -> list[Pairs]:
        """What each publication matches; of one that another source has brought before, what it did not match then."""
        of_each = self._pairs([entry.publication for entry in accepted])
        again = [(place, entry.same) for place, entry in enumerate(accepted) if entry.same is not None]
        before = self._pairs([same for _, same in again]) if again else []
        for (place, _), pairs in zip(again, before, strict=True):
            is_new = ~np.isin(of_each[place].subscriptions, pairs.subscriptions)
            of_each[place].subscriptions = of_each[place].subscriptions[is_new]
            of_each[place].bindings = list(compress(of_each[place].bindings, is_new))
        return of_each

    def _pairs(self, together: list[Publication]) -> list[Pairs]:
        """What each publication matches."""
        of_each = {publication.id: Pairs() for publication in together}
        result = self._followed.engine.match(together)
        for refusal in result.refusals:
            _log.warning("%s", refusal)
            publication, _, subscription = refusal.subject.rpartition(" ")
            if refusal.kind == "pair" and "max_steps" in refusal.remedy:  # no operator is to blame
                of_each[publication].undecided.append((int(subscription), refusal.reason))
        for part in result.parts:
            numbers = np.fromiter(map(int, part.ids()), np.int64, len(part))
            bindings = [text for texts in part.texts() for text in _decoded(texts.bindings)]
            bounds = np.searchsorted(part.publication, np.arange(len(part.publications) + 1)).tolist()
            for id_, (begin, end) in zip(part.publications, pairwise(bounds), strict=True):
                of_each[id_].subscriptions, of_each[id_].bindings = numbers[begin:end], bindings[begin:end]
        return list(of_each.values())

    def _told_before(self, accepted: Sequence[Accepted]) -> dict[int, set[int]]:
        """Content before -> the subscriptions that it matched; of one that was refused, those of the one before it; of
        one that several sources brought, those of each."""
        numbers = {entry.previous for entry in accepted if entry.previous is not None}
        if not numbers:
            return {}
        stands_for = {number: number for number in numbers}
        no_events = publications.c.state.not_in(("accepted", "matched"))
        stepped = sa.select(publications.c.number, publications.c.previous).where(sa.or_(no_events, _IS_SAME))
        stepped = stepped.outerjoin(_before, _before.c.number == publications.c.previous)
        with self._database.reading() as connection:
            while numbers:
                passed_over = connection.execute(stepped.where(publications.c.number.in_(numbers))).all()
                steps = [(number, before) for number, before in passed_over if before]
                stands_for |= {before: stands_for[number] for number, before in steps}
                numbers = {before for _, before in steps}
            told: dict[int, set[int]] = {of: set() for of in stands_for.values()}
            here = sa.select(events.c.publication, events.c.subscription).where(
                events.c.publication.in_(list(stands_for)), events.c.type != UNMATCHED
            )
            for publication, subscription in connection.execute(here):
                told[stands_for[publication]].add(subscription)
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
        columns = (range(first, first + count), numbers.tolist(), self._sequences[numbers].tolist(), kinds)
        batch.events += zip(*columns, repeat(publication), repeat(at), bindings, repeat(None), strict=False)
        waiting = np.flatnonzero(self._followed.flags[numbers] & HAS_TARGETS)
        batch.delivering += zip((first + waiting).tolist(), numbers[waiting].tolist(), strict=True)

    def _grow(self, number: int) -> None:
        if number >= len(self._sequences):
            more = np.full(2 * number - len(self._sequences), self._first_sequence - 1, np.int64)
            self._sequences = np.concatenate([self._sequences, more])

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self, connection: Connection, accepted: Sequence[Accepted], batch: Batch) -> None:
        assert self._term is not None
        self._database.check_term(connection, WORK, self._term)
        self._chosen(connection, accepted, batch)
        self._insert(connection, batch)
        done = publications.update().where(publications.c.number.in_(list(batch.matched)))
        connection.execute(done.values(state="matched"))
        for number, reason in batch.refused.items():
            here = publications.update().where(publications.c.number == number)
            connection.execute(here.values(state="refused", reason=reason))
        crash.point("events.written")

    def _insert(self, connection: Connection, batch: Batch) -> None:
        """Write the events of a batch, and the deliveries that they cause."""
        insert_rows(connection, events, batch.events)
        crash.point("events.inserted")
        if not batch.delivering:
            return
        waiting = sorted({subscription for _, subscription in batch.delivering})
        at = now()
        lasts = targets.c.expires.is_(None) | (targets.c.expires > at)
        of_subscription: dict[int, list[tuple[int, str, float]]] = {}
        columns = targets.c.subscription, targets.c.number, targets.c.host, targets.c.settings
        active = sa.select(*columns).where(targets.c.state == "active", lasts)
        for subscription, target, host, settings in rows_with(connection, active, targets.c.subscription, waiting):
            of_subscription.setdefault(subscription, []).append((target, host, due_at(settings, at)))
        pending = {"state": "pending", "tries": 0, "status": ""}
        rows = [
            {"event": event, "target": target, "host": host, "due": due, **pending}
            for event, subscription in batch.delivering
            for target, host, due in of_subscription.get(subscription, ())
        ]
        if rows:
            connection.execute(deliveries.insert(), rows)
            add_total(connection, "matched", len(rows))
            batch.hosts.update(host for of in of_subscription.values() for _, host, due in of if due <= at)


def _decoded(column: TextColumn) -> list[str]:
    """The texts of a column by row; rows that share a text share the string."""
    data, offset = column.text.tobytes(), column.offset.tolist()
    texts = [data[begin:end].decode("utf-8") for begin, end in pairwise(offset)]
    return list(map(texts.__getitem__, column.number.tolist()))
