"""The layers of the architecture, held by import-linter: what stands on a lower line knows nothing of those above."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

from house.source import PACKAGE, ROOT

CONTRACTS = ROOT / ".importlinter"


def _layers(text: str) -> list[set[str]]:
    """The lines of the contract, top first; each a set of module names."""
    return [set(re.split(r"[\s|:]+", line.strip())) for line in text.strip().splitlines()]


def _lint(contracts: Path) -> subprocess.CompletedProcess[str]:
    code = (
        f"from importlinter.cli import lint_imports; raise SystemExit(lint_imports({str(contracts)!r}, no_cache=True))"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


def _contract() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(CONTRACTS, encoding="utf-8")
    return parser


def test_contract_is_kept() -> None:
    done = _lint(CONTRACTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_contract_names_every_top_level_module() -> None:
    listed = set().union(*_layers(_contract()["importlinter:contract:layers"]["layers"]))
    present = {
        f"triplewire.{path.stem}"
        for path in PACKAGE.iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    }
    assert listed == present, "give each module of the top level its place in .importlinter, and no other"


def test_contract_bites(tmp_path: Path) -> None:
    """The same contract upside down must be broken: else it would look at nothing."""
    parser = _contract()
    section = parser["importlinter:contract:layers"]
    lines = [line for line in section["layers"].strip().splitlines() if line.strip()]
    section["layers"] = "\n" + "\n".join(reversed(lines))
    turned = tmp_path / "turned.ini"
    with turned.open("w", encoding="utf-8") as stream:
        parser.write(stream)
    done = _lint(turned)
    if done.returncode == 0:
        pytest.fail("import-linter accepts the layers upside down")
    assert "is not allowed to import" in done.stdout, done.stdout + done.stderr
