"""Registers the subscriptions of files: one loop over their rows, which a registrar puts into the current snapshot.

`triplewire.languages.sources.files` reads the rows. A snapshot of segments takes them as columns
(`triplewire.engine.segments.loading`), any other one as objects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, ParamSpec, TypeAlias

import numpy as np

from triplewire.engine.arguments import Workers
from triplewire.engine.chunk import LARGE
from triplewire.engine.compiler import Compiler, id_is_taken
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.subscriptions import Rules
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.file_parts import parts_of, pieces_of
from triplewire.languages.sources.files import ParsedRow, Reader, RowBatch, parsed_rows, read_batches
from triplewire.languages.sources.rows import Row
from triplewire.languages.sources.tables import SubscriptionSource, SubscriptionTexts
from triplewire.read.documents import bytes_of

if TYPE_CHECKING:
    from triplewire.engine.part_loading import PartLoading
    from triplewire.engine.segments.loading import SegmentRegistrar
    from triplewire.languages.templates.splitting import Texts

Refuse: TypeAlias = Callable[[Refusal], None]
Warn: TypeAlias = Callable[[str, str], None]
Told = ParamSpec("Told")

_LARGE_BYTES = 12 * LARGE  # of files; fewer hardly have as many rows as are worth other processes
OBJECTS_TOGETHER = 16_384  # a snapshot of objects copies a table at each change


def load(
    sources: Sequence[SubscriptionSource],
    compiler: Compiler,
    current: CurrentSnapshot,
    refuse: Refuse,
    warn: Warn | None,
    ids: frozenset[str] | None,
    difference: Difference | None = None,
    parts: PartLoading | None = None,
) -> Iterator[int]:
    """Register the subscriptions of files and tables; with `ids`, only those with these ids. Texts in tables stay
    there, where the snapshot is one of segments. With a `difference`, the subscriptions of the files take the place of
    those that are registered. `parts`: of the same files, of which other processes load some. Yields the number
    registered since the last yield. Where `refuse`, `warn`, reading or the caller raises, the rows before that are
    registered, and perhaps some of those after it."""
    world = compiler.world
    compiler.tables.update({source.name: source for source in sources if isinstance(source, SubscriptionTexts)})
    raised: list[Exception] = []
    tell, warn = _guarded(refuse, raised), None if warn is None else _guarded(warn, raised)
    registrar: ObjectRegistrar | SegmentRegistrar = ObjectRegistrar(current, tell, warn, ids)
    if current.snapshot.columnar:
        from triplewire.engine.segments.loading import SegmentRegistrar  # compiled kernels

        registrar = SegmentRegistrar(compiler, current, bytes_of(sources), tell, warn, ids)
    known = {} if difference is not None else Rules.of(current.snapshot)
    reader = Reader(world.operators, world.settings, known, current.snapshot.columnar)
    if parts is None:
        batches = read_batches(reader, sources, ids)
    else:
        assert not isinstance(registrar, ObjectRegistrar)
        batches = parts.batches(registrar, reader, warn is not None)
    unread: list[Exception] = []
    while not (raised or unread):
        try:
            batch = next(batches, None)
        except Exception as error:
            unread.append(error)
            break
        if batch is None:
            break
        try:
            if count := registrar.add(batch if difference is None else difference.of(batch)):
                yield count
        except GeneratorExit:  # the caller has raised something
            registrar.finish()
            raise
    batches.close()
    yield registrar.finish()
    if difference is not None and not (raised or unread):
        difference.finish()
    for first in raised + unread:  # what is refused when it is registered was read before
        raise first


class LoadedCount(int):
    """How many subscriptions were registered: `new` ones, and `changed` ones, which took the place of others of their
    ids; `gone` are those that the files do not have any more. `anew`: the ids of new and changed ones."""

    new: int = 0
    changed: int = 0
    gone: int = 0
    anew: frozenset[str] = frozenset()


class Difference:
    """What changes where the subscriptions of files take the place of all that are registered. A row that is registered
    as it is stays. MDV rules are always registered anew, as what one means depends on others."""

    def __init__(self, current: CurrentSnapshot) -> None:
        self._current, self._before = current, current.snapshot
        self._staying: list[Sequence[str] | Texts] = []  # ids that are decoded where they must be
        self._anew: set[str] = set()
        self.count = LoadedCount()

    def of(self, batch: RowBatch) -> RowBatch:
        """The rows of a batch that are to be registered. What is registered with their ids is removed."""
        if isinstance(batch.rows, Sequence):
            rows = [row for row in batch.rows if isinstance(row, Row)]
            stays = self._before.unchanged(rows) & np.array([row.language != "mdv" for row in rows], np.bool_)
            self._staying.append([row.id for row in compress(rows, stays)])
            anew = frozenset(row.id for row in compress(rows, ~stays))
            changed = batch._replace(rows=[row for row in batch.rows if isinstance(row, Refusal) or row.id in anew])
        else:
            stays = self._before.unchanged(batch.rows) & ~batch.rows.are_in("mdv")
            self._staying.append(batch.rows.ids.take(np.flatnonzero(stays)))
            changed = batch._replace(rows=(columns := batch.rows.where(~stays)))
            anew = frozenset(columns.ids.decoded())
        self._anew |= anew
        self._remove(self._before.registered(anew))
        return changed

    def finish(self) -> None:
        """Remove what the files do not have, once all rows are registered, and count."""
        snapshot = self._current.snapshot
        anew = frozenset(id for id in self._anew if id in snapshot)
        count = LoadedCount(len(anew))
        count.anew, count.changed = anew, len(self._before.registered(anew))
        count.new = len(anew) - count.changed
        count.gone = len(self._before) - count.changed - sum(map(len, self._staying))
        if count.gone:
            here = (ids if isinstance(ids, Sequence) else ids.decoded() for ids in self._staying)
            self._remove(frozenset(self._before.all_ids()).difference(anew, *here))
        self.count = count

    def _remove(self, ids: Collection[str]) -> None:
        with self._current.lock:
            if there := [id for id in ids if id in self._current.snapshot]:
                self._current.snapshot = self._current.snapshot.changed((), there)


def in_parts(
    sources: Sequence[SubscriptionSource], current: CurrentSnapshot, matcher: str, workers: int | Workers | None
) -> PartLoading | None:
    """How to load these files into an empty engine with others: by so many processes of this machine, or by default one
    for each core where that makes no more segments than one process would make. None for this process alone: where the
    files, the engine's operators or its matcher have to stay in it."""
    if workers == 1 or len(current.snapshot) or (workers is None and bytes_of(sources) < _LARGE_BYTES):
        return None
    pieces = pieces_of(sources, current.snapshot.compiler.world.settings)
    rows = sum(piece.rows for piece in pieces)
    if workers is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        workers = min(cores, 2 * rows // LARGE) if rows > LARGE else 1
    if workers == 1 or not pieces or not current.compiled().columnar:
        return None
    from triplewire.engine.part_loading import PartLoading, has_built_in_operators  # compiled kernels
    from triplewire.engine.part_processes import workers_here

    who = workers_here(min(workers, len(pieces))) if isinstance(workers, int) else workers
    own, *others = parts_of(pieces, who.shares)
    is_known = who.operators is not None or has_built_in_operators(current.snapshot.compiler)
    return PartLoading([own, *filter(None, others)], matcher, who) if is_known and any(others) else None


def _guarded(receiver: Callable[Told, None], raised: list[Exception]) -> Callable[Told, None]:
    """The receiver, which is not called any more once a guarded receiver has raised; the exception goes to `raised`."""

    def tell(*told: Told.args, **named: Told.kwargs) -> None:
        if not raised:
            try:
                receiver(*told, **named)
            except Exception as error:
                raised.append(error)

    return tell


class ObjectRegistrar:
    """Registers rows that were parsed in full, many together."""

    def __init__(self, current: CurrentSnapshot, refuse: Refuse, warn: Warn | None, ids: frozenset[str] | None) -> None:
        self._current, self._refuse, self._warn, self._ids = current, refuse, warn, ids
        self._waiting: list[ParsedRow] = []

    def add(self, batch: RowBatch) -> int:
        """Parse the rows. Returns how many were registered, which is when many are there."""
        for parsed in parsed_rows(batch, self._refuse):
            if self._ids is None or parsed.row.id in self._ids:
                self._waiting.append(parsed)
        return self.finish() if len(self._waiting) >= OBJECTS_TOGETHER else 0

    def finish(self) -> int:
        """Register the subscriptions of the rows that are left, those that can be. Returns how many."""
        rows, self._waiting = self._waiting, []
        checked: dict[str, Subscription] = {}
        refusals: list[Refusal] = []  # told outside of the lock: whoever is told may call the engine
        with self._current.lock:
            snapshot = self._current.snapshot
            for parsed in rows:
                id_ = parsed.row.id
                try:
                    if id_ in snapshot:
                        raise id_is_taken(id_)
                    checked[id_] = snapshot.compiler.checked(parsed.subscription)
                except TriplewireError as error:
                    refusals.append(parsed.row.refusal(error))
            self._current.snapshot = snapshot.changed(tuple(checked.values()), ())
        for refusal in refusals:
            self._refuse(refusal)
        if self._warn is not None:
            for subscription in checked.values():
                for warning in subscription.warnings:
                    self._warn(subscription.id, warning)
        return len(checked)
