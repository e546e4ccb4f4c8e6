"""The versions of an index in a directory: their manifests, how one is published, and which are removed.

    DIR/current                      the name of the version that counts, "v12", replaced in one step
    DIR/v<number>/manifest.json      what the version is made of, under a hash of its own
    DIR/v<number>/server/            saved engine: all subscriptions, or those of stage 1 (`Engine.save`)
    DIR/v<number>/node-<number>/     saved engine: the shard of a node
    DIR/v<number>/plan.json          of a partitioned index: which id of stage 1 leads to which nodes
    DIR/v<number>/delta/             saved engine: subscriptions that were added since the last full version
    DIR/v<number>/changed.json       what was changed since `build`, where it was taken into a full version
    DIR/pins/<hash>.json             a version that a run has in use
    DIR/.lock                        locked by whoever writes

A version is written aside (`.v12.<process>`), renamed, and counts from the moment that `current` names it. It is never
changed then. What has not changed since an earlier version is not written again: the manifest names where it lies.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from triplewire import folders
from triplewire.engine.store.directory import hash_of
from triplewire.errors import DamagedError, StoreError, WriteError
from triplewire.folders import on_disk, sync
from triplewire.partition.plan import MERGE_PERCENT

Read = TypeVar("Read")

FORMAT, FORM = "triplewire index", 1
CURRENT, MANIFEST, PLAN, PINS = "current", "manifest.json", "plan.json", "pins"
SERVER, DELTA, CHANGED = "server", "delta", "changed.json"
RETAINED = 8
"""So many of the newest versions stay, whoever uses them; of older ones those that a run has pinned."""

_NAME = re.compile(r"v[1-9][0-9]*")
_OURS = re.compile(rf"{_NAME.pattern}|\.v.*|\.built\..*|\.{CURRENT}\..*|{re.escape(folders.LOCK)}|{PINS}")
_SEAL = "sha256"
_REPAIR = "restore it from a copy, or build the index anew with `triplewire pipeline index`"


@dataclass(frozen=True)
class Plan:
    """`routes`: id at the server -> the nodes that a match of it leads to. `routers`: the ids at the server whose
    matches are not told, as they are no subscriptions (mergers, and roots that are gone). `placed`: subscription of
    the delta -> its node; the others of the delta are at the server."""

    routes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    routers: frozenset[str] = frozenset()
    placed: Mapping[str, int] = field(default_factory=dict)

    def part_of(self, id: str) -> str:
        """The part that a subscription of the delta is in."""
        return f"node-{self.placed[id]}" if id in self.placed else SERVER

    def with_more(self, other: Plan) -> Plan:
        """Both."""
        return Plan({**self.routes, **other.routes}, self.routers | other.routers, {**self.placed, **other.placed})

    def to_json(self) -> dict[str, Any]:
        """As it stands in files."""
        routes = {id: list(nodes) for id, nodes in self.routes.items()}
        return {"routes": routes, "routers": sorted(self.routers), "placed": dict(self.placed)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Plan:
        """What `to_json` gave. Raises `LookupError`, `TypeError`, `ValueError` or `AttributeError` for others."""
        routes = {str(id): tuple(map(int, nodes)) for id, nodes in content["routes"].items()}
        placed = {str(id): int(node) for id, node in content.get("placed", {}).items()}  # earlier versions have none
        return cls(routes, frozenset(map(str, content["routers"])), placed)


@dataclass(frozen=True)
class Content:
    """What a version is made of. Paths are relative to the index.

    `parts`: "server" or "node-<number>" -> its saved engine. `plan`: the file of the plan, "" where there is one part.
    `delta`: the saved engine of the subscriptions added since, "" for none; `gone`: the ids removed since, from any
    part; `more`: what the delta adds to the plan. `everywhere`: the nodes that each publication goes to.
    `subscriptions` counts those that are live. `source`: the hash of what it was built from, where one run has the
    index for itself. `built`: the name that this version had when it was built from files, before all changes; of
    those, `changed` is the file of what is neither in the delta nor in `gone`, "" for none. `percent`: how many of the
    subscriptions *merging* was to take out of the server's part.
    """

    partitioner: str
    nodes: int
    parts: Mapping[str, str]
    subscriptions: int
    everywhere: tuple[int, ...] = ()
    plan: str = ""
    delta: str = ""
    gone: tuple[str, ...] = ()
    more: Plan = Plan()
    source: str = ""
    built: str = ""
    changed: str = ""
    percent: float = MERGE_PERCENT

    def to_json(self) -> dict[str, Any]:
        """As it stands in the manifest."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {**values, "parts": dict(self.parts), "gone": list(self.gone), "more": self.more.to_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Content:
        """What `to_json` gave. Raises as `Plan.from_json`."""
        return cls(
            str(content["partitioner"]),
            int(content["nodes"]),
            {str(name): _relative(path) for name, path in content["parts"].items()},
            int(content["subscriptions"]),
            _nodes(content["everywhere"], int(content["nodes"])),
            _relative(content["plan"]),
            _relative(content["delta"]),
            tuple(map(str, content["gone"])),
            Plan.from_json(content["more"]),
            str(content["source"]),
            str(content.get("built", "")),  # indexes of earlier versions of Triplewire do not have these
            _relative(content.get("changed", "")),
            float(content.get("percent", MERGE_PERCENT)),
        )


