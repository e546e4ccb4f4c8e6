"""Subscription files that several processes load, each a part of them, into segments that this process takes over.

    load_part(task):    in a process of its own: register the rows of a part as for any load, but
                        save each segment, and write down what is told of rows, instead of telling it
    loaded_parts():     have all parts loaded; where two have a row of one id, or one cannot be read to its end:
                        take none of them, the files are loaded here
                        else for each part, in order: open its segments, tell what it had to tell
                        MDV rules, which wait for all other rows, are registered here

So answers, refusals and numbers are those of a load in one process. What a part is: `languages.sources.file_parts`; who
runs the tasks: `part_processes`, on Spark `pipeline.index.loading`.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire import plugins
from triplewire.engine.arguments import world_of
from triplewire.engine.compiler import Compiler
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.segments.layers import NONE, Layer
from triplewire.engine.segments.loading import Refuse, SegmentRegistrar, Tell, install
from triplewire.engine.segments.segment import Segment, SegmentContext
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.engine.segments.texts import SEED
from triplewire.engine.store import contents
from triplewire.engine.store import directory as store
from triplewire.engine.store.segment_files import opened
from triplewire.engine.tiers.interpreted import empty_snapshot
from triplewire.errors import Refusal, StoreError, SubscriptionError
from triplewire.kernels.text.names import hash_spans
from triplewire.languages.sources.file_parts import FilePart
from triplewire.languages.sources.files import Reader, batches_of
from triplewire.languages.sources.row_columns import RowColumns
from triplewire.model.origins import FROM_SOURCE
from triplewire.operators import built_in_operators, with_taxonomy
from triplewire.operators.calling.isolated import Isolated
from triplewire.operators.files import OperatorFile, operators_of

T = TypeVar("T")

_EMPTY = "meaning"  # the folder of an engine without subscriptions, which says what the texts mean


@dataclass(frozen=True)
class LoadTask:
    """A part to be loaded. `folder`: where its segments go, and where it lies what texts mean; `warns`: are warnings
    told? `stops`: at the first refusal? `operators`: the files that give the engine its own."""

    folder: str
    number: int
    parts: tuple[FilePart, ...]
    warns: bool
    stops: bool
    operators: tuple[OperatorFile, ...] = ()

    def path(self, name: str) -> Path:
        """A file or folder of this part."""
        return Path(self.folder, f"{name}-{self.number}")

    def write(self) -> None:
        """Write it to the file `path("task")`, for another process of the same user."""
        self.path("task").write_bytes(pickle.dumps(self))

    @staticmethod
    def read(path: str) -> LoadTask:
        """The task that `write` has written."""
        task: LoadTask = pickle.loads(Path(path).read_bytes())
        return task


class LoadedPart(NamedTuple):
    """What became of a part: how many subscriptions in how many segments; was it read to its end, and did it stop at a
    refusal before?"""

    subscriptions: int
    segments: int
    is_whole: bool
    has_stopped: bool


Run: TypeAlias = "Callable[[Sequence[LoadTask]], Generator[int, None, list[LoadedPart]]]"
"""Has tasks done by `load_part`, and yields the number of subscriptions since the last yield. Returns what became of
them: of those up to one that has stopped, or was not read to its end, at least."""


class _Told:
    """What is told of the rows of a part, written to a file, in order, until a refusal after which it stops."""

    def __init__(self, file: IO[bytes], stops: bool) -> None:
        self._file, self._stops, self._waiting = file, stops, list[Refusal | tuple[str, str]]()
        self.has_stopped = False

    def refuse(self, refusal: Refusal) -> None:
        """Write a refusal down."""
        self._tell(refusal)
        self.has_stopped |= self._stops

    def warn(self, id: str, warning: str) -> None:
        """Write a warning down."""
        self._tell((id, warning))

    def _tell(self, told: Refusal | tuple[str, str]) -> None:
        if not self.has_stopped:
            self._waiting.append(told)

    def flush(self) -> None:
        """Have it in the file."""
        pickle.dump(self._waiting, self._file)
        self._waiting = []


class _PartRegistrar(SegmentRegistrar):
    """Saves each segment of a part."""

    def __init__(self, task: LoadTask, matcher: str, context: SegmentContext, told: _Told) -> None:
        self._task, self._matcher, self.segments = task, matcher, 0
        current = CurrentSnapshot(SegmentSnapshot(context))
        size = sum(part.end - part.begin for part in task.parts)
        super().__init__(context.compiler, current, size, told.refuse, told.warn if task.warns else None)

    def _install(self) -> int:
        segment = self._loader.segment()
        only = CurrentSnapshot(SegmentSnapshot(segment.context, [Layer(segment, NONE)]))
        contents.save(self._task.path(f"segment-{self.segments}"), only, self._matcher, index=True, learned=False)
        self.segments += 1
        return 0


def load_part(task: LoadTask, tell: Callable[[int], None]) -> LoadedPart:
    """Load a part; `tell` gets the number of its subscriptions so far. Raises `StoreError` where something cannot be
    written."""
    saved = store.load(Path(task.folder, _EMPTY))
    saved.subscriptions.close()  # there are none
    own = operators_of(task.operators) if task.operators else None
    compiler = Compiler(world_of("load_part", saved.taxonomy, own, saved.settings), saved.entailment)
    snapshot = CurrentSnapshot(empty_snapshot(plugins.find("matcher", saved.matcher), compiler)).compiled()
    if not isinstance(snapshot, SegmentSnapshot):
        raise StoreError("compiled kernels cannot be used in it", remedy="see TRIPLEWIRE_TIER and TRIPLEWIRE_CACHE")
    world, hashes, registered = snapshot.compiler.world, [np.zeros(0, np.uint64)], 0
    with task.path("told").open("wb") as file, Reader(world.operators, world.settings, {}, columnar=True) as reader:
        told = _Told(file, task.stops)
        registrar = _PartRegistrar(task, saved.matcher, snapshot.context, told)
        items = _Readable(item for part in task.parts for item in part.items(world.settings))
        for batch in batches_of(reader, items):
            assert isinstance(batch.rows, RowColumns)
            registered += registrar.add(batch)
            hashes.append(_hashes(batch.rows))
            told.flush()
            tell(registered)
            if told.has_stopped:
                break
        registrar.finish()
        rules = [rows for rows in reader.set_aside_rows() if isinstance(rows, RowColumns)]
    task.path("rules").write_bytes(pickle.dumps(rules))
    np.save(task.path("ids"), np.sort(np.concatenate([*hashes, *map(_hashes, rules)])))
    return LoadedPart(registered, registrar.segments, items.is_whole, told.has_stopped)


class _Readable(Iterator[T]):
    """Items as far as they can be read."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items, self.is_whole = items, True

    def __next__(self) -> T:
        try:
            return next(self._items)
        except (SubscriptionError, OSError, EOFError):
            self.is_whole = False
            raise StopIteration from None


