"""The examples in the Markdown files run.

* `python`: the blocks of a file run one after the other, in an empty folder that has the project's `examples`.
  `needs=MODULE` after the language: the block is passed over where that module is not installed.
* `sh`, `console`: every `triplewire ...` command runs and must end well; Spark's commands have tests of their own, and
  so have blocks that are `sh service` (`test_service_blocks.py`).
* `sparql`, `gql`, `mdv`, `predicates`, `keywords`: the query matches what the last `turtle` block above it publishes.
  `miss` after the language: it does not. `refused`: it is refused. `base=IRI`: the base that names resolve against.
* `turtle taxonomy`: the taxonomy of the queries below it.
"""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path

import pytest

from cli.runner import triplewire
from docs.blocks import ROOT, Block, blocks, markdown_files
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.read import read
from triplewire.read.taxonomy import load_taxonomy

QUERIES = ("sparql", "gql", "rdql", "mdv", "predicates", "keywords")
ELSEWHERE = ("pipeline", "backtest", "serve")
ALL = [block for path in markdown_files() for block in blocks(path)]


def _last_above(block: Block, *words: str) -> Block | None:
    above = [
        b for b in ALL if b.path == block.path and b.line < block.line and b.language == "turtle" and b.words == words
    ]
    return above[-1] if above else None


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("block", [block for block in ALL if block.language in QUERIES], ids=str)
def test_query(block: Block, tmp_path: Path) -> None:
    publication, taxonomy = _last_above(block), _last_above(block, "taxonomy")
    assert publication is not None, "a query example needs a turtle block above it"
    classes = None
    if taxonomy is not None:
        file = tmp_path / "taxonomy.ttl"
        file.write_text(taxonomy.text, encoding="utf-8")
        classes = load_taxonomy(file)
    engine = Engine(taxonomy=classes)
    if "refused" in block.words:
        with pytest.raises(TriplewireError):
            engine.subscribe(block.text, block.language, id="example", base=block.word("base"))
        return
    engine.subscribe(block.text, block.language, id="example", base=block.word("base"))
    found = list(engine.match(read(publication.text.encode())))
    assert len(found) == (0 if "miss" in block.words else 1)


@pytest.mark.parametrize(
    "path", [p for p in markdown_files() if any(b.language == "python" for b in blocks(p))], ids=str
)
def test_python(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for block in blocks(path):
        needed = block.word("needs")
        if block.language == "python" and (not needed or importlib.util.find_spec(needed) is not None):
            exec(compile("\n" * block.line + block.text, str(block), "exec"), names)


RUN_ELSEWHERE = {"service", "metadata"}
"""Words of blocks whose commands need each other: `test_service_blocks.py`, `test_metadata_page.py`."""


def _commands(block: Block) -> list[list[str]]:
    """The `triplewire` commands of a block; a line that ends in a backslash goes on."""
    lines = block.text.replace("\\\n", " ").splitlines()
    parted = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if "triplewire" in line]
    return [words for words in parted if words[:1] == ["triplewire"] and words[1] not in ELSEWHERE]


@pytest.mark.parametrize(
    "block",
    [b for b in ALL if b.language in ("sh", "console") and not RUN_ELSEWHERE & {*b.words} and _commands(b)],
    ids=str,
)
def test_commands(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for _, *arguments in _commands(block):
        done = triplewire(*arguments)
        assert done.code == 0, f"triplewire {shlex.join(arguments)}\n{done.out}{done.err}"


def test_examples_were_found() -> None:
    """The reference of the languages shows each of them, and what each refuses or misses."""
    shown = [block for block in ALL if block.path == ROOT / "docs" / "languages.md"]
    for language in QUERIES:
        assert sum(block.language == language for block in shown) >= 3, f"docs/languages.md shows too little {language}"
