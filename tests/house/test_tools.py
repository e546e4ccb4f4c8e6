"""The tools agree: types (mypy --strict), style and form (ruff).

Each runs once, as `make check` runs it; what mypy knows of a file that has not changed since, it keeps in the user's
cache, in a folder of this checkout: two that write to one at a time damage it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from house.source import ROOT

CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "triplewire")
KNOWN = CACHES / f"mypy-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"
COMMANDS = {
    "types": ["mypy", "--strict", "--cache-dir", str(KNOWN), "src", "bench"],
    "style": ["ruff", "check", "--no-cache", "."],
    "form": ["ruff", "format", "--no-cache", "--check", "."],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_tool_finds_nothing(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
