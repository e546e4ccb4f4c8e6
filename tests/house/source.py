"""The project's own files, as the house rules see them. The rules are the `test_*.py` files beside this one.

A rule is one test over all files, which names each that breaks it: 5,000 tests, one a file, cost more than what they
look at. Mark a module that asks for `tree` or `nodes` as `READS_TREES`: then one worker parses each file once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "triplewire"
PYTHON_ROOTS = tuple(ROOT / name for name in ("src", "bench", "tests", "examples", "integrations"))
TEXT_ROOTS = (*PYTHON_ROOTS, ROOT / "docs", ROOT / ".ci")
NOT_OURS = {"__pycache__", ".git", ".ruff_cache", ".mypy_cache", "out"}
READS_TREES = pytest.mark.xdist_group("trees")


@cache
def package_files() -> list[Path]:
    """The Python files that are installed."""
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 100, f"{PACKAGE} is not where the package lies: the rules are blind"
    return files


def package_folders() -> list[Path]:
    """The folders of the package, without the top one."""
    return sorted(
        folder
        for folder in PACKAGE.rglob("*")
        if folder.is_dir() and not NOT_OURS.intersection(folder.relative_to(ROOT).parts)
    )


def entries(folder: Path) -> list[str]:
    """The names of the files and folders that a reader sees in a folder, without its `__init__.py`."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.name not in NOT_OURS | {"__init__.py", "py.typed"} and not path.name.startswith(".")
    )


@cache
def python_files() -> list[Path]:
    """All Python files: the package, its tests, the examples."""
    return sorted(file for root in PYTHON_ROOTS for file in root.rglob("*.py"))


def text_files() -> Iterator[Path]:
    """All files that people write: code, tests, cases, documents, build files."""
    for root in TEXT_ROOTS:
        yield from sorted(f for f in root.rglob("*") if f.is_file() and _is_ours(f))
    yield from sorted(f for f in ROOT.iterdir() if f.is_file() and f.name not in NOT_OURS)


def _is_ours(path: Path) -> bool:
    return not NOT_OURS.intersection(path.relative_to(ROOT).parts)


def shown(path: Path) -> str:
    """The path as a reader of a message knows it."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of the syntax tree of a file."""
    return list(ast.walk(tree(path)))


def module_name(path: Path) -> str:
    """The dotted name under which a file of the package is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")