def _nodes(told: Any, nodes: int) -> tuple[int, ...]:
    """Numbers of nodes; indexes of earlier versions of Triplewire say whether it is all of them."""
    if isinstance(told, bool):
        return tuple(range(nodes)) if told else ()
    return tuple(map(int, told))


@dataclass(frozen=True)
class Version:
    """A version that was published. `sha256` is the hash of its manifest, which no other version has, even of the same
    name and subscriptions."""

    directory: Path
    name: str
    content: Content
    sha256: str

    @property
    def number(self) -> int:
        """The number in its name."""
        return int(self.name[1:])

    @property
    def is_staged(self) -> bool:
        """Are there shards of nodes, which stage 2 looks at?"""
        return len(self.content.parts) > 1

    @cached_property
    def plan(self) -> Plan:
        """Where matches of stage 1 lead. Raises `StoreError`."""
        more = self.content.more
        if not self.content.plan:
            return more
        return _read(self.directory / self.content.plan, "it is no plan", Plan.from_json).with_more(more)

    @cached_property
    def changed(self) -> Mapping[str, str]:
        """The ids in the file of what was changed since the version was built: id -> revision, "" of what is gone.
        Raises `StoreError`."""
        if not self.content.changed:
            return {}
        path = self.directory / self.content.changed
        changed = _read(path, "it does not say what was changed", lambda content: content["changed"].items())
        return {str(id): str(revision) for id, revision in changed}

    def part(self, name: str) -> str:
        """The path of a part, within the index. Raises `StoreError` where the version has no such part."""
        if name not in self.content.parts:
            raise damaged(self.directory / self.name / MANIFEST, f"it has no part {name!r}")
        return self.content.parts[name]


def damaged(path: Path, what: str) -> DamagedError:
    """The error of a damaged version."""
    return DamagedError(f"it is damaged: {what}", source=str(path), remedy=_REPAIR)


def current(directory: Path) -> str:
    """The name of the version that counts. Raises `StoreError` where the directory is no index."""
    path = directory / CURRENT
    try:
        name = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        what = "it is no index of subscriptions" if directory.exists() else "there is no such directory"
        remedy = f"triplewire pipeline index --subscriptions FILE --output {directory} makes one"
        raise StoreError(what, source=str(directory), remedy=remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"it cannot be read: {getattr(error, 'strerror', '') or error}", source=str(path)) from error
    if not _NAME.fullmatch(name):
        raise damaged(path, f"{name[:40]!r} is no name of a version")
    return name


