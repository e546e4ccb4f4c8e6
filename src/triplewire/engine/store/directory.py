"""An engine in a directory: what `Engine.save` writes and `Engine.load` reads.

    manifest.json                    format, version, matcher, entailment, settings; of the others name, size, SHA-256
    subscriptions.<hash>.jsonl       a subscription file: {"id", "language", "query", "prefixes", "base"} a line,
                                     and "rules": the other MDV rules that a rule names
    taxonomy.<hash>.json             the class hierarchy
    index.<hash>.bin                 of matchers that have one: the index, as flat arrays (`engine.arrays`)

The data files are written first, under names that no earlier state has; the manifest then takes the place of the old
one in a single step. Whoever reads sees the state before or the state after, even if the machine stops in between.

Opening takes no longer for a larger engine: the index is mapped, the texts stay on disk. So a large file is checked by
its size and a hash over blocks at its beginning, at its end and evenly between; `whole` checks every byte. Without an
index of its own version, a loaded engine is compiled from the texts: a saved engine outlives changes of the forms
inside. What the rows are: `engine.saved_rows`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from triplewire.config import Settings
from triplewire.engine.store.arrays import map_arrays
from triplewire.errors import StoreError, TaxonomyError
from triplewire.ir.taxonomy import Taxonomy

FORMAT, VERSION = "triplewire engine", 1
MANIFEST = "manifest.json"
MANIFEST_BYTES = 4 * 1024 * 1024
SMALL = 8 << 20  # bytes of a file that is always checked as a whole
_BLOCKS, _BLOCK = 64, 1 << 16  # of a larger one
_PIECE = 1 << 20

_saving = threading.Lock()  # two threads that save to one directory would sweep away each other's files

Part = tuple[str, Callable[[IO[bytes]], None]]
"""The suffix of a data file, and what writes its content."""


@dataclass(frozen=True)
class Saved:
    """A saved engine, its files checked. `subscriptions` is its open file; `index` the arrays, where there are some."""

    manifest: Mapping[str, Any]
    taxonomy: Taxonomy
    settings: Settings
    matcher: str
    entailment: str
    subscriptions: IO[bytes]
    index: Mapping[str, NDArray[Any]] | None


def save(directory: Path, manifest: Callable[[], Mapping[str, Any]], parts: Mapping[str, Part]) -> None:
    """Write the parts of an engine to `directory`, in place of an engine that was saved there before.

    `manifest` is asked when the parts are written. Raises `StoreError` when the directory holds something else or
    cannot be written.
    """
    try:
        with _saving:
            _replace(directory, manifest, parts)
    except OSError as error:
        raise StoreError(f"it cannot be written: {error.strerror or error}", source=str(directory)) from error


def header(settings: Settings, matcher: str, entailment: str, count: int) -> dict[str, Any]:
    """The first fields of a manifest."""
    return {
        "matcher": matcher,
        "entailment": entailment,
        "settings": dataclasses.asdict(settings),
        "counts": {"subscriptions": count},
    }


def taxonomy_part(taxonomy: Taxonomy) -> Part:
    """The file of the class hierarchy."""
    text = json.dumps(taxonomy.to_json(), ensure_ascii=False, indent=1) + "\n"
    return "json", lambda stream: _wrote(stream, text.encode("utf-8", "surrogatepass"))


def _wrote(stream: IO[bytes], data: bytes) -> None:
    stream.write(data)


def load(directory: Path, settings: Settings | None = None, *, whole: bool = False) -> Saved:
    """What was saved, with `settings` in place of the saved ones. `whole` checks every byte. Raises `StoreError`."""
    try:
        manifest, texts, index, hierarchy = _read(directory, whole)
        taxonomy = json.loads(hierarchy)
    except OSError as error:
        raise StoreError(f"it cannot be read: {error.strerror or error}", source=str(directory)) from error
    if settings is None:
        try:
            settings = Settings(**manifest["settings"])
        except (KeyError, TypeError) as error:
            raise damaged(directory / MANIFEST, f"its settings are not those of this version ({error})") from error
    try:
        classes = Taxonomy.from_json(taxonomy)
    except (TaxonomyError, KeyError, TypeError, ValueError) as error:
        raise damaged(directory, f"its taxonomy cannot be read ({error})") from error
    matcher, entailment = manifest.get("matcher"), manifest.get("entailment")
    if not isinstance(matcher, str) or not isinstance(entailment, str):
        raise damaged(directory / MANIFEST, "it names no matcher or no entailment")
    return Saved(manifest, classes, settings, matcher, entailment, texts, index)


# --- writing ---------------------------------------------------------------------------------------------------------


def _replace(directory: Path, manifest: Callable[[], Mapping[str, Any]], parts: Mapping[str, Part]) -> None:
    """Write the data files, and the manifest that names them; remove those before."""
    if directory.exists() and any(directory.iterdir()):
        _read_manifest(directory)
    directory.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, Any]] = {}
    for part, (suffix, write) in parts.items():
        aside = directory / f".{part}.{os.getpid()}.part"
        try:
            with open(aside, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            size, sha = aside.stat().st_size, _sha(aside)
            name = f"{part}.{sha[:16]}.{suffix}"
            files[part] = {"name": name, "bytes": size, "sha256": sha, "sample": _sample(aside, size)}
            os.replace(aside, directory / name)
        finally:
            aside.unlink(missing_ok=True)
    content = {"format": FORMAT, "version": VERSION, **manifest(), "files": files}
    _write(directory / MANIFEST, json.dumps(content, indent=1).encode() + b"\n")
    written = {entry["name"] for entry in files.values()}
    for part in ("subscriptions", "taxonomy", "index"):
        for old in directory.glob(f"{part}.*"):
            if old.name not in written:
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


def _sha(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _sample(path: Path, size: int) -> str:
    """The hash of blocks at the beginning, at the end and evenly between."""
    digest = hashlib.sha256()
    last = max(size - _BLOCK, 0)
    with open(path, "rb") as stream:
        for number in range(_BLOCKS):
            stream.seek(last * number // (_BLOCKS - 1))
            digest.update(stream.read(_BLOCK))
    return digest.hexdigest()


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(directory: Path, whole: bool) -> tuple[dict[str, Any], IO[bytes], Mapping[str, NDArray[Any]] | None, bytes]:
    """The manifest, the texts, the index and the taxonomy of one state; again where a save came in between."""
    while True:
        manifest = _read_manifest(directory)
        try:
            texts = _checked(directory, manifest, "subscriptions", whole)
            hierarchy = _checked(directory, manifest, "taxonomy", whole).read_bytes()
            index = None
            if "index" in manifest:
                index = _mapped(_checked(directory, manifest, "index", whole), manifest["index"])
            return manifest, open(texts, "rb"), index, hierarchy  # the caller closes it
        except (StoreError, OSError):
            if _read_manifest(directory) == manifest:
                raise


def _mapped(path: Path, entry: Any) -> Mapping[str, NDArray[Any]]:
    try:
        return map_arrays(path, entry["arrays"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path.with_name(MANIFEST), f"it does not say what is in the index ({error})") from error


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    if not path.is_file():
        raise StoreError(f"it is no saved engine: there is no {MANIFEST}", source=str(directory))
    with open(path, "rb") as stream:
        data = stream.read(MANIFEST_BYTES)
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is no JSON") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError("it is not the manifest of a saved engine", source=str(path))
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise damaged(path, "it states no version")
    if version > VERSION:
        raise StoreError(
            f"it has version {version}, and this Triplewire reads up to {VERSION}",
            source=str(path),
            remedy="load it with the version of Triplewire that wrote it, or a newer one",
        )
    return manifest


def _checked(directory: Path, manifest: Mapping[str, Any], part: str, whole: bool) -> Path:
    """A data file, which must be what the manifest says."""
    try:
        entry = manifest["files"][part]
        name, sha, size, sample = str(entry["name"]), entry["sha256"], entry.get("bytes"), entry.get("sample")
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(directory / MANIFEST, f"it names no file of {part}") from error
    path = directory / name
    if path.parent != directory or not path.is_file():
        raise damaged(directory, f"the file {name} is missing")
    there = path.stat().st_size
    if whole or there <= SMALL or sample is None:
        if _sha(path) != sha:
            raise damaged(path, "its content is not what was saved (the SHA-256 differs)")
    elif there != size:
        raise damaged(path, f"it has {there:,} bytes, and {size:,} were saved")
    elif _sample(path, there) != sample:
        raise damaged(path, "its content is not what was saved (the SHA-256 of its samples differs)")
    return path


def damaged(path: Path, what: str) -> StoreError:
    """The error of a damaged directory."""
    return StoreError(f"it is damaged: {what}", source=str(path), remedy="restore it from a copy, or save it again")
