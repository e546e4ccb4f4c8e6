"""A file is read at one sitting, a folder is a concept, and a name in the listing says one thing."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

from house.source import PACKAGE, READS_TREES, ROOT, entries, nodes, package_files, package_folders, python_files, shown

pytestmark = READS_TREES

FILE_LINES = 600
FUNCTION_LINES = 60
DEPTH = 3
SAME_NAMES = ROOT / "tests/cases/house/same_names.toml"


def _too_long(path: Path) -> list[str]:
    """What of a file is too long: the file, functions in it."""
    count = len(path.read_text(encoding="utf-8").splitlines())
    long = [f"{shown(path)} has {count} lines (limit {FILE_LINES})"] if count > FILE_LINES else []
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                long.append(f"{shown(path)}:{node.lineno}: {node.name} has {length} lines (limit {FUNCTION_LINES})")
    return long


def test_files_and_functions_are_short() -> None:
    long = [told for path in python_files() for told in _too_long(path)]
    assert not long, "split by concept, not by size:\n" + "\n".join(long)


def test_folders_are_not_deep_and_hold_something() -> None:
    folders = package_folders()
    deep = [shown(folder) for folder in folders if len(folder.relative_to(PACKAGE).parts) > DEPTH]
    assert not deep, f"more than {DEPTH} folders deep, merge them into those above: {deep}"
    empty = [shown(folder) for folder in folders if not entries(folder) and any(folder.iterdir())]
    assert not empty, f"these hold nothing but their `__init__.py`: {empty}"


def _room(path: Path) -> str:
    """Within which group of files a name has to stand once: kernels and commands have the names of what they serve."""
    parts = path.relative_to(PACKAGE).parts[:-1]
    return "kernels" if "kernels" in parts else "commands" if "cli" in parts else "modules"


def _repeated(paths: list[Path]) -> dict[str, set[str]]:
    """By room, the names of modules that stand there more than once."""
    counts = Counter((_room(path), path.stem) for path in paths if not path.stem.startswith("__"))
    return {room: {name for (of, name), count in counts.items() if of == room and count > 1} for room, _ in counts}


def test_a_name_of_a_file_says_one_thing() -> None:
    known = tomllib.loads(SAME_NAMES.read_text(encoding="utf-8"))
    repeated = _repeated(package_files())
    for room in {*known, *repeated}:
        reasons, names = known.get(room, {}), repeated.get(room, set())
        new, gone = sorted(names - set(reasons)), sorted(set(reasons) - names)
        assert not new, (
            f"{room}: files of one name: {new}; rename them, or say in {shown(SAME_NAMES)} what all of them are"
        )
        assert not gone, f"{shown(SAME_NAMES)}, [{room}]: these stand once by now: {gone}; take them out"
        assert all(reasons.values()), f"{shown(SAME_NAMES)}, [{room}]: a name without a reason"


def test_files_of_one_name_are_seen() -> None:
    paths = [
        PACKAGE / name for name in ("a/x.py", "b/x.py", "kernels/b/x.py", "cli/x.py", "a/__init__.py", "__init__.py")
    ]
    assert _repeated(paths) == {"modules": {"x"}, "kernels": set(), "commands": set()}


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Pytest imports them by their names alone, and collects but the first of two."""
    counts = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert {name for name, count in counts.items() if count > 1} == set()
