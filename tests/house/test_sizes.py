"""A file is read at one sitting, a folder is a concept, and a name in the listing says one thing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from house.source import PACKAGE, entries, package_folders, python_files, shown, tree

FILE_LINES = 600
FUNCTION_LINES = 60
DEPTH = 3


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
def test_folder_is_not_deep_and_holds_something(folder: Path) -> None:
    depth = len(folder.relative_to(PACKAGE).parts)
    assert depth <= DEPTH, f"{shown(folder)} lies {depth} folders deep (limit {DEPTH}): merge it into the one above"
    assert entries(folder) or not any(folder.iterdir()), f"{shown(folder)} holds nothing but its `__init__.py`"
