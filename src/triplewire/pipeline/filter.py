"""What runs in Spark's Python workers: a version of an index; Arrow batches of publications in, outcomes out.

It imports no Spark, so it can be called, and tested, on plain batches. A worker serves many tasks: it opens a version
once (`triplewire.pipeline.index.open_version`). What travels to it is a path, or the files of the version, never an
object. The tasks that write what they find: `triplewire.pipeline.results.tasks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.encode.buffers import of_numbers
from triplewire.engine import Engine
from triplewire.engine.stats import Stats
from triplewire.errors import LimitError, Refusal, StoreError
from triplewire.operators.files import OperatorFile
from triplewire.pipeline.calling import Calling
from triplewire.pipeline.index.open_version import OpenVersion, opened, opened_files
from triplewire.pipeline.rows import OUTCOME_ROWS, refused, widened

OnStats: TypeAlias = Callable[[Stats], None] | None

MOST_ROWS = 1 << 14  # of one batch of matches


@dataclass(frozen=True)
class IndexFilter:
    """A version of an index, ready to travel. Called in a worker, it matches.

    Workers open the version in `directory`, a path that all of them see; or, where that is "", they unpack `files`, the
    ZIP archive of an index, and `version` is the hash of what that says. `nodes` is the number of shards of stage 2;
    with 0 there is one stage, which is a call of this object. `sha256` is the hash of the manifest: of a version that
    has taken the place of another one, nothing is matched.
    """

    directory: str
    version: str
    nodes: int = 0
    operators: tuple[OperatorFile, ...] = field(default=(), repr=False)
    calling: Calling = field(default_factory=Calling, repr=False, compare=False)
    sha256: str = field(default="", repr=False)
    files: bytes = field(default=b"", repr=False, compare=False)

    def opened(self) -> OpenVersion:
        """The version, opened once a process. Raises `StoreError`."""
        if not self.directory:
            return opened_files(self.files, self.version, self.operators, self.calling.kind)
        version = opened(self.directory, self.version, self.operators, self.calling.kind)
        if self.sha256 not in ("", version.version.sha256):
            raise StoreError(
                f"the version {self.version} is another one than when the micro-batch began", source=self.directory
            )
        return version

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Outcomes (`OUTCOME_ROWS`) of publications. A refused input (`PUBLICATION_ROWS`) is passed on as it is."""
        engine = self.opened().server()
        self.calling.begin(engine)
        yield from outcomes_of(engine, batches)


def outcomes_of(engine: Engine, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The outcomes of publications, by an engine."""
    for batch in batches:
        refusals, publications = parted(batch)
        if refusals.num_rows:
            yield widened(refusals, OUTCOME_ROWS)
        failed: list[Refusal] = []
        for rows, matches in matched(engine, publications, failed):
            yield from bounded(widened(matches, OUTCOME_ROWS, source=sources_of(rows, matches)))
        yield refused(failed, OUTCOME_ROWS)


def parted(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The refused inputs of a batch, as a column `refusal`, and its publications."""
    if "refusal" not in batch.schema.names:
        return refused((), pa.schema([OUTCOME_ROWS.field("refusal")])), batch
    is_refusal = pc.is_valid(batch.column("refusal"))
    return batch.filter(is_refusal).select(["refusal"]), batch.filter(pc.invert(is_refusal))


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
