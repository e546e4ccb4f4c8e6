"""Engines that share what another one has, without its texts being compiled again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from triplewire.engine.chunk import Chunk
from triplewire.engine.current_snapshot import publications_of
from triplewire.engine.engine import Engine
from triplewire.engine.explain.missing import witness
from triplewire.engine.incoming import chunks_of, chunks_of_batches, matched
from triplewire.engine.result import MatchResult
from triplewire.engine.stats import Clock
from triplewire.engine.tiers.interpreted import empty_snapshot
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.read.documents import Source

if TYPE_CHECKING:
    import pyarrow as pa


def derived_engine(engine: Engine, added: Iterable[Subscription] = (), removed: Collection[str] = ()) -> Engine:
    """An engine with the subscriptions of another, without those `removed` (ids), and then with those `added`.

    Both share arrays that never change; later changes of the one are not seen by the other. A removed id may be added
    anew.
    """
    snapshot = engine._snapshot.changed((), removed) if removed else engine._snapshot
    new = tuple(added)
    # those that their text gives by itself need no proof of that
    for plain, group in ((True, [s for s in new if not s.rules]), (False, [s for s in new if s.rules])):
        if group:
            snapshot = snapshot.changed(group, (), plain=plain)
    return engine._with(snapshot)


def meaning_of(engine: Engine) -> tuple[World, str]:
    """The taxonomy, operators and limits of an engine, and its entailment."""
    return engine._compiler.world, engine._compiler.entailment


def witness_of(engine: Engine, subscription: Subscription, id: str) -> Publication | None:
    """A publication of this id that the subscription matches, where one is known."""
    compiler = engine._compiler
    return witness(compiler.meant(subscription), compiler.world, id)


def empty_engine(engine: Engine) -> Engine:
    """An engine of the same taxonomy, operators, limits, matcher and entailment, without subscriptions."""
    return engine._with(empty_snapshot(engine._matcher, engine._compiler))


def is_compiled_for(engine: Engine, sources: Iterable[Source]) -> bool:
    """Is the engine compiled, now that these files and folders are to be matched? Large work waits for the kernels
    here, as `Engine.match_files` does. For small work they are compiled in the background."""
    return engine._current.snapshot_for_matching(lambda most: publications_of(sources)).columnar


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
    return engine._recent.keep(matched(snapshot, chunks, Clock()))


def revision_in(engine: Engine, id: str) -> str:
    """The revision of the subscription of this id, whose text is not compiled for it; "" where there is none."""
    return engine._snapshot.revision(id)