def load(directory: Path, name: str = "") -> Version:
    """A version by name, or the one that counts. Raises `StoreError` where it is missing or damaged."""
    name = name or current(directory)
    path = directory / name / MANIFEST
    wrong = "it is not the manifest of a version"
    content, sha256 = _read(path, wrong, lambda sealed: (Content.from_json(sealed), str(sealed[_SEAL])))
    return Version(directory, name, content, sha256)


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """A block in which no other process or thread writes to the index. Raises `StoreError` as `folders.alone` does."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        others = (entry.name for entry in sorted(directory.iterdir()) if not _OURS.fullmatch(entry.name))
        if not (directory / CURRENT).exists() and (other := next(others, "")):
            what = f"it holds something else ({other}), and is no index of subscriptions"
            raise StoreError(what, source=str(directory), remedy="choose another directory")
        with folders.alone(directory):
            yield
    except OSError as error:
        raise WriteError(f"it cannot be written: {error.strerror or error}", source=str(directory)) from error


def publish(directory: Path, write: Callable[[Path, str], Content]) -> Version:
    """Publish a new version; the caller is `alone`. `write` gets the folder to write to, and the name that the version
    will have, and returns what is there."""
    names = [entry.name for entry in directory.iterdir() if _NAME.fullmatch(entry.name)]
    name = f"v{max((int(name[1:]) for name in names), default=0) + 1}"
    for left in directory.glob(".v*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    aside = directory / f".{name}.{os.getpid()}"
    aside.mkdir()
    try:
        content = write(aside, name)
        # made by chance, so that no two versions have the same hash
        head = {"format": FORMAT, "form": FORM, "version": name, "made": secrets.token_hex(16)}
        seal(aside / MANIFEST, {**head, **content.to_json()})
        sync(aside)
        os.rename(aside, directory / name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    _replace(directory / CURRENT, f"{name}\n".encode())
    sync(directory)
    return load(directory, name)


def sweep(directory: Path, retained: int = RETAINED) -> list[str]:
    """Remove all versions but the newest `retained` ones, those that runs have pinned, and those whose files these use.
    The caller is `alone`. Returns the names of the removed versions."""
    numbers = sorted(int(entry.name[1:]) for entry in directory.iterdir() if _NAME.fullmatch(entry.name))
    needed = {f"v{number}" for number in numbers[-retained:]} | pinned(directory)
    for name in list(needed):
        with suppress(StoreError):
            content = load(directory, name).content
            paths = *content.parts.values(), content.plan, content.delta, content.changed
            needed |= {Path(path).parts[0] for path in paths if path}
    removed = [name for name in (f"v{number}" for number in numbers) if name not in needed]
    for name in removed:
        gone = directory / f".{name}"
        with suppress(OSError):  # under another name first, so that nobody sees half of it
            os.rename(directory / name, gone)
            shutil.rmtree(gone)
    return removed


def pin(directory: Path, output: Path, name: str) -> None:
    """Have a version stay as long as the run with this output uses it. Raises `OSError` where the index cannot be
    written."""
    path = _pin_of(directory, output)
    path.parent.mkdir(exist_ok=True)
    _replace(path, json.dumps({"output": os.fspath(output), "version": name}).encode("utf-8", "surrogateescape"))


def unpin(directory: Path, output: Path) -> None:
    """The run with this output needs no version any more."""
    with suppress(OSError):  # it is not there, or the index cannot be written
        _pin_of(directory, output).unlink()


def _pin_of(directory: Path, output: Path) -> Path:
    return directory / PINS / f"{hashlib.sha256(os.fsencode(output)).hexdigest()[:16]}.json"


def pinned(directory: Path) -> set[str]:
    """The versions that runs use whose output is still there; of others, the pin goes."""
    names = set()
    for path in (directory / PINS).glob("*.json"):
        try:
            entry = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
            if Path(entry["output"]).exists():
                names.add(str(entry["version"]))
            else:
                path.unlink()
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return names


def seal(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object with a hash of its other fields, and have it on disk."""
    with on_disk(path) as stream:
        stream.write(json.dumps({**content, _SEAL: hash_of(content)}, indent=1).encode("ascii") + b"\n")


def _read(path: Path, wrong: str, make: Callable[[dict[str, Any]], Read]) -> Read:
    """What `make` makes of what `seal` wrote, with its hash. Raises `StoreError`, with `wrong` where it is something
    else."""
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("it is no JSON object")
        form = content.get("form", FORM)
        if form != FORM:
            raise ValueError(f"it has form {form}, and this Triplewire reads {FORM}")
        if content.get(_SEAL) != hash_of({name: value for name, value in content.items() if name != _SEAL}):
            raise ValueError("its content is not what was written: the SHA-256 differs")
        return make(content)
    except OSError as error:
        raise damaged(path, f"it cannot be read: {error.strerror or error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path, f"{wrong} ({error})") from error


def _relative(path: Any) -> str:
    """A path that stays within the index. Raises `ValueError` for another."""
    text = str(path)
    if text and (Path(text).is_absolute() or ".." in Path(text).parts or not _NAME.fullmatch(Path(text).parts[0])):
        raise ValueError(f"{text!r} lies outside of the index")
    return text


def _replace(path: Path, content: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with on_disk(aside) as stream:
        stream.write(content)
    os.replace(aside, path)
