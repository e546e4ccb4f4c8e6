"""`docs/architecture.md` is one page and has its parts, and documents name only files and folders that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from house.source import PACKAGE, ROOT, entries, package_files, shown

GUIDE = ROOT / "docs" / "architecture.md"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
PARTS = ("The flow", "Layers", "Where to look for ...", "Glossary")
LINES = 150
FOLDERS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
TOP = FOLDERS | {path.name for path in PACKAGE.glob("*.py")}

# a path in backticks: `ir/nodes.py`, `tests/house/`, `.importlinter`; no glob, no placeholder, no address
NAMED = re.compile(r"`([A-Za-z_.][\w.-]*(?:/[\w.-]+)*/?)`")
OURS = {"src", "bench", "tests", "docs", "examples", ".ci"}


def _named_paths(text: str) -> list[str]:
    """The paths of files and folders of ours that a text names in backticks, outside of code blocks.

    A path begins with a folder of the project or of the package, or is a file or folder at the top of either.
    """
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [
        name
        for name in NAMED.findall(prose)
        if name.split("/")[0] in OURS | TOP or ("/" not in name and name.endswith((".py", ".md", ".toml")))
    ]


def _exists(name: str) -> bool:
    """Is there such a file or folder: at the top of the project or the package, or, by a bare name, anywhere in it?"""
    at_top = any((top / name.rstrip("/")).exists() for top in (ROOT, PACKAGE))
    return at_top or ("/" not in name and any(path.name == name for path in package_files()))


def test_the_guide_is_one_page_with_its_parts() -> None:
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LINES, f"{shown(GUIDE)} has {len(lines)} lines (limit {LINES}): it is one page"
    headings = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    missing = [part for part in PARTS if part not in headings]
    assert not missing, f"{shown(GUIDE)} lacks the parts {missing}"


def test_paths_exist() -> None:
    gone = [
        f"{shown(page)}: {name}"
        for page in PAGES
        for name in _named_paths(page.read_text(encoding="utf-8"))
        if not _exists(name)
    ]
    assert not gone, "these do not exist, say where it is now:\n" + "\n".join(gone)


def test_paths_are_found() -> None:
    assert len(_named_paths(GUIDE.read_text(encoding="utf-8"))) > 40
    assert _named_paths("`ir/nodes.py`, `Engine.match`, `a.md`\n```\n`ir/gone.py`\n```\n") == ["ir/nodes.py", "a.md"]
    assert _exists("ir/nodes.py")
    assert not _exists("ir/gone.py")
    assert not _exists("gone.py")


@pytest.mark.parametrize("page", [GUIDE, ROOT / "README.md"], ids=shown)
def test_every_top_folder_is_on_the_map(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = sorted(name for name in FOLDERS if f"`{name}`" not in text and f"`{name}/" not in text)
    assert not missing, f"{shown(page)} does not say what happens in {missing}"


def test_the_layers_are_those_of_the_contract() -> None:
    contract = (ROOT / ".importlinter").read_text(encoding="utf-8").partition("layers =")[2]
    layers = [line.strip().replace("triplewire.", "") for line in contract.splitlines() if line.strip()]
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    missing = [line for line in layers if " ".join(line.split()) not in text]
    assert not missing, f"{shown(GUIDE)} does not show these layers of .importlinter: {missing}"


def test_the_glossary_says_each_word_once() -> None:
    text = GUIDE.read_text(encoding="utf-8").partition("## Glossary")[2]
    words = [word.lower() for word in re.findall(r"^- \*\*([^*]+)\*\*", text, flags=re.MULTILINE)]
    assert len(words) >= 30, f"only {len(words)} words: this test is blind"
    assert len(words) == len(set(words)), "a word stands twice"
    assert words == sorted(words), "the words are in the order of the alphabet"


def test_an_entry_is_what_a_reader_sees() -> None:
    assert {"engine", "errors.py"} <= set(entries(PACKAGE))
    assert "__init__.py" not in entries(PACKAGE)
