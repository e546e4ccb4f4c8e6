"""Every module and every public class, function and method says what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from house.source import package_files, shown, tree

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _is_override(node: Documented) -> bool:
    return any(
        ast.unparse(decorator).split("(")[0].endswith(("override", "overload")) for decorator in node.decorator_list
    )


def _public(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, Documented]]:
    """Name and node of what others may use: no leading underscore, no function inside a function."""
    for node in body:
        if isinstance(node, Documented) and not node.name.startswith("_") and not _is_override(node):
            yield owner + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, f"{owner}{node.name}.")


@pytest.mark.parametrize("path", package_files(), ids=shown)
def test_docstrings(path: Path) -> None:
    module = tree(path)
    assert (ast.get_docstring(module) or "").strip(), (
        f"{shown(path)}: say what the module is for, and where to look instead"
    )
    bare = [
        f"{shown(path)}:{node.lineno}: {name}"
        for name, node in _public(module.body)
        if not (ast.get_docstring(node) or "").strip()
    ]
    assert not bare, "without a docstring:\n" + "\n".join(bare)


@pytest.mark.parametrize("path", package_files(), ids=shown)
def test_module_docstring_is_a_sentence(path: Path) -> None:
    text = (ast.get_docstring(tree(path)) or "").strip()
    assert len(text.split()) >= 4, f"{shown(path)}: {text!r} says nothing; what is the module for?"
