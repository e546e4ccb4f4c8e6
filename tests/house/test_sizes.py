"""A file has at most 600 lines, a function 60, a folder 15 entries: what is larger holds more than one idea."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from house.source import entries, package_folders, python_files, shown, tree

FILE_LINES = 600
FUNCTION_LINES = 60
FOLDER_ENTRIES = 15


@pytest.mark.parametrize("path", python_files(), ids=shown)
def test_file_and_functions_are_short(path: Path) -> None:
    count = len(path.read_text(encoding="utf-8").splitlines())
    assert count <= FILE_LINES, (
        f"{shown(path)} has {count} lines (limit {FILE_LINES}): split it by concept, not by size"
    )
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES, (
                f"{shown(path)}:{node.lineno}: {node.name} has {length} lines (limit {FUNCTION_LINES}): "
                "split it by concept, not by size"
            )


@pytest.mark.parametrize("folder", package_folders(), ids=shown)
def test_folder_is_small(folder: Path) -> None:
    names = entries(folder)
    assert len(names) <= FOLDER_ENTRIES, (
        f"{shown(folder)} has {len(names)} entries (limit {FOLDER_ENTRIES}): make folders in it that are named after "
        "a purpose, move the files that serve it there, and update docs/architecture.md"
    )
    assert names or not any(folder.iterdir()), f"{shown(folder)} holds nothing but its `__init__.py`: remove it"
