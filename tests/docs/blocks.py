"""Finds the code blocks of the project's Markdown files. What is done with them: `test_code_blocks.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language (the first word after the fence), the other words, its text, its first line."""

    path: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}"

    def word(self, name: str) -> str:
        """The value of a word `name=value`, or ""."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), "")


def markdown_files() -> list[Path]:
    """What people read, whose examples must run."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a file, in order."""
    text = path.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        language, *words = match["info"].split() or [""]
        yield Block(path, text.count("\n", 0, match.start()) + 1, language, tuple(words), match["text"])
