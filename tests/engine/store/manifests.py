"""Manifests that say something else, with a hash that fits: what a program would write that is not ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from triplewire.engine.store.manifest import MANIFEST, manifest_text


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Have the manifest of a saved engine edited."""
    path = folder / MANIFEST
    content = json.loads(path.read_text("utf-8"))
    del content["sha256"]
    edit(content)
    path.write_bytes(manifest_text(content))


def make_old(folder: Path) -> None:
    """Make a saved engine one of version 1, as Triplewire 0.1 wrote it: without hashes of the manifest and by CRC."""
    path = folder / MANIFEST
    content = json.loads(path.read_text("utf-8"))
    del content["sha256"]
    content["version"] = 1
    for entry in content["files"].values():
        entry["sample"] = entry.pop("crc32")  # of another kind, and not looked at
    path.write_text(json.dumps(content, indent=1), "utf-8")
