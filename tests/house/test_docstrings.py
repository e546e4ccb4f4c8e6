"""Every module and every public class, function and method says what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house.source import READS_TREES, package_files, shown, tree

pytestmark = READS_TREES

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


def test_docstrings() -> None:
    bare = [
        f"{shown(path)}:{node.lineno}: {name}"
        for path in package_files()
        for name, node in _public(tree(path).body)
        if not (ast.get_docstring(node) or "").strip()
    ]
    assert not bare, "without a docstring:\n" + "\n".join(bare)


def test_docstrings_of_modules_are_sentences() -> None:
    short = [shown(path) for path in package_files() if len((ast.get_docstring(tree(path)) or "").split()) < 4]
    assert not short, f"say what the module is for, and where to look instead: {short}"
