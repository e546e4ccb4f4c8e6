"""The manifest of a saved engine: a JSON object that says what is in the directory, under a hash of its own.

The hash is the SHA-256 of the canonical text of all other fields: JSON with sorted keys, without white space, in ASCII.
So white space and order may change, and nothing else. It finds damage. It is no protection against somebody who
writes to the directory, as anybody can compute it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triplewire.errors import DamagedError, StoreError

FORMAT, VERSION = "triplewire engine", 3
UNHASHED = 1  # the version that had no hash: of such an engine only what has a hash of its own is taken
MANIFEST = "manifest.json"
MANIFEST_BYTES = 4 * 1024 * 1024
_HASH = "sha256"


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
