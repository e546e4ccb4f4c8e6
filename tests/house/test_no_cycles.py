"""No module imports itself by way of others, at the top of a file or inside a function. Type-only imports are free."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from house.source import READS_TREES, module_name, package_files, shown, tree

pytestmark = READS_TREES


def _is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All import statements below `node`, but for those under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not (isinstance(child, ast.stmt) and _is_type_checking(child)):
            yield from _imports(child)
        elif isinstance(child, ast.If):
            for other in child.orelse:
                yield from _imports(other)


def _imported_by(path: Path, modules: set[str]) -> set[str]:
    """The modules of the package that the file imports."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for statement in _imports(tree(path)):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
            continue
        stem = statement.module or ""
        if statement.level:
            up = package.split(".")[: len(package.split(".")) - statement.level + 1]
            stem = ".".join([*up, stem]).rstrip(".")
        for alias in statement.names:
            below = f"{stem}.{alias.name}"
            found.add(below if below in modules else stem)
    return (found & modules) - {name}


def test_no_import_cycle() -> None:
    modules = {module_name(path) for path in package_files()}
    graph = {module_name(path): _imported_by(path, modules) for path in package_files()}
    assert sum(map(len, graph.values())) > len(graph), "hardly any import was found: this test is blind"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))  # graphlib lists it from the imported to the importing module
        pytest.fail(f"import cycle: {cycle}; move what they share to a lower module")


def test_no_wildcard_import() -> None:
    starred = [
        f"{shown(path)}:{statement.lineno}"
        for path in package_files()
        for statement in _imports(tree(path))
        if any(alias.name == "*" for alias in statement.names)
    ]
    assert not starred, f"import the names that are used: {starred}"
