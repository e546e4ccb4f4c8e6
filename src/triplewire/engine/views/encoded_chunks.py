"""Publications that one engine has encoded, handed on to another one of the same entailment and limits.

A chunk knows nothing of subscriptions until it is matched: what the server of a cluster has encoded and hashed, its
nodes need not do again (`triplewire.partition.cluster`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from triplewire.engine.chunk import Chunk
from triplewire.engine.engine import Engine
from triplewire.engine.incoming import chunks_of, chunks_of_batches, matched
from triplewire.engine.result import MatchResult
from triplewire.engine.stats import Clock
from triplewire.model.publication import Publication

if TYPE_CHECKING:
    import pyarrow as pa


def chunks_for(engine: Engine, publications: Sequence[Publication]) -> list[Chunk]:
    """The publications, in order, as the engine takes them. They are encoded when it matches them."""
    return list(chunks_of(iter(publications), engine._compiler, Clock()))


def encoded(engine: Engine, columns: pa.RecordBatch) -> list[Chunk]:
    """The publications of an Arrow batch, encoded where the engine does that. Raises `ReadError` for a row that is
    none."""
    columnar = engine._current.snapshot_for_matching(lambda most: columns.num_rows).columnar
    return list(chunks_of_batches([columns], engine._compiler, Clock(), None, columnar))


def match_chunks(engine: Engine, chunks: Sequence[Chunk]) -> MatchResult:
    """As `Engine.match`."""
    snapshot = engine._current.snapshot_for_matching(lambda most: sum(map(len, chunks)))
    return engine._recent.keep(matched(snapshot, chunks, Clock(), engine.settings))
