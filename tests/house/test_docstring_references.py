"""What a docstring or a page names as `triplewire.this.that` is there: a module, or a name that the module has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from house.source import PACKAGE, READS_TREES, ROOT, nodes, package_files, shown
from triplewire import plugins

pytestmark = READS_TREES

NAMED = re.compile(r"`(triplewire(?:\.\w+)+)`")
GROUPS = {f"triplewire.{family}" for family in plugins.BUILT_IN}  # of entry points
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _names(module: Path) -> set[str]:
    """What a module defines or imports, and its entry points' tables."""
    names: set[str] = set()
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.rpartition(".")[2])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _exists(reference: str) -> bool:
    parts = reference.split(".")[1:]
    place = PACKAGE
    for number, part in enumerate(parts):
        if (place / part).is_dir():
            place = place / part
            continue
        module = place / f"{part}.py"
        if module.exists():
            return not parts[number + 1 :] or parts[number + 1] in _names(module)
        return part in _names(place / "__init__.py")
    return True


def test_references_exist() -> None:
    wrong = [
        f"{shown(path)}: {name}"
        for path in [*package_files(), *PAGES]
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if name not in GROUPS and not _exists(name)
    ]
    assert not wrong, "these name what is not there:\n" + "\n".join(wrong)


def test_a_wrong_reference_is_seen() -> None:
    assert not _exists("triplewire.select.nowhere")
    assert not _exists("triplewire.select.index.Nothing")
    assert _exists("triplewire.select.index.Index")
