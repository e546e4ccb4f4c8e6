"""An engine in a directory: what `Engine.save` writes and `Engine.load` reads.

    manifest.json                    format, version, matcher, entailment, settings; which operators are called
                                     (`called_operators`); of the others name, size and SHA-256; and a hash of all
                                     that (`manifest`)
    subscriptions.<hash>.jsonl       a subscription file: {"id", "language", "query", "prefixes", "base"} a line,
                                     and "rules": the other MDV rules that a rule names (`rows`)
    taxonomy.<hash>.json             the class hierarchy
    index.<hash>.bin                 of matchers that have one: index and join network, as flat arrays (`arrays`)
    learned.<hash>.json              where operators were called: what was learned of their calls
    .lock                            locked by whoever saves

The data files are written first, under names that no earlier state has; the manifest then takes the place of the old
one in a single step. Whoever reads sees the state before or the state after, even if the process or the machine stops
in between. What a save that was stopped has left is removed by the next one, before it writes; one that fails removes
what it has written. One process saves at a time, others wait.

Every file is read once, whole, when it is opened: its SHA-256 has to be that of the manifest. So nothing reaches a
kernel but what a save has written, and nobody looks at the arrays of an index again. This finds damage, files that are
missing or were cut, and files of other saves. It does not find what was written by somebody who may write to the
directory, as anybody can compute a hash. Without an index of its own version, a loaded engine is compiled from the
texts: a saved engine outlives changes of the forms inside.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire.config import Settings
from triplewire.errors import DamagedError, StoreError, TaxonomyError, WriteError
from triplewire.folders import LOCK, alone, on_disk, sync
from triplewire.ir.taxonomy import Taxonomy

FORMAT, VERSION = "triplewire engine", 3
UNHASHED = 1  # the version that had no hash: of such an engine only what has a hash of its own is taken
MANIFEST = "manifest.json"
MANIFEST_BYTES = 4 * 1024 * 1024
_HASH = "sha256"
ALIGNMENT = 64  # bytes, of an array in its file
_PARTS = "subscriptions|taxonomy|index|learned"
_DATA = re.compile(rf"({_PARTS})\.[0-9a-f]{{16}}\.(jsonl|json|bin)")
_ASIDE = re.compile(rf"\.({_PARTS}|{re.escape(MANIFEST)})\.[0-9]+\.part")

R = TypeVar("R")
Part = tuple[str, Callable[[IO[bytes]], object]]
"""The suffix of a data file, and what writes its content."""


def damaged(path: Path, what: str) -> StoreError:
    """The error of a damaged directory."""
    return DamagedError(f"it is damaged: {what}", source=str(path), remedy="restore it from a copy, or save it again")


def manifest_text(content: Mapping[str, Any]) -> bytes:
    """The manifest with its format, version and hash, as it is written."""
    whole = {"format": FORMAT, "version": VERSION, **content}
    return json.dumps({**whole, _HASH: hash_of(whole)}, indent=1).encode() + b"\n"


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a directory. Raises `StoreError` where there is none, or it is damaged, or of a newer version."""
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
    if type(version) is not int or version < 1:
        raise damaged(path, "it states no version")
    stated = manifest.pop(_HASH, None)
    if version <= VERSION and (stated is not None or version != UNHASHED) and stated != hash_of(manifest):
        raise damaged(path, "its content is not what was saved (its SHA-256 differs)")
    if version > VERSION:
        raise StoreError(
            f"it has version {version}, and this Triplewire reads up to {VERSION}",
            source=str(path),
            remedy="load it with the version of Triplewire that wrote it, or a newer one",
        )
    return manifest


def hash_of(content: Mapping[str, Any]) -> str:
    """The hash of a JSON object, by its canonical text."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write_arrays(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Write the arrays, little-endian, to a new file; returns the directory."""
    directory: dict[str, list[Any]] = {}
    end = 0  # bytes written so far
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        padding = -end % ALIGNMENT
        stream.write(bytes(padding))
        directory[name] = [plain.dtype.str.replace("=", "<"), list(plain.shape), end + padding]
        stream.write(plain.reshape(-1).view(np.uint8).data)
        end += padding + plain.nbytes
    return directory


