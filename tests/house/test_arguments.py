"""A function takes at most 12 arguments: what belongs together is a named tuple, or an object."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from house.source import package_files, shown, tree

ARGUMENTS = 12


@pytest.mark.parametrize("path", package_files(), ids=shown)
def test_functions_take_few_arguments(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            count = sum(map(len, (node.args.posonlyargs, node.args.args, node.args.kwonlyargs)))
            name = "lambda" if isinstance(node, ast.Lambda) else node.name
            assert count <= ARGUMENTS, (
                f"{shown(path)}:{node.lineno}: {name} takes {count} arguments (limit {ARGUMENTS}): group them"
            )
