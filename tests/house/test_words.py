"""What stands in no file: homes for the homeless, unfinished business, one machine's places, doors for foreign code.

Nor do names that say nothing of what they hold.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from house.source import READS_TREES, nodes, package_files, python_files, shown, text_files

pytestmark = READS_TREES

HOMELESS = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}

UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))|\bNotImplementedError\b")

# written in pieces, so that this file passes its own test
MACHINE = re.compile(
    "|".join(
        (
            r"(?<![\w.:/-])/(?:ho" r"me|ro" r"ot|Us" r"ers|wo" r"rk)/[\w.-]+",
            r"/tm" r"p/la" r"b\b",
            r"\b[A-Z]:\\\\?Us" r"ers",
            r"\bpy" r"pi\.org|\bpython" r"hosted\.org|\brepo1?\.ma" r"ven|\bart" r"ifactory|\bind" r"ex-url\b",
        )
    )
)

FROM_AN_INDEX = re.compile(r"\binstall +['\"]?triple" r"wire\b")

# imports that run code found in data; each exception with its reason
FOREIGN_CODE = {"pickle", "shelve", "marshal", "dill", "cloudpickle", "code", "codeop"}
ALLOWED_FOREIGN: dict[str, str] = {
    "src/triplewire/engine/part_loading.py": "reads what processes of one load have written to a folder that is theirs",
    "src/triplewire/engine/part_processes.py": "reads what the process has written that started this one",
    "src/triplewire/languages/sources/files.py": "reads what this process has written to a file without a name",
    "src/triplewire/operators/files.py": "runs the file of operators that the user names, as an import would",
    "src/triplewire/operators/calling/isolated.py": "writes an operator of this process for a worker of this process",
    "src/triplewire/operators/calling/process.py": "writes calls for a worker of this process",
    "src/triplewire/operators/calling/worker.py": "reads what the process that started it writes, and nothing else",
}
RUNS_TEXT = {"eval", "exec", "__import__"}


def test_files_have_a_proper_home() -> None:
    homeless = [shown(path) for path in python_files() if path.name in HOMELESS]
    assert not homeless, f"name a file by what it holds: {homeless}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []  # compressed or broken on purpose: nobody reads it as text


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{shown(path)}:{number}: {line.strip()[:100]}"
        for path in python_files()
        if path.name != Path(__file__).name
        for number, line in enumerate(_lines(path), 1)
        if UNFINISHED.search(line)
    ]
    assert not found, "finish it, or open an issue and write TODO(#number):\n" + "\n".join(found)


def test_no_place_of_one_machine() -> None:
    seen, found = 0, []
    for path in text_files():
        for number, line in enumerate(_lines(path), 1):
            seen += 1
            if MACHINE.search(line):
                found.append(f"{shown(path)}:{number}: {line.strip()[:100]}")
    assert seen > 1_000, "hardly a line was read: this test is blind"
    assert not found, "a path or host that only one machine has:\n" + "\n".join(found)


def test_no_package_index_is_needed() -> None:
    """Until there is a release, what is to be installed is a copy of the sources: `pip install '.[spark]'`."""
    found = [
        f"{shown(path)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(_lines(path), 1)
        if FROM_AN_INDEX.search(line)
    ]
    assert not found, "write pip install '.[...]', in a copy of the sources:\n" + "\n".join(found)


def _foreign(node: ast.AST) -> list[str]:
    """What of a statement or call can run code that is found in data."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        names = [node.func.id] if node.func.id in RUNS_TEXT else []
    return [name for name in names if name.split(".")[0] in FOREIGN_CODE | RUNS_TEXT]


def test_no_door_for_foreign_code() -> None:
    doors = [
        f"{shown(path)}:{getattr(node, 'lineno', 0)}: {name}"
        for path in package_files()
        if shown(path) not in ALLOWED_FOREIGN
        for node in nodes(path)
        for name in _foreign(node)
    ]
    assert not doors, "these can run foreign code:\n" + "\n".join(doors)


def test_doors_for_foreign_code_are_seen() -> None:
    source = "import re, pickle\nfrom marshal import loads\neval('1')\nint('1')"
    seen = [name for node in ast.walk(ast.parse(source)) for name in _foreign(node)]
    assert sorted(seen) == ["eval", "marshal", "pickle"]


# names that say nothing of what a variable holds
EMPTY_WORDS = {"found", "some", "one", "kept", "lazy"}


def _named(node: ast.AST) -> str:
    """The name that a node gives to a variable, a parameter, a field or a function; "" for any other node."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.Attribute):
        return node.attr if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.FunctionDef | ast.ClassDef):
        return node.name or ""
    return ""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1", {"found"}),
        ("def f(a, *, some): pass", {"f", "a", "some"}),
        ("def f():\n    for one, b in (): pass", {"f", "one", "b"}),
        ("[lazy for lazy in ()]", {"lazy"}),
        ("if kept := 1: pass", {"kept"}),
        ("class C:\n    found: int", {"C", "found"}),
        ("self.kept = found", {"kept"}),
        ("match 1:\n    case [some, *one]: pass", {"some", "one"}),
    ],
)
def test_names_are_seen(source: str, names: set[str]) -> None:
    assert {_named(node) for node in ast.walk(ast.parse(source))} - {""} == names


def test_names_say_what_they_hold() -> None:
    empty = [
        f"{shown(path)}:{getattr(node, 'lineno', 0)}: {_named(node)}"
        for path in package_files()
        for node in nodes(path)
        if _named(node) in EMPTY_WORDS
    ]
    assert not empty, (
        "these names say that there is something, not what it is: name what it holds, in a word of the glossary in "
        "docs/architecture.md\n" + "\n".join(empty)
    )
