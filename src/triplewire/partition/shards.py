"""A partitioned index in a directory: saved engines for the server and for each node, and what leads to which.

    current                          the name of the version that counts, replaced in one step
    v<number>/manifest.json          partitioner, number of nodes, sizes, routes, mergers
    v<number>/server/                the index of the server, as `Engine.save` writes it
    v<number>/node-<number>/         the shard of a node

A version is written beside the ones before and never changed, so whoever has opened one keeps it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triplewire.engine import Engine
from triplewire.errors import DamagedError, StoreError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.operator import Operator
from triplewire.partition.engines import engine_of
from triplewire.partition.placement import SERVER, Placement

FORMAT, VERSION = "triplewire shards", 1
CURRENT, MANIFEST, SERVER_NAME = "current", "manifest.json", "server"


@dataclass(frozen=True, slots=True)
class Shards:
    """A version of a partitioned index. `routes`: id at the server -> the nodes that a match of it leads to; `mergers`
    are the ids at the server that are no subscriptions; `everywhere`: each publication goes to every node."""

    folder: Path
    version: int
    partitioner: str
    nodes: int
    everywhere: bool
    routes: Mapping[str, tuple[int, ...]]
    mergers: frozenset[str]
    sizes: tuple[int, ...]

    def server(self, operators: Mapping[str, Operator] | None = None) -> Engine:
        """The engine of stage 1, opened as a memory map."""
        return Engine.load(self.folder / SERVER_NAME, operators=operators)

    def node(self, number: int, operators: Mapping[str, Operator] | None = None) -> Engine:
        """The engine of a node, opened as a memory map."""
        return Engine.load(self.folder / f"node-{number}", operators=operators)


def save(
    directory: Path,
    partitioner: str,
    placement: Placement,
    subscriptions: Iterable[Subscription],
    world: World,
    *,
    entailment: str = "none",
) -> Shards:
    """Write a new version, and have it count from then on. One process writes at a time. Raises `StoreError`."""
    everything = list(subscriptions)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        version = _last(directory) + 1
        aside = directory / f".v{version}.{os.getpid()}"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        groups: dict[int, list[Subscription]] = {node: [] for node in range(SERVER, placement.nodes)}
        for subscription in everything:
            groups[placement.place[subscription.id]].append(subscription)
        groups[SERVER] += placement.mergers.values()
        for node, group in groups.items():
            name = SERVER_NAME if node == SERVER else f"node-{node}"
            engine_of(group, world, entailment).save(aside / name)
        sizes = [len(groups[node]) for node in range(SERVER, placement.nodes)]
        _write(aside / MANIFEST, json.dumps(_manifest(partitioner, placement, version, sizes), indent=1))
        os.rename(aside, directory / f"v{version}")
        _write(directory / f".{CURRENT}.{os.getpid()}", f"v{version}\n")
        os.replace(directory / f".{CURRENT}.{os.getpid()}", directory / CURRENT)
    except OSError as error:
        raise StoreError(f"it cannot be written: {error.strerror or error}", source=str(directory)) from error
    return load(directory)


def load(directory: Path, version: int | None = None) -> Shards:
    """The version that counts, or a given one. Raises `StoreError` where there is none, or it is damaged."""
    try:
        name = (directory / CURRENT).read_text().strip() if version is None else f"v{version}"
        manifest = json.loads((directory / name / MANIFEST).read_bytes())
    except OSError as error:
        raise StoreError(f"it is no partitioned index: {error.strerror}", source=str(directory)) from error
    except ValueError as error:
        raise DamagedError("its manifest is no JSON", source=str(directory / name), remedy="write it again") from error
    try:
        if (manifest["format"], manifest["form"]) != (FORMAT, VERSION):
            raise ValueError("another format")
        return Shards(
            directory / name,
            int(manifest["version"]),
            str(manifest["partitioner"]),
            int(manifest["nodes"]),
            bool(manifest["everywhere"]),
            {str(id): tuple(map(int, nodes)) for id, nodes in manifest["routes"].items()},
            frozenset(manifest["mergers"]),
            tuple(manifest["sizes"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"its manifest is not one of this version ({error})"
        raise DamagedError(what, source=str(directory / name / MANIFEST), remedy="write it again") from error


def _manifest(partitioner: str, placement: Placement, version: int, sizes: list[int]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "form": VERSION,
        "version": version,
        "partitioner": partitioner,
        "nodes": placement.nodes,
        "everywhere": placement.everywhere,
        "sizes": sizes,
        "mergers": sorted(placement.mergers),
        "routes": {id: sorted(nodes) for id, nodes in placement.routes.items()},
    }


def _last(directory: Path) -> int:
    """The number of the newest version."""
    names = [entry.name for entry in directory.iterdir() if entry.name.startswith("v")]
    return max((int(name[1:]) for name in names if name[1:].isdecimal()), default=0)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
