"""The tools agree: types (mypy --strict), style and form (ruff). Each runs once, as `make check` runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from house.source import ROOT

COMMANDS = {
    "types": ["mypy", "--strict", "src", "bench"],
    "style": ["ruff", "check", "--no-cache", "."],
    "form": ["ruff", "format", "--no-cache", "--check", "."],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_tool_finds_nothing(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
