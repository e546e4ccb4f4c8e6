"""An engine in a directory: what `Engine.save` writes and `Engine.load` reads.

    manifest.json                    format, version, matcher, entailment, settings; name, size and SHA-256 of the
                                     two others
    subscriptions.<hash>.jsonl       a subscription file: {"id", "language", "query", "prefixes", "base"} a line,
                                     and "rules": the other MDV rules that a rule names
    taxonomy.<hash>.json             the class hierarchy

The two data files are written first, under names that no earlier state has; the manifest then takes the place of the
old one in a single step. Whoever reads sees the state before or the state after, even if the machine stops in between.
Loading compiles the texts again, so a saved engine outlives changes of the intermediate form.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triplewire.config import Settings
from triplewire.errors import StoreError, TaxonomyError, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages import parse
from triplewire.model.operator import Operator

FORMAT, VERSION = "triplewire engine", 1
MANIFEST = "manifest.json"
MANIFEST_BYTES = 1024 * 1024

_saving = threading.Lock()  # two threads that save to one directory would sweep away each other's files


@dataclass(frozen=True)
class Saved:
    """The state of an engine but for its operators, which are code."""

    subscriptions: tuple[Subscription, ...]
    taxonomy: Taxonomy
    settings: Settings
    matcher: str
    entailment: str


def save(directory: Path, state: Saved, operators: Mapping[str, Operator]) -> None:
    """Write `state` to `directory`, in place of an engine that was saved there before.

    Raises `StoreError` when the directory holds something else, cannot be written, or when a subscription would not
    be the same after loading (made by hand, or naming a rule that is no longer registered).
    """
    rows = _rows(state, operators)
    contents = {
        "subscriptions": ("jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)),
        "taxonomy": ("json", json.dumps(state.taxonomy.to_json(), ensure_ascii=False, indent=1) + "\n"),
    }
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "matcher": state.matcher,
        "entailment": state.entailment,
        "settings": dataclasses.asdict(state.settings),
        "counts": {"subscriptions": len(rows)},
        "files": {},
    }
    try:
        with _saving:
            _replace(directory, manifest, contents)
    except OSError as error:
        raise StoreError(f"it cannot be written: {error.strerror or error}", source=str(directory)) from error


def load(directory: Path, operators: Mapping[str, Operator], settings: Settings | None = None) -> Saved:
    """The state that was saved; `settings` take the place of the saved ones. Raises `StoreError`."""
    try:
        manifest, subscriptions, hierarchy = _read(directory)
        rows = _lines(directory, subscriptions)
        taxonomy = json.loads(hierarchy)
    except OSError as error:
        raise StoreError(f"it cannot be read: {error.strerror or error}", source=str(directory)) from error
    if settings is None:
        try:
            settings = Settings(**manifest["settings"])
        except (KeyError, TypeError) as error:
            raise _damaged(directory / MANIFEST, f"its settings are not those of this version ({error})") from error
    try:
        classes = Taxonomy.from_json(taxonomy)
    except (TaxonomyError, KeyError, TypeError, ValueError) as error:
        raise _damaged(directory, f"its taxonomy cannot be read ({error})") from error
    matcher, entailment = manifest.get("matcher"), manifest.get("entailment")
    if not isinstance(matcher, str) or not isinstance(entailment, str):
        raise _damaged(directory / MANIFEST, "it names no matcher or no entailment")
    return Saved(_subscriptions(rows, operators, settings, str(directory)), classes, settings, matcher, entailment)


# --- subscriptions ---------------------------------------------------------------------------------------------------


def _rows(state: Saved, operators: Mapping[str, Operator]) -> list[dict[str, Any]]:
    """The subscriptions as rows, each proved to give the same one again. Raises `StoreError` for one that does not.

    What a name in the search clause of a rule means depends on the rules that were there when it was registered: those
    that it found are written down as its `rules`.
    """
    rows: list[dict[str, Any]] = []
    rules = {one.id: one for one in state.subscriptions if one.language == "mdv"}
    before: dict[str, Subscription] = {}
    for one in state.subscriptions:
        row = {"id": one.id, "language": one.language, "query": one.text, "prefixes": dict(one.prefixes)}
        row["base"] = one.base
        for visible in (rules, before) if one.language == "mdv" else (before,):
            seen = _Seen(visible)
            if _compiled(row, seen, operators, state.settings, one.id) == one:
                break
        else:
            raise StoreError(
                "its text does not give the registered subscription any more",
                source=one.id,
                remedy="register it again from its text; a rule that it names may have changed",
            )
        if seen.used:
            row["rules"] = sorted(seen.used)
        rows.append(row)
        if one.language == "mdv":
            before[one.id] = one
    return rows


class _Seen(Mapping[str, Subscription]):
    """Rules, and which of them were asked for."""

    def __init__(self, rules: Mapping[str, Subscription]) -> None:
        self.rules = rules
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Subscription:
        rule = self.rules[name]
        self.used.add(name)
        return rule

    def __iter__(self) -> Iterator[str]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)


class _Wait(Exception):
    """A rule names another that is not compiled yet."""


class _Named(_Seen):
    """Those of the compiled rules that a row names."""

    def __init__(self, rules: Mapping[str, Subscription], names: Iterable[str]) -> None:
        super().__init__(rules)
        self.names = frozenset(names)

    def __getitem__(self, name: str) -> Subscription:
        if name in self.names and name not in self.rules:
            raise _Wait(name)
        if name not in self.names:
            raise KeyError(name)
        return self.rules[name]

    def __len__(self) -> int:
        return len(self.names)


def _subscriptions(
    rows: Iterable[Mapping[str, Any]], operators: Mapping[str, Operator], settings: Settings, source: str
) -> tuple[Subscription, ...]:
    """The subscriptions of the rows, in their order; a rule is compiled after those that it names."""
    by_id = {row["id"]: row for row in rows}
    done: dict[str, Subscription] = {}
    for first in by_id:
        way = [first]  # each rule on it names the next
        while way:
            id_ = way[-1]
            if id_ not in done:
                try:
                    done[id_] = _compiled(
                        by_id[id_], _Named(done, by_id[id_].get("rules", ())), operators, settings, source
                    )
                except _Wait as wait:
                    name = str(wait)
                    if name in way or name not in by_id:
                        raise _damaged(Path(source), f"the rule {id_!r} names {name!r} in vain") from None
                    way.append(name)
                    continue
            way.pop()
    return tuple(done[id_] for id_ in by_id)


def _compiled(
    row: Mapping[str, Any],
    rules: Mapping[str, Subscription],
    operators: Mapping[str, Operator],
    settings: Settings,
    source: str,
) -> Subscription:
    query, language, id_, prefixes, base = (row[key] for key in ("query", "language", "id", "prefixes", "base"))
    try:
        return parse(
            query, language, id=id_, prefixes=prefixes, base=base, operators=operators, rules=rules, settings=settings
        )
    except (TriplewireError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"the subscription {id_!r} cannot be compiled again: {error}", source=source) from error


# --- files -----------------------------------------------------------------------------------------------------------


def _replace(directory: Path, manifest: dict[str, Any], contents: Mapping[str, tuple[str, str]]) -> None:
    """Write the data files, (suffix, text) by part, and the manifest that names them; remove those before."""
    if directory.exists() and any(directory.iterdir()):
        _read_manifest(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for part, (suffix, text) in contents.items():
        data = text.encode("utf-8", "surrogatepass")
        sha = hashlib.sha256(data).hexdigest()
        name = f"{part}.{sha[:16]}.{suffix}"
        _write(directory / name, data)
        manifest["files"][part] = {"name": name, "bytes": len(data), "sha256": sha}
    _write(directory / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
    kept = {entry["name"] for entry in manifest["files"].values()}
    for part in contents:
        for old in directory.glob(f"{part}.*"):
            if old.name not in kept:
                old.unlink()


def _write(path: Path, data: bytes) -> None:
    """Write aside, make it last, rename."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(aside, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def _read(directory: Path) -> tuple[dict[str, Any], bytes, bytes]:
    """The manifest, the subscriptions and the taxonomy of one state; read again where a save came in between."""
    while True:
        manifest = _read_manifest(directory)
        try:
            return manifest, _checked(directory, manifest, "subscriptions"), _checked(directory, manifest, "taxonomy")
        except (StoreError, OSError):
            if _read_manifest(directory) == manifest:
                raise


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    if not path.is_file():
        raise StoreError(f"it is no saved engine: there is no {MANIFEST}", source=str(directory))
    with open(path, "rb") as stream:
        data = stream.read(MANIFEST_BYTES)
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is no JSON") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError("it is not the manifest of a saved engine", source=str(path))
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise _damaged(path, "it states no version")
    if version > VERSION:
        raise StoreError(
            f"it has version {version}, and this Triplewire reads up to {VERSION}",
            source=str(path),
            remedy="load it with the version of Triplewire that wrote it, or a newer one",
        )
    return manifest


def _checked(directory: Path, manifest: Mapping[str, Any], part: str) -> bytes:
    """The content of a data file, which must be what the manifest says."""
    try:
        entry = manifest["files"][part]
        name, sha = str(entry["name"]), entry["sha256"]
    except (KeyError, TypeError) as error:
        raise _damaged(directory / MANIFEST, f"it names no file of {part}") from error
    path = directory / name
    if path.parent != directory or not path.is_file():
        raise _damaged(directory, f"the file {name} is missing")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha:
        raise _damaged(path, "its content is not what was saved (the SHA-256 differs)")
    return data


def _lines(directory: Path, data: bytes) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in data.decode("utf-8", "surrogatepass").split("\n") if line]
    for row in rows:
        if not isinstance(row, dict) or not {"id", "language", "query", "prefixes", "base"} <= row.keys():
            raise _damaged(directory, "a row of its subscriptions lacks a field")
    return rows


def _damaged(path: Path, what: str) -> StoreError:
    return StoreError(f"it is damaged: {what}", source=str(path), remedy="restore it from a copy, or save it again")