def _mapped(path: Path, entry: Any) -> Mapping[str, NDArray[Any]]:
    """The arrays of a file that the directory in its entry names. The map is private, so that kernels take the arrays
    as they take others; nothing ever writes to it. Raises `StoreError` where the directory is of another file."""
    try:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if path.stat().st_size else b""
        return {
            name: np.frombuffer(data, kind, prod(shape), begin).reshape(shape) if prod(shape) else np.zeros(shape, kind)
            for name, (kind, shape, begin) in entry["arrays"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged(path.with_name(MANIFEST), f"it does not say what is in the index ({error})") from error


@dataclass(frozen=True)
class SavedEngine:
    """A saved engine, its files checked. `subscriptions` is its open file; `index` the arrays, `learned` what
    `LearnedCalls.to_json` gave, where there are some."""

    manifest: Mapping[str, Any]
    taxonomy: Taxonomy
    settings: Settings
    matcher: str
    entailment: str
    subscriptions: IO[bytes]
    index: Mapping[str, NDArray[Any]] | None
    learned: Any = None


def save(directory: Path, manifest: Callable[[], Mapping[str, Any]], parts: Mapping[str, Part]) -> None:
    """Write the parts of an engine to `directory`, in place of an engine that was saved there before.

    `manifest` is asked when the parts are written. Waits for another process that saves there. Raises `StoreError` when
    that takes longer than `folders.WAIT_SECONDS`, and when the directory holds something else or cannot be written.
    """
    try:
        os.fsencode(directory)
    except UnicodeEncodeError as error:
        raise StoreError(f"no directory can have this name: {error.reason}", source=str(directory)) from None
    try:
        _refuse_others(directory)
        if not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
            sync(directory.parent)
        with alone(directory):
            _refuse_others(directory)
            _replace(directory, manifest, parts)
    except OSError as error:
        raise WriteError(f"it cannot be written: {error.strerror or error}", source=str(directory)) from error


def json_part(text: str) -> Part:
    """A file of a JSON text."""
    return "json", lambda stream: stream.write(text.encode("utf-8", "surrogatepass"))


def load(directory: Path, settings: Settings | None = None) -> SavedEngine:
    """What was saved, with `settings` in place of the saved ones. Raises `StoreError`."""
    return _of_one_state(directory, partial(_read, directory, settings))


def _refuse_others(directory: Path) -> None:
    """Raises `StoreError` where the directory holds anything but a saved engine, or what is left of one."""
    entries = {entry.name: entry for entry in directory.iterdir()} if directory.exists() else {}
    ours = [name for name in entries if name in (MANIFEST, LOCK) or _DATA.fullmatch(name) or _ASIDE.fullmatch(name)]
    if MANIFEST in entries or len(ours) < len(entries):  # else nothing, or a first save that was stopped
        try:
            read_manifest(directory)
        except DamagedError:
            if len(ours) < len(entries):
                raise
            if not any(_DATA.fullmatch(name) for name in ours):
                what = f"it is no saved engine: {MANIFEST} is none of an engine, and no data file is beside it"
                raise StoreError(what, source=str(directory), remedy="save to another directory") from None
    for name in ours:
        try:
            mode = entries[name].lstat().st_mode
        except FileNotFoundError:
            continue  # another save has removed it just now
        # a link may be replaced, as it is not followed, but that of a lock
        if not stat.S_ISREG(mode) and not (stat.S_ISLNK(mode) and name != LOCK):
            what = f"it holds {name}, which no save has written"
            raise StoreError(what, source=str(directory), remedy="remove that, or save to another directory")


def _replace(directory: Path, manifest: Callable[[], Mapping[str, Any]], parts: Mapping[str, Part]) -> None:
    """Write the data files, and the manifest that names them; remove those before. Where that fails, the directory has
    the data files that it had."""
    _sweep(directory, _ASIDE)
    named = _named(directory)
    if named is not None:  # else somebody may restore a manifest that names them
        _sweep(directory, _DATA, named)
    before = {entry.name for entry in directory.iterdir()}
    try:
        files = _write(directory, manifest, parts)
    except BaseException:
        with suppress(OSError):  # an interrupt may have come when the new manifest was there already
            _sweep(directory, _DATA, before | (_named(directory) or set()))
        raise
    sync(directory)
    _sweep(directory, _DATA, files)


def _write(directory: Path, manifest: Callable[[], Mapping[str, Any]], parts: Mapping[str, Part]) -> set[str]:
    """Write the data files, and the manifest in place of that before. Returns the names of the data files."""
    files: dict[str, dict[str, Any]] = {}
    for part, (suffix, write) in parts.items():
        aside = directory / f".{part}.{os.getpid()}.part"
        with _written(aside, write):
            sha = _hash_of(aside)
            name = f"{part}.{sha[:16]}.{suffix}"
            files[part] = {"name": name, "bytes": aside.stat().st_size, "sha256": sha}
            os.replace(aside, directory / name)
    sync(directory)
    text = manifest_text({**manifest(), "files": files})
    aside = directory / f".{MANIFEST}.{os.getpid()}.part"
    with _written(aside, lambda stream: stream.write(text)):
        os.replace(aside, directory / MANIFEST)
    return {entry["name"] for entry in files.values()}


def _named(directory: Path) -> set[str] | None:
    """The data files that the manifest names, none where there is no manifest; None where it does not say."""
    if MANIFEST not in os.listdir(directory):
        return set()
    try:
        return {entry["name"] for entry in read_manifest(directory)["files"].values()}
    except (StoreError, LookupError, TypeError, AttributeError):
        return None


@contextmanager
def _written(path: Path, write: Callable[[IO[bytes]], object]) -> Iterator[None]:
    """A block in which a new file is on disk. At its end it has another name, or is removed."""
    try:
        with on_disk(path) as stream:
            write(stream)
        yield
    finally:
        path.unlink(missing_ok=True)


def _sweep(directory: Path, names: re.Pattern[str], but: Set[str] = frozenset()) -> None:
    """Remove the files with such names, which are of earlier saves."""
    for entry in list(directory.iterdir()):
        if names.fullmatch(entry.name) and entry.name not in but:
            entry.unlink()


def _hash_of(path: Path) -> str:
    """The SHA-256 of a file, which is read piece by piece."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_learned(directory: Path) -> Any:
    """What the engine of a directory has learned of operators; None where it has called none. Raises `StoreError`."""
    return _of_one_state(directory, partial(_learned, directory))


_MOST_RETRIES = 3  # of reading, where the manifest is the same as before


def _of_one_state(directory: Path, read: Callable[[Mapping[str, Any]], R]) -> R:
    """What `read` gives for the manifest; again where a save came in between, or two that end with the same manifest.
    Raises `StoreError`."""
    retries = 0
    try:
        while True:
            manifest = read_manifest(directory)
            try:
                return read(manifest)
            except (StoreError, OSError):
                retries += read_manifest(directory) == manifest
                if retries > _MOST_RETRIES:
                    raise
    except OSError as error:
        raise StoreError(f"it cannot be read: {error.strerror or error}", source=str(directory)) from error


def _read(directory: Path, settings: Settings | None, manifest: Mapping[str, Any]) -> SavedEngine:
    matcher, entailment = manifest.get("matcher"), manifest.get("entailment")
    has_index = "index" in manifest and manifest["version"] == VERSION
    parts = ["subscriptions", "taxonomy"] + ["index"] * has_index
    texts, hierarchy, *others = _whole(directory, manifest, parts)
    index = _mapped(others[0], manifest["index"]) if others else None
    learned = _learned(directory, manifest)
    try:
        settings = Settings(**manifest["settings"]) if settings is None else settings
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(directory / MANIFEST, f"its settings are not those of this version ({error})") from error
    try:
        taxonomy = Taxonomy.from_json(json.loads(hierarchy.read_bytes()))
    except (TaxonomyError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged(directory, f"its taxonomy cannot be read ({error})") from error
    if not isinstance(matcher, str) or not isinstance(entailment, str):
        raise damaged(directory / MANIFEST, "it names no matcher or no entailment")
    # the caller closes the texts
    return SavedEngine(manifest, taxonomy, settings, matcher, entailment, open(texts, "rb"), index, learned)


def _learned(directory: Path, manifest: Mapping[str, Any]) -> Any:
    files = manifest.get("files")
    if not isinstance(files, dict) or "learned" not in files:
        return None
    (path,) = _whole(directory, manifest, ["learned"])
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is no JSON") from error


def _whole(directory: Path, manifest: Mapping[str, Any], parts: Sequence[str]) -> list[Path]:
    """The data files of these parts, each read and found to be what the manifest says: several at a time, as hashing
    leaves other threads alone."""
    entries = [_entry(directory, manifest, part) for part in parts]
    with ThreadPoolExecutor(len(entries)) as pool:
        hashes = list(pool.map(_hash_of, [path for path, _, _ in entries]))
    for (path, sha, size), there in zip(entries, hashes, strict=True):
        if there != sha:
            length = path.stat().st_size
            cut = f"; it has {length:,} bytes, and {size:,} were saved" if type(size) is int and size != length else ""
            raise damaged(path, f"its content is not what was saved (the SHA-256 differs{cut})")
    return [path for path, _, _ in entries]


def _entry(directory: Path, manifest: Mapping[str, Any], part: str) -> tuple[Path, Any, Any]:
    """A data file that is there, and its SHA-256 and size as the manifest says."""
    try:
        entry = manifest["files"][part]
        name, sha, size = str(entry["name"]), entry["sha256"], entry.get("bytes")
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(directory / MANIFEST, f"it names no file of {part}") from error
    path = directory / name
    if path.parent != directory or not path.is_file():
        raise damaged(directory, f"the file {name} is missing")
    return path, sha, size
