"""Subscription files of which other processes load parts, into segments that this process takes over.

    load_part(task):    in another process: register the rows of a part as for any load, but save each segment, and
                        write down what is told of rows, instead of telling it
    batches():          the rows of the first part, which this process registers meanwhile; then
                        where all parts can be read to their ends, and no id is in two of them:
                            of each part, in order: take its segments over, tell what it had to tell
                        else the rows of the other parts, which are registered here
                        at last the MDV rules of all parts, as they wait for all other rows

So answers, refusals and numbers are those of a load in one process. What a part is: `languages.sources.file_parts`; who
runs the tasks: `part_processes`, on Spark `pipeline.index.loading`.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from triplewire import plugins
from triplewire.engine.arguments import Workers, world_of
from triplewire.engine.compiler import Compiler
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.segments.layers import NONE, Layer
from triplewire.engine.segments.loading import SegmentRegistrar
from triplewire.engine.segments.segment import Segment, SegmentContext
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.engine.segments.texts import SEED
from triplewire.engine.store import contents
from triplewire.engine.store import directory as store
from triplewire.engine.store.segment_files import opened
from triplewire.engine.tiers.interpreted import empty_snapshot
from triplewire.errors import Refusal, StoreError
from triplewire.kernels.text.names import hash_spans
from triplewire.languages.sources.file_parts import FilePiece, items_of
from triplewire.languages.sources.files import Reader, RowBatch, batches_of, batches_of_rules
from triplewire.languages.sources.row_columns import RowColumns
from triplewire.languages.sources.rows import Row
from triplewire.languages.templates.splitting import Pool
from triplewire.model.origins import FROM_SOURCE
from triplewire.operators import built_in_operators, with_taxonomy
from triplewire.operators.calling.isolated import Isolated
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.read.documents import bytes_of

_EMPTY = "meaning"  # the folder of an engine without subscriptions, which says what the texts mean


@dataclass(frozen=True)
class LoadTask:
    """A part to be loaded. `folder`: where its segments go, and where it lies what texts mean; `warns`: are warnings
    told? `operators`: as `Workers` has them."""

    folder: str
    number: int
    pieces: Sequence[FilePiece]
    warns: bool
    operators: tuple[OperatorFile, ...] | None

    def path(self, name: str) -> Path:
        """A file or folder of this part."""
        return Path(self.folder, f"{name}-{self.number}")


class LoadedPart(NamedTuple):
    """What became of a part beside its segments: the hashes of all ids, the MDV rules; could it be read to its end?"""

    ids: NDArray[np.uint64]
    rules: list[list[Row] | RowColumns]
    is_whole: bool


class _PartRegistrar(SegmentRegistrar):
    """Saves each segment of a part."""

    def __init__(self, task: LoadTask, matcher: str, context: SegmentContext, tell: Callable[[Any], None]) -> None:
        self._matcher, self._paths = matcher, (task.path(f"segment-{number}") for number in count())
        current, size = CurrentSnapshot(SegmentSnapshot(context)), bytes_of({piece.path for piece in task.pieces})
        warn = (lambda id, warning: tell((id, warning))) if task.warns else None
        super().__init__(context.compiler, current, size, tell, warn)

    def _install(self, segment: Segment) -> None:
        only = CurrentSnapshot(SegmentSnapshot(segment.context, [Layer(segment, NONE)]))
        contents.save(next(self._paths), only, self._matcher, index=True, learned=False)


def load_part(task: LoadTask) -> None:
    """Load a part. Raises `StoreError` where something cannot be written."""
    own = None if task.operators is None else operators_of(task.operators)
    saved = store.load(Path(task.folder, _EMPTY))
    saved.subscriptions.close()  # there are none
    world = world_of("load_part", saved.taxonomy, own, saved.settings)
    compiler, matcher = Compiler(world, saved.entailment), plugins.find("matcher", saved.matcher)
    snapshot = CurrentSnapshot(empty_snapshot(matcher, compiler)).compiled()
    if not isinstance(snapshot, SegmentSnapshot):
        raise StoreError("compiled kernels cannot be used in it", remedy="see TRIPLEWIRE_TIER and TRIPLEWIRE_CACHE")
    known, unread = Pool(), list[Refusal]()
    with task.path("told").open("wb") as file, Reader(world.operators, world.settings, {}, columnar=True) as reader:
        registrar = _PartRegistrar(task, saved.matcher, snapshot.context, lambda told: pickle.dump(told, file))
        for batch in batches_of(reader, items_of(task.pieces, world.settings, unread), known):
            registrar.add(batch)
        registrar.finish()
        loaded = LoadedPart(_hashes(known), list(reader.set_aside_rows()), not unread)
    task.path("loaded").write_bytes(pickle.dumps(loaded))


def _hashes(known: Pool) -> NDArray[np.uint64]:
    ids = known.texts()
    hashes: NDArray[np.uint64] = hash_spans(ids.text, ids.start, ids.end, SEED)
    return np.sort(hashes)


@dataclass(frozen=True)
class PartLoading:
    """How the parts of files are loaded into an empty engine. `matcher`: the name of the engine's."""

    parts: Sequence[Sequence[FilePiece]]
    matcher: str
    workers: Workers

    def batches(self, registrar: SegmentRegistrar, reader: Reader, warns: bool) -> Generator[RowBatch, None, None]:
        """The rows that this process registers; `registrar` takes over what others have loaded. Raises `StoreError`
        where one of these fails."""
        context, known, unread = registrar.context, Pool(), list[Refusal]()
        settings, (own, *others) = context.compiler.world.settings, self.parts
        temporary = partial(tempfile.TemporaryDirectory, prefix="triplewire-load-", ignore_cleanup_errors=True)
        with reader, temporary(dir=self.workers.folder) as folder:
            empty = CurrentSnapshot(SegmentSnapshot(context))
            contents.save(Path(folder, _EMPTY), empty, self.matcher, index=False, learned=False)
            about = warns, self.workers.operators
            tasks = [LoadTask(folder, number, pieces, *about) for number, pieces in enumerate(others)]
            with self.workers.run(tasks) as wait:
                yield from batches_of(reader, items_of(own, settings, unread), known)
                registrar.end_segment()
                hashes = _hashes(known)
                wait()
            loaded: list[LoadedPart] = [pickle.loads(task.path("loaded").read_bytes()) for task in tasks]
            hashes = np.concatenate([hashes, *(part.ids for part in loaded)])
            hashes.sort(kind="stable")  # those of each part are sorted
            # hashes of two ids may be the same by chance
            if not unread and all(part.is_whole for part in loaded) and (hashes[1:] != hashes[:-1]).all():
                for task, part in zip(tasks, loaded, strict=True):
                    registrar.take_over(_segments(task, context), _told(task))
                    for rules in part.rules:
                        reader.set_aside(rules)
            else:
                yield from batches_of(reader, items_of(chain(*others), settings, unread), known)
            yield from batches_of_rules(reader)


def _segments(task: LoadTask, context: SegmentContext) -> Iterator[Segment]:
    """The segments of a part."""
    for number in count():
        place = task.path(f"segment-{number}")
        if not place.exists():
            return
        segment = opened(store.load(place), context, str(place))
        if segment is None:
            raise StoreError("processes of one load have other versions of the program or its operators")
        yield segment


def _told(task: LoadTask) -> Iterator[Refusal | tuple[str, str]]:
    """What is told of the rows of a part."""
    with task.path("told").open("rb") as file, suppress(EOFError):
        while True:
            yield pickle.load(file)


def has_built_in_operators(compiler: Compiler) -> bool:
    """Are its operators those that every process has?"""
    world, built_in = compiler.world, with_taxonomy(built_in_operators(), compiler.world.taxonomy)
    return world.operators.keys() == built_in.keys() and all(
        name == FROM_SOURCE or (operator.inner if isinstance(operator, Isolated) else operator) == built_in[name]
        for name, operator in world.operators.items()
    )
