"""The subscriptions of a broker as an index of the pipeline, which `triplewire pipeline run --index DIR` follows.

In the index a subscription is named `NUMBER.REVISION`: a new query is there before the old one goes, so that no
micro-batch is without it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from triplewire.broker.subscriptions.followed import ACTIVE, Followed, parts, prefixes_of
from triplewire.errors import Refusal, StoreError
from triplewire.operators.files import OperatorFile
from triplewire.pipeline.index.build import IndexOptions, build
from triplewire.pipeline.index.changes import subscribe, unsubscribe
from triplewire.pipeline.index.open_version import opened
from triplewire.pipeline.index.versions import CURRENT, load
from triplewire.store.database import Database, highest
from triplewire.store.tables import changes, subscriptions

_ID = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})")
_AT_ONCE = 20_000  # that are written to an index in one version


class PipelineSubscriptions(Followed):
    """What a broker must know of subscriptions that the pipeline matches: whose they are, and whether somebody waits
    for their events. The engine has none of them. `changed` are the numbers of those that have changed since."""

    changed: set[int]

    def load(self, progress: Callable[[int], None] | None = None, folder: Path | None = None) -> None:
        """Learn of all subscriptions; there is no engine to be saved in a folder."""
        self.changed = set()
        with self._lock, self._database.reading() as connection:
            self._last = highest(connection, changes.c.number)
            self._about(connection, None)

    def _take_over(self, numbers: Sequence[int]) -> None:
        self.changed.update(numbers)

    def taken(self) -> set[int]:
        """The subscriptions that have changed since the last call."""
        with self._lock:
            numbers, self.changed = self.changed, set()
            return numbers


class PipelineIndex:
    """An index in a folder, held equal to the active subscriptions of a store by one process at a time."""

    def __init__(
        self,
        directory: Path,
        database: Database,
        options: IndexOptions,
        operators: Sequence[OperatorFile],
        warn: Callable[[str], None],
    ) -> None:
        self._directory, self._database, self._options = directory, database, options
        self._operators, self._warn = tuple(operators), warn
        self._there: dict[int, int] | None = None  # number -> revision in the index; None where it was not looked at

    def forget(self) -> None:
        """Another process may have written to the index: compare all at the next call."""
        self._there = None

    def bring(self, numbers: Collection[int]) -> int:
        """Bring these subscriptions in the index to what the store says, and at the first call all; returns how many
        were changed. Raises `StoreError` where the folder holds another index, or cannot be written."""
        if self._there is None:
            self._there = self._begun()
            numbers = {*self._there, *(row.number for row in self._database.rows(sa.select(subscriptions.c.number)))}
        ordered = sorted(numbers)
        return sum(self._brought(ordered[at : at + _AT_ONCE]) for at in range(0, len(ordered), _AT_ONCE))

    def _brought(self, numbers: Sequence[int]) -> int:
        assert self._there is not None
        rows = list(self._active(numbers))
        wanted = {row["id"]: row for row in rows}
        there = {_id(number, revision) for number in numbers if (revision := self._there.get(number))}
        new, gone = [row for id, row in wanted.items() if id not in there], sorted(there - wanted.keys())
        if new:
            with _file_of(new) as file:
                subscribe(self._directory, [file], self._operators, on_refusal=self._told)
        if gone:
            unsubscribe(self._directory, gone, self._operators, on_refusal=self._told)
        for number in numbers:
            self._there.pop(number, None)
        self._there.update(map(_numbers, wanted))
        return len(new) + len(gone)

    def _begun(self) -> dict[int, int]:
        """What the index has; a new one where there is none."""
        if not (self._directory / CURRENT).exists():
            with _file_of([]) as file:
                build(self._directory, [file], self._options, on_refusal=self._told)
            return {}
        parts = opened(self._directory, load(self._directory).name, self._operators).all()
        ids = [subscription.id for part in parts for subscription in part.subscriptions]
        if other := next((id for id in ids if not _ID.fullmatch(id)), ""):
            what = f"it has the subscription {other!r}, and is no index of this broker"
            raise StoreError(what, source=str(self._directory), remedy="choose another folder: --index")
        there: dict[int, int] = {}
        for number, revision in map(_numbers, ids):  # a process was killed before the old text had gone
            if number in there:
                old = min(revision, there[number])
                unsubscribe(self._directory, [_id(number, old)], self._operators, on_refusal=self._told)
            there[number] = max(revision, there.get(number, 0))
        return there

    def _active(self, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The rows of those that are active, as a subscription file has them."""
        table = subscriptions
        for part in parts(numbers):
            here = sa.select(table).where(table.c.number.in_(part), table.c.state == ACTIVE)
            for row in self._database.rows(here):
                prefixes = {"prefixes": prefixes_of(row)} if row.prefixes else {}
                id = _id(row.number, row.revision)
                yield {"id": id, "language": row.language, "query": row.query, **prefixes}

    def _told(self, refusal: Refusal) -> None:
        if refusal.kind != "warning":
            self._warn(str(refusal))


def _id(number: int, revision: int) -> str:
    return f"{number}.{revision}"


def _numbers(id: str) -> tuple[int, int]:
    number, _, revision = id.partition(".")
    return int(number), int(revision)


def number_of(id: str) -> int | None:
    """The number of the subscription that an index has under this id; None for the id of another index."""
    return _numbers(id)[0] if _ID.fullmatch(id) else None


@contextmanager
def _file_of(rows: Sequence[dict[str, Any]]) -> Iterator[Path]:
    """A subscription file with these rows, which goes at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="triplewire-") as folder:
        file = Path(folder) / "subscriptions.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        yield file
