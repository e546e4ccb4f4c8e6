"""The filter that runs in Spark's Python workers: Arrow batches of publications in, Arrow batches of outcomes out.

It imports no Spark, so it can be called, and tested, on plain batches. A worker serves many tasks: it compiles the
subscriptions once and keeps the engine, by version, in this module. What travels to the worker is JSON text, the files
of a saved engine (`triplewire.engine.store.directory`), never an object.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.encode.buffers import of_numbers
from triplewire.engine import Engine
from triplewire.engine.stats import Stats
from triplewire.errors import LimitError, Refusal
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.pipeline.calling import Calling
from triplewire.pipeline.rows import OUTCOME_ROWS, refused, widened

OnStats: TypeAlias = Callable[[Stats], None] | None

MOST_ROWS = 1 << 14  # of one batch of matches
KEPT = 2  # engines of different versions that a worker holds: the one in use and the one before
_TEXT = ("utf-8", "surrogatepass")

_engines: OrderedDict[tuple[str, ...], Engine] = OrderedDict()
_loaded = 0


@dataclass(frozen=True)
class PackedEngine:
    """The subscriptions, taxonomy and settings of an engine, ready to travel; called in a worker, it matches.

    `files` is a JSON object {file name: text}; `operators` are files of operators, run anew in each worker, which has
    the built-in ones and those of installed plug-ins beside them. `version` is the SHA-256 of all, so equal versions
    match alike.
    """

    files: str = field(repr=False)
    version: str
    operators: tuple[OperatorFile, ...] = field(default=(), repr=False)
    calling: Calling = field(default_factory=Calling, repr=False, compare=False)

    @classmethod
    def of(cls, engine: Engine, operators: Sequence[OperatorFile] = ()) -> PackedEngine:
        """Pack an engine; its own operators travel as the files that give them.

        Raises `StoreError` when one of its subscriptions cannot be compiled from its text again.
        """
        with tempfile.TemporaryDirectory(prefix="triplewire-") as folder:
            engine.save(folder, index=False, learned=False)
            contents = {file.name: file.read_bytes().decode(*_TEXT) for file in sorted(Path(folder).iterdir())}
        files = json.dumps(contents)
        whole = [files, *(part for file in operators for part in (file.path, file.text))] if operators else [files]
        version = hashlib.sha256("\0".join(whole).encode(*_TEXT)).hexdigest()
        return cls(files, version, tuple(operators), Calling(engine.operator_order))

    def engine(self) -> Engine:
        """The engine, unpacked once a process and version."""
        global _loaded
        key = self.version, *self.calling.kind
        engine = _engines.get(key)
        if engine is None:
            with tempfile.TemporaryDirectory(prefix="triplewire-") as folder:
                for name, text in json.loads(self.files).items():
                    Path(folder, name).write_bytes(text.encode(*_TEXT))
                engine = _engines[key] = Engine.load(
                    folder,
                    operators=operators_of(self.operators),
                    operator_order=self.calling.order,
                    operator_cache=self.calling.cache or None,
                )
            _loaded += 1
            while len(_engines) > KEPT:
                _engines.popitem(last=False)
        _engines.move_to_end(key)
        return engine

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outcomes (`OUTCOME_ROWS`) of publications. A refused input (`PUBLICATION_ROWS`) is passed on as it is."""
        engine = self.engine()
        with self.calling.task(engine):
            yield from outcomes_of(engine, batches)


def outcomes_of(
    engine: Engine, batches: Iterable[pa.RecordBatch], on_stats: OnStats = None
) -> Iterator[pa.RecordBatch]:
    """The same of any engine. What was counted goes to `on_stats`."""
    for batch in batches:
        refusals, publications = parted(batch)
        if refusals is not None:
            yield refusals
        failed: list[Refusal] = []
        for rows, matches in matched(engine, publications, failed, on_stats):
            yield from bounded(widened(matches, OUTCOME_ROWS, source=sources_of(rows, matches)))
        yield refused(failed, OUTCOME_ROWS)


def parted(batch: pa.RecordBatch) -> tuple[pa.RecordBatch | None, pa.RecordBatch]:
    """The refused inputs of a batch as outcomes, where it may have some; and its publications."""
    if "refusal" not in batch.schema.names:
        return None, batch
    is_refusal = pc.is_valid(batch.column("refusal"))
    refusals = widened(batch.filter(is_refusal).select(["refusal"]), OUTCOME_ROWS)
    return refusals, batch.filter(pc.invert(is_refusal))


def matched(
    engine: Engine, batch: pa.RecordBatch, refusals: list[Refusal], on_stats: OnStats = None
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Publications with their matches: all at once, or in parts where the texts of the matches are too long together,
    or where a row is such that Arrow does not hand over its batch. That row alone is refused."""
    refused_here: list[Refusal] = []
    try:
        matches = engine.match_batch(batch, on_refusal=refused_here.append, on_stats=on_stats)
    except (LimitError, ValueError) as error:  # `pa.ArrowInvalid` and `UnicodeDecodeError` are such
        if batch.num_rows > 1:
            half = batch.num_rows // 2
            yield from matched(engine, batch.slice(0, half), refusals, on_stats)
            yield from matched(engine, batch.slice(half), refusals, on_stats)
        else:
            name = pc.cast(batch.column("id"), pa.binary())[0].as_py() or b"(no id)"
            reason = f"the row cannot be read: {error}"
            refusals.append(
                Refusal("publication", name.decode("utf-8", "backslashreplace"), "", reason, "mend the row")
            )
        return
    refusals += refused_here
    yield batch, matches


def bounded(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in batches of at most `MOST_ROWS`: the JVM holds a batch as a whole, and there may be a million matches
    of a batch of publications."""
    for first in range(0, max(rows.num_rows, 1), MOST_ROWS):
        yield rows.slice(first, MOST_ROWS)


def sources_of(publications: pa.RecordBatch, matches: pa.RecordBatch) -> pa.Array:
    """Where the publication of each match was read, as far as the publications say so; of several with one id, the
    last one counts."""
    if "source" not in publications.schema.names or not publications.num_rows:
        return pa.nulls(matches.num_rows, pa.string())
    backwards = of_numbers(np.arange(publications.num_rows)[::-1])
    ids, sources = (publications.column(name).take(backwards).cast(pa.string()) for name in ("id", "source"))
    return sources.take(pc.index_in(matches.column("publication"), value_set=ids))


def loaded() -> int:
    """How many engines this process has unpacked so far."""
    return _loaded
