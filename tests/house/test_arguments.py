"""A function takes at most 12 arguments: what belongs together is a named tuple, or an object."""

from __future__ import annotations

import ast

from house.source import READS_TREES, nodes, package_files, shown

pytestmark = READS_TREES

ARGUMENTS = 12


def _count(node: ast.AST) -> int:
    """How many arguments a function takes; 0 for what is no function."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return 0
    return sum(map(len, (node.args.posonlyargs, node.args.args, node.args.kwonlyargs)))


def test_functions_take_few_arguments() -> None:
    many = [
        f"{shown(path)}:{getattr(node, 'lineno', 0)}: {getattr(node, 'name', 'lambda')} takes {_count(node)} arguments"
        for path in package_files()
        for node in nodes(path)
        if _count(node) > ARGUMENTS
    ]
    assert not many, f"more than {ARGUMENTS}, group them:\n" + "\n".join(many)


def test_arguments_are_counted() -> None:
    assert max(map(_count, ast.walk(ast.parse("lambda a, /, b, *c, d, **e: 1")))) == 3
