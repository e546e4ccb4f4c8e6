"""Manifests that say something else, with a hash that fits: what a program would write that is not ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from triplewire.engine.store.directory import MANIFEST, hash_of, manifest_text


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Have the manifest of a saved engine edited."""
    path = folder / MANIFEST
    content = json.loads(path.read_text("utf-8"))
    del content["sha256"]
    edit(content)
    path.write_bytes(manifest_text(content))


def make_old(folder: Path, version: int) -> None:
    """Make a saved engine one of version 1, as Triplewire 0.1 wrote it, without a hash of the manifest; or of version
    2, which had it, and the CRC-32 of each file."""
    path = folder / MANIFEST
    content = json.loads(path.read_text("utf-8"))
    del content["sha256"]
    content["version"] = version
    for entry in content["files"].values():
        entry["sample" if version == 1 else "crc32"] = 12  # not looked at
    stated = {} if version == 1 else {"sha256": hash_of(content)}
    path.write_text(json.dumps({**content, **stated}, indent=1), "utf-8")
