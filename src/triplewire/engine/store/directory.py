"""An engine in a directory: what `Engine.save` writes and `Engine.load` reads.

    manifest.json                    format, version, matcher, entailment, settings; which operators are called
                                     (`called_operators`); of the others name, size, hashes; and a hash of all that
                                     (`manifest`)
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

Every file is read once when it is opened: one up to `SMALL` bytes for its SHA-256, a larger one for its CRC-32, which
takes less time; `whole` asks for the SHA-256 of all. Without an index of its own version, a loaded engine is compiled
from the texts: a saved engine outlives changes of the forms inside.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from triplewire.config import Settings
from triplewire.engine.store.arrays import MappedArrays, map_arrays
from triplewire.engine.store.manifest import MANIFEST, UNHASHED, damaged, manifest_text, read_manifest
from triplewire.errors import DamagedError, StoreError, TaxonomyError
from triplewire.folders import LOCK, alone, on_disk, sync
from triplewire.ir.taxonomy import Taxonomy

SMALL = 8 << 20  # bytes of a file whose SHA-256 is always looked at
_PIECE = 1 << 20
_PARTS = "subscriptions|taxonomy|index|learned"
_DATA = re.compile(rf"({_PARTS})\.[0-9a-f]{{16}}\.(jsonl|json|bin)")
_ASIDE = re.compile(rf"\.({_PARTS}|{re.escape(MANIFEST)})\.[0-9]+\.part")

R = TypeVar("R")
Part = tuple[str, Callable[[IO[bytes]], object]]
"""The suffix of a data file, and what writes its content."""


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
    index: MappedArrays | None
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
    return json_part(text)


def json_part(text: str) -> Part:
    """A file of a JSON text."""
    return "json", lambda stream: stream.write(text.encode("utf-8", "surrogatepass"))


def load(directory: Path, settings: Settings | None = None, *, whole: bool = False) -> SavedEngine:
    """What was saved, with `settings` in place of the saved ones. `whole`: see above. Raises `StoreError`."""
    manifest, texts, index, hierarchy, learned = _of_one_state(directory, partial(_read, directory, whole))
    if settings is None:
        try:
            settings = Settings(**manifest["settings"])
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(directory / MANIFEST, f"its settings are not those of this version ({error})") from error
    try:
        classes = Taxonomy.from_json(json.loads(hierarchy))
    except (TaxonomyError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged(directory, f"its taxonomy cannot be read ({error})") from error
    matcher, entailment = manifest.get("matcher"), manifest.get("entailment")
    if not isinstance(matcher, str) or not isinstance(entailment, str):
        raise damaged(directory / MANIFEST, "it names no matcher or no entailment")
    return SavedEngine(manifest, classes, settings, matcher, entailment, texts, index, learned)


# --- writing ---------------------------------------------------------------------------------------------------------


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
        if not _is_of_a_save(entries[name]):
            what = f"it holds {name}, which no save has written"
            raise StoreError(what, source=str(directory), remedy="remove that, or save to another directory")


def _is_of_a_save(entry: Path) -> bool:
    """May something with one of our names be replaced? A link may, as it is not followed, but that of a lock."""
    try:
        mode = entry.lstat().st_mode
    except FileNotFoundError:
        return True  # another save has removed it just now
    return stat.S_ISREG(mode) or (stat.S_ISLNK(mode) and entry.name != LOCK)


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
            size, sha, crc = _hashes(aside)
            name = f"{part}.{sha[:16]}.{suffix}"
            files[part] = {"name": name, "bytes": size, "sha256": sha, "crc32": crc}
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


def _hashes(path: Path, *, sha: bool = True) -> tuple[int, str, int]:
    """The size of a file, its SHA-256 ("" where it is not asked for) and its CRC-32."""
    digest, crc, size = hashlib.sha256(), 0, 0
    with open(path, "rb") as stream:
        while piece := stream.read(_PIECE):
            if sha:
                digest.update(piece)
            crc, size = zlib.crc32(piece, crc), size + len(piece)
    return size, digest.hexdigest() if sha else "", crc


# --- reading ---------------------------------------------------------------------------------------------------------


def load_learned(directory: Path) -> Any:
    """What the engine of a directory has learned of operators; None where it has called none. Raises `StoreError`."""
    return _of_one_state(directory, partial(_learned, directory))


def _of_one_state(directory: Path, read: Callable[[Mapping[str, Any]], R]) -> R:
    """What `read` gives for the manifest; again where a save came in between. Raises `StoreError`."""
    try:
        while True:
            manifest = read_manifest(directory)
            try:
                return read(manifest)
            except (StoreError, OSError):
                if read_manifest(directory) == manifest:
                    raise
    except OSError as error:
        raise StoreError(f"it cannot be read: {error.strerror or error}", source=str(directory)) from error


def _read(
    directory: Path, whole: bool, manifest: Mapping[str, Any]
) -> tuple[Mapping[str, Any], IO[bytes], MappedArrays | None, bytes, Any]:
    """The manifest, the texts, the index, the taxonomy and what was learned."""
    texts = _checked(directory, manifest, "subscriptions", whole)
    hierarchy = _checked(directory, manifest, "taxonomy", whole).read_bytes()
    index = None
    if "index" in manifest and manifest["version"] > UNHASHED:
        index = _mapped(_checked(directory, manifest, "index", whole), manifest["index"])
    learned = _learned(directory, manifest)
    return manifest, open(texts, "rb"), index, hierarchy, learned  # the caller closes it


def _learned(directory: Path, manifest: Mapping[str, Any]) -> Any:
    files = manifest.get("files")
    if not isinstance(files, dict) or "learned" not in files:
        return None
    path = _checked(directory, manifest, "learned", whole=True)
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is no JSON") from error


def _mapped(path: Path, entry: Any) -> MappedArrays:
    try:
        return map_arrays(path, entry["arrays"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged(path.with_name(MANIFEST), f"it does not say what is in the index ({error})") from error


def _checked(directory: Path, manifest: Mapping[str, Any], part: str, whole: bool) -> Path:
    """A data file, which must be what the manifest says."""
    try:
        entry = manifest["files"][part]
        name, sha, size, crc = str(entry["name"]), entry["sha256"], entry.get("bytes"), entry.get("crc32")
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(directory / MANIFEST, f"it names no file of {part}") from error
    path = directory / name
    if path.parent != directory or not path.is_file():
        raise damaged(directory, f"the file {name} is missing")
    by_sha = whole or path.stat().st_size <= SMALL or crc is None
    there = _hashes(path, sha=by_sha)
    if by_sha and there[1] != sha:
        raise damaged(path, "its content is not what was saved (the SHA-256 differs)")
    if size is not None and there[0] != size:
        raise damaged(path, f"it has {there[0]:,} bytes, and {size:,} were saved")
    if crc is not None and there[2] != crc:
        raise damaged(path, "its content is not what was saved (the CRC-32 differs)")
    return path
