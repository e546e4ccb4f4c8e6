"""Events of matches that the pipeline has found, where matching outgrows a broker: see docs/scale-out.md.

    subscriptions   -> an index in a folder, which `triplewire pipeline run --index DIR` follows   (`pipeline_index`)
    publications    -> files in an inbox, which that run reads, beside topics and folders of its own
    its matches     <- a table or a topic that it writes                                           (`pipeline_matches`)

One process does all three at a time, in place of matching. A match is told once: a row whose publication (by id and
content) and subscription have an event already gets none. The pipeline tells matches alone, so there is no `unmatched`
for a content that matches no more.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker.events.event_log import CHANGED, MATCHED, UNMATCHED
from triplewire.broker.events.matching import WORK, Accepted, Batch, Matching
from triplewire.broker.publications.kept_contents import HANDED, restored, row_of
from triplewire.broker.publications.window import may_see
from triplewire.broker.scale_out.pipeline_index import PipelineIndex, PipelineSubscriptions, number_of
from triplewire.broker.scale_out.pipeline_matches import MatchRow, rows_at
from triplewire.broker.subscriptions.followed import ENDED
from triplewire.folders import on_disk, sync
from triplewire.model.publication import Publication
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.pipeline.index.build import IndexOptions
from triplewire.read.names import to_nquads
from triplewire.store.database import DAY, Database, inserted_number, now
from triplewire.store.tables import current, events, publications, subscriptions

AT_ONCE = 1_000  # rows of one transaction
_KEEP = 30 * DAY  # seconds that a file stays in the inbox
_OLDER = 100  # contents of a publication that are looked at for one that comes again
_URN = "urn:triplewire:id:"  # before ids that are no IRIs, in files

_log = logging.getLogger("triplewire.broker")


@dataclass(frozen=True)
class Outside:
    """Who matches in place of the broker: the folder of the index, the inbox, the address of the matches, and the files
    of operators."""

    index: Path
    inbox: Path
    matches: str
    operators: tuple[OperatorFile, ...] = ()


class FromPipeline(Matching):
    """Keeps the index, hands publications on, and makes events of matches, as long as this process has the term."""

    def __init__(
        self, database: Database, followed: PipelineSubscriptions, *more: Any, outside: Outside, **named: Any
    ) -> None:
        super().__init__(database, followed, *more, **named)
        operators, engine = operators_of(outside.operators), followed.engine
        options = IndexOptions(engine.taxonomy, operators=operators, settings=engine.settings)
        self._kept = followed
        self._index = PipelineIndex(outside.index, database, options, outside.operators, _log.warning)
        self._inbox = outside.inbox
        self._rows = rows_at(outside.matches)
        outside.inbox.mkdir(parents=True, exist_ok=True)

    def stop(self, seconds: float | None = None) -> None:
        """End once what is under way is written."""
        super().stop(seconds)
        self._rows.close()

    def _begin_term(self) -> bool:
        begun = super()._begin_term()
        self._index.forget()
        self._rows.close()
        for file in self._inbox.iterdir():
            with suppress(OSError):
                if file.stat().st_mtime < time.time() - _KEEP:
                    file.unlink()
        return begun

    def step(self) -> int:
        """Bring the index to what the store says, and hand on and take what there is; returns how much that was."""
        with self._counting():
            self._kept.follow()
            changed = self._index.bring(self._kept.taken())
            return changed + self._hand_on() + self._take()

    def _hand_on(self) -> int:
        """Write accepted publications to a file of the inbox."""
        accepted = self._next_batch()
        if not accepted:
            return 0
        text = "".join(to_nquads(entry.publication, entry.number) for entry in accepted)
        numbers = [entry.number for entry in accepted]
        name = f"{numbers[0]}-{numbers[-1]}.nq"
        if text:  # a graph without triples has no line
            with on_disk(self._inbox / f".{name}") as file:
                file.write(text.encode())
            os.replace(self._inbox / f".{name}", self._inbox / name)
            sync(self._inbox)

        def write(connection: Connection) -> None:
            assert self._term is not None
            self._database.check_term(connection, WORK, self._term)
            here = publications.c.number.in_(numbers)
            connection.execute(publications.update().where(here).values(state=HANDED))

        self._database.write(write)
        self._careful.difference_update(numbers)
        return len(accepted)

    def _take(self) -> int:
        """Make events of the rows that have come."""
        rows = self._rows.next(AT_ONCE)
        if not rows:
            return 0
        numbers = self._database.write(lambda connection: _numbered(connection, rows))
        with self._database.reading() as connection:
            batch, accepted = self._batch(connection, rows, numbers)
        self._database.write(lambda connection: self._write(connection, accepted, batch))
        self._rows.done(rows)
        self._told(batch)
        return len(rows)

    def _batch(
        self, connection: Connection, rows: Sequence[MatchRow], numbers: dict[tuple[str, str], int]
    ) -> tuple[Batch, list[Accepted]]:
        """The events of rows, and the publications that are here with their content."""
        told = _pairs(connection, set(numbers.values()))
        here = sa.select(publications).where(publications.c.number.in_(set(numbers.values())))
        contents = {row.number: row for row in connection.execute(here)}
        before = _pairs(connection, {row.previous for row in contents.values() if row.previous is not None})
        asked = {number for row in rows if (number := number_of(row.subscription)) is not None}
        of = subscriptions.c
        owners = {
            row.number: row.owner
            for row in connection.execute(sa.select(of.number, of.owner).where(of.number.in_(asked), of.state != ENDED))
        }
        new: dict[int, list[tuple[int, str, str]]] = {number: [] for number in contents}
        for row in rows:
            number, subscription = numbers[row.publication, row.content], number_of(row.subscription)
            if subscription is None or subscription not in owners:
                _log.warning("a match of %s is dropped: there is no subscription %s", row.publication, row.subscription)
                continue
            content = contents[number]
            if may_see(owners[subscription], content.readers) and (number, subscription) not in told:
                told.add((number, subscription))
                kind = CHANGED if (content.previous, subscription) in before else MATCHED
                new[number].append((subscription, kind, row.bindings))
        batch, at = Batch(), now()
        for number, matches in new.items():
            subscriptions_, kinds, bindings = zip(*matches, strict=True) if matches else ((), (), ())
            batch.matched[number] = np.array(subscriptions_, np.int64)
            self._add(batch, batch.matched[number], kinds, number, at, bindings)
        accepted = [
            Accepted(row.number, row.previous, publication, None)
            for row in contents.values()
            if (publication := restored(row.body, row.id, row.source)).triples
        ]
        return batch, accepted


def _pairs(connection: Connection, numbers: set[int]) -> set[tuple[int | None, int]]:
    """Which subscriptions were told of these contents."""
    here = sa.select(events.c.publication, events.c.subscription)
    rows = connection.execute(here.where(events.c.publication.in_(numbers), events.c.type != UNMATCHED))
    return {(row.publication, row.subscription) for row in rows}


def _numbered(connection: Connection, rows: Sequence[MatchRow]) -> dict[tuple[str, str], int]:
    """The number of each content, by publication and hash; of one that has not come through a door of the broker, a new
    one, with its id alone."""
    numbers: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row.publication, row.content
        if key not in numbers:
            numbers[key] = _known(connection, *key) or _new(connection, row)
    return numbers


def _known(connection: Connection, id: str, content: str) -> int | None:
    """The number of a content of a publication: of the newest one, or of those before; where several sources brought
    it, of the first."""
    ids = {id, unquote(id.removeprefix(_URN))} if id.startswith(_URN) else {id}
    newest, of = sa.select(current.c.publication).where(current.c.id.in_(ids)), publications.c
    for number in connection.execute(newest).scalars().all():
        first, readers = None, None
        for _ in range(_OLDER):
            here = sa.select(of.content, of.readers, of.previous).where(of.number == number)
            row = connection.execute(here).first()
            if row is None or (first is not None and (row.content, row.readers) != (content, readers)):
                break
            if row.content == content:
                first, readers = int(number), row.readers
            number = row.previous
        if first is not None:
            return first
    return None


def _new(connection: Connection, row: MatchRow) -> int:
    about = Publication(row.publication, ())
    previous = connection.execute(sa.select(current.c.publication).where(current.c.id == about.id)).scalar()
    values = row_of(about, content=row.content, previous=previous, title=_title(row), state="matched")
    number = inserted_number(connection, publications, values)
    connection.execute(current.delete().where(current.c.id == about.id))
    connection.execute(current.insert().values(id=about.id, publication=number, content=row.content))
    return number


def _title(row: MatchRow) -> str:
    """A title for people: what the query has bound to `title`, or the id."""
    for binding in json.loads(row.bindings)[:1]:
        if text := str(binding.get("title", {}).get("value", "")).strip():
            return text
    return row.publication