def _hashes(rows: RowColumns) -> NDArray[np.uint64]:
    hashes: NDArray[np.uint64] = hash_spans(rows.ids.text, rows.ids.start, rows.ids.end, SEED)
    return hashes


@dataclass(frozen=True)
class PartLoading:
    """How files are loaded in parts: by `run`, from a folder in `folder`, which the tasks see (None: that of temporary
    files). `matcher`: the name of the engine's. `operators`: the files that give the engine its own."""

    parts: Sequence[tuple[FilePart, ...]]
    matcher: str
    run: Run
    folder: str | None = None
    operators: tuple[OperatorFile, ...] = ()

    def load(
        self, compiler: Compiler, current: CurrentSnapshot, refuse: Refuse, warn: Tell | None, stops: bool
    ) -> Generator[int, None, list[RowColumns] | None]:
        """Load the parts into the current snapshot; `stops`: does `refuse` raise? Yields the number registered since
        the last yield. Returns the MDV rules, which are still to be registered; None where nothing is registered, as
        the files have to be loaded in one process. Raises `StoreError` where a process fails."""
        assert isinstance(current.snapshot, SegmentSnapshot)
        with tempfile.TemporaryDirectory(
            prefix="triplewire-load-", dir=self.folder, ignore_cleanup_errors=True
        ) as folder:
            empty = CurrentSnapshot(SegmentSnapshot(current.snapshot.context))
            contents.save(Path(folder, _EMPTY), empty, self.matcher, index=False, learned=False)
            about = warn is not None, stops, self.operators
            tasks = [LoadTask(folder, number, parts, *about) for number, parts in enumerate(self.parts)]
            loaded = yield from self.run(tasks)
            pairs = list(zip(tasks, loaded, strict=False))
            yield -sum(part.subscriptions for part in loaded)
            if not all(part.is_whole for part in loaded) or not _are_distinct(tasks[: len(loaded)]):
                return None
            rules: list[RowColumns] = []
            for task, part in pairs:
                yield part.subscriptions - sum(
                    install(current, segment, refuse) for segment in _segments(task, part, current)
                )
                for told in _told(task):
                    if isinstance(told, Refusal):
                        refuse(told)
                    elif warn is not None:
                        warn(*told)
                rules += pickle.loads(task.path("rules").read_bytes())
            return [] if loaded[-1].has_stopped else rules


def _are_distinct(tasks: Sequence[LoadTask]) -> bool:
    """Have all rows of these parts different ids? Also no where hashes are the same by chance."""
    hashes = np.concatenate([np.load(task.path("ids").with_suffix(".npy")) for task in tasks])
    hashes.sort(kind="stable")  # those of each part are sorted
    return bool((hashes[1:] != hashes[:-1]).all())


def _segments(task: LoadTask, part: LoadedPart, current: CurrentSnapshot) -> Iterator[Segment]:
    """The segments of a part."""
    snapshot = current.snapshot
    assert isinstance(snapshot, SegmentSnapshot)
    for number in range(part.segments):
        place = task.path(f"segment-{number}")
        segment = opened(store.load(place), snapshot.context, str(place))
        if segment is None:
            raise StoreError("processes of one load have other versions of the program or its operators")
        yield segment


def _told(task: LoadTask) -> Iterator[Refusal | tuple[str, str]]:
    """What is told of the rows of a part."""
    with task.path("told").open("rb") as file, suppress(EOFError):
        while True:
            yield from pickle.load(file)


def has_built_in_operators(compiler: Compiler) -> bool:
    """Are its operators those that every process has?"""
    world, built_in = compiler.world, with_taxonomy(built_in_operators(), compiler.world.taxonomy)
    return world.operators.keys() == built_in.keys() and all(
        name == FROM_SOURCE or (operator.inner if isinstance(operator, Isolated) else operator) == built_in[name]
        for name, operator in world.operators.items()
    )
