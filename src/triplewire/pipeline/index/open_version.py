"""Versions of an index, opened by memory map: once a process, at most two at a time.

Versions that differ in a few subscriptions share the saved engines that they have in common: what was added or removed
since is laid over them. Processes of one machine share the memory of the mapped files.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.engine import Engine
from triplewire.engine.store.rows import units_of_called
from triplewire.engine.views import derived_engine
from triplewire.errors import DamagedError, StoreError
from triplewire.forks import new_lock
from triplewire.ir.subscription import Subscription
from triplewire.operators import MissingOperator
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.operators.order import GREEDY
from triplewire.pipeline.index.versions import MANIFEST, SERVER, Version, damaged, load

HELD = 2
"""Versions that a process holds open: the one in use and the one before."""

_State = tuple[int, int, int]  # of a file or folder: its inode, time of change, and size
_Key = tuple[str, _State, tuple[OperatorFile, ...], tuple[str, str]]
AS_USUAL = (GREEDY, "")
"""How operators are called: the order, and the folder of a cache (`pipeline.calling.Calling.kind`)."""

_opened: OrderedDict[_Key, OpenVersion] = OrderedDict()
_engines: WeakValueDictionary[tuple[object, ...], Engine] = WeakValueDictionary()  # saved, of opened versions
_lock = new_lock()
_openings = 0


class OpenVersion:
    """A version, each part of it opened when it is first asked for. `operators` are the files that give its own,
    `calling` says how they are called. Calls of others fail (`missing`)."""

    def __init__(
        self, version: Version, operators: Sequence[OperatorFile] = (), calling: tuple[str, str] = AS_USUAL
    ) -> None:
        self.version = version
        self.operators = tuple(operators)
        self.calling = calling
        self._parts: dict[str, Engine] = {}
        self._saved: dict[str, Engine] = {}  # as they lie in the files, so that the next version has them at hand

    @property
    def nodes(self) -> int:
        """How many shards stage 2 has."""
        return len(self.version.content.parts) - 1

    def server(self) -> Engine:
        """The engine of stage 1, or of all. Raises `StoreError`."""
        return self._part(SERVER)

    def node(self, number: int) -> Engine:
        """The engine of a node. Raises `StoreError`."""
        return self._part(f"node-{number}")

    def all(self) -> list[Engine]:
        """The server, and then the nodes. Raises `StoreError`."""
        return [self.server(), *map(self.node, range(self.nodes))]

    @cached_property
    def added(self) -> tuple[Subscription, ...]:
        """The subscriptions of the delta, with the routers in it. Raises `StoreError`."""
        return tuple(self._load(self.version.content.delta).subscriptions) if self.version.content.delta else ()

    @cached_property
    def leading(self) -> tuple[pa.Array, NDArray[np.bool_]]:
        """The ids at the server that lead to nodes; and whether the id (row) leads to the node (column)."""
        routes = self.version.plan.routes
        leads = np.zeros((len(routes), self.nodes), np.bool_)
        for row, nodes in enumerate(routes.values()):
            if nodes and not 0 <= min(nodes) <= max(nodes) < self.nodes:
                raise damaged(self.version.directory / self.version.content.plan, f"it leads to a node in {nodes}")
            leads[row, list(nodes)] = True
        return pa.array(list(routes), pa.string()), leads

    @cached_property
    def routers(self) -> pa.Array:
        """The ids at the server that are no subscriptions."""
        return pa.array(sorted(self.version.plan.routers), pa.string())

    @cached_property
    def missing(self) -> dict[str, MissingOperator]:
        """By name, what stands in for the operators that subscriptions call, and that are neither installed nor in the
        files. Raises `StoreError`."""
        content, known = self.version.content, operators_of(self.operators)
        paths = [*content.parts.values(), *([content.delta] if content.delta else [])]
        called = {name: units for path in paths for name, units in units_of_called(self._folder(path)).items()}
        return {name: MissingOperator.of(name, called[name]) for name in sorted(called) if name not in known}

    def _part(self, name: str) -> Engine:
        engine = self._parts.get(name)
        if engine is None:
            saved, part_of = self.saved(name), self.version.content.more.part_of
            added = [each for each in self.added if part_of(each.id) == name]
            gone = [id for id in self.version.content.gone if id in saved]
            engine = self._parts[name] = derived_engine(saved, added, gone) if added or gone else saved
        return engine

    def saved(self, name: str) -> Engine:
        """A part as it was saved, without what came and went since. Raises `StoreError`."""
        return self._load(self.version.part(name))

    def _load(self, path: str) -> Engine:
        """A saved engine of this version, shared with other versions that have it."""
        engine = self._saved.get(path)
        if engine is None:
            folder = self._folder(path)
            key = str(folder), _state(folder), self.operators, self.calling, *self.missing.values()
            engine = _engines.get(key)
            if engine is None:
                order, cache = self.calling
                engine = _engines[key] = Engine.load(
                    folder,
                    operators={**operators_of(self.operators), **self.missing},
                    operator_order=order,
                    operator_cache=cache or None,
                )
            self._saved[path] = engine
        return engine

    def _folder(self, path: str) -> Path:
        """The folder of a saved engine. Raises `StoreError` where it is missing."""
        folder = self.version.directory / path
        if not folder.is_dir():
            raise damaged(self.version.directory / self.version.name, f"{path} is missing")
        return folder


def opened(
    directory: str | Path, name: str, operators: Sequence[OperatorFile] = (), calling: tuple[str, str] = AS_USUAL
) -> OpenVersion:
    """A version of an index, which this process may have open already. Raises `StoreError`."""
    key = _key(Path(directory), name, operators, calling)
    return _held(key, lambda: OpenVersion(load(Path(directory), name), operators, calling))


def opened_files(
    files: bytes, source: str, operators: Sequence[OperatorFile] = (), calling: tuple[str, str] = AS_USUAL
) -> OpenVersion:
    """The version that counts in an index whose files have travelled as a ZIP archive (`build.shipped`); `source` is
    the hash of what it says. Raises `StoreError`."""

    def open_all() -> OpenVersion:
        with tempfile.TemporaryDirectory(prefix="triplewire-") as folder, zipfile.ZipFile(io.BytesIO(files)) as archive:
            archive.extractall(folder)
            version = OpenVersion(load(Path(folder)), operators, calling)
            version.all()
        return version

    return _held((source, (0, 0, 0), tuple(operators), calling), open_all)


def _held(key: _Key, open_new: Callable[[], OpenVersion]) -> OpenVersion:
    """The version of this key, which is opened where the process does not hold it."""
    global _openings
    with _lock:
        version = _opened.get(key)
        if version is None:
            version = _opened[key] = open_new()
            _openings += 1
            while len(_opened) > HELD:
                _opened.popitem(last=False)
        _opened.move_to_end(key)
    return version


def refuse_missing(version: OpenVersion) -> None:
    """Raises `StoreError` where subscriptions of a version call operators that were not given."""
    if version.missing:
        raise StoreError(
            f"its subscriptions call operators that were not given: {', '.join(version.missing)}",
            source=str(version.version.directory / version.version.name),
            remedy="give the files that have them: --operators FILE",
        )


def usable(directory: Path, name: str, operators: Sequence[OperatorFile] = ()) -> Version:
    """A version after all of it was opened. Raises `StoreError` where something of it is missing or damaged. Its
    `missing` operators are no fault."""
    try:
        version = opened(directory, name, operators)
        version.all()
        if version.nodes:
            version.leading  # noqa: B018  # reads and checks the plan
    except DamagedError:
        with _lock:
            _opened.pop(_key(directory, name, operators, AS_USUAL), None)
        raise
    return version.version


def _key(directory: Path, name: str, operators: Sequence[OperatorFile], calling: tuple[str, str]) -> _Key:
    manifest = directory / name / MANIFEST
    return str(manifest), _state(manifest), tuple(operators), calling


def _state(path: Path) -> _State:
    """What tells a file or folder from one that takes its place: an index may be removed and made anew."""
    try:
        status = path.stat()
    except OSError:  # opening it fails, and is reported
        return 0, 0, 0
    return status.st_ino, status.st_mtime_ns, status.st_size


def open_versions() -> int:
    """How many versions this process holds open."""
    return len(_opened)


def openings() -> int:
    """How many versions this process has opened so far."""
    return _openings
