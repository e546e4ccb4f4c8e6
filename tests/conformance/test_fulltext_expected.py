"""300 full-text expressions over 5,603 real texts have exactly the stated matches.

The data, its semantics and its origin: the folder `06-fulltext` of the shared data. The expressions are evaluated by
`triplewire.ir.fulltext` directly; as texts of SPARQL they compile to the same trees.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import pytest

from amounts import usually
from shared_data import lines, members
from triplewire.ir.fulltext import satisfies
from triplewire.ir.nodes import FullText, Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word
from triplewire.ir.walk import walk
from triplewire.languages import parse

COUNT = usually(100, 300)
STEP = 5_700 // COUNT  # the kinds of expression come round every 10 lines, so no divisor of that
PARTS = usually(2, 6)


@cache
def texts() -> dict[str, str]:
    """Id to text: 5,000 abstracts and 603 articles, the longest of 14,254 words."""
    found = dict(abstracts())
    for name, content in members("06-fulltext/wikipedia-docs.tar.gz"):
        if PurePosixPath(name).name != "LICENSE.md":
            found[f"doc/{PurePosixPath(name).name}"] = content.decode("utf-8")
    assert len(found) == 5_603
    return found


def abstracts() -> Iterator[tuple[str, str]]:
    rows = lines("01-dbpedia/abstracts-14class.tsv.gz")
    next(rows)  # the header
    for row in rows:
        cells = row.rstrip("\n").split("\t")
        yield cells[0], cells[-1]


@cache
def expected() -> list[dict[str, Any]]:
    """Every nineteenth of the 6,000 expressions in `make full`, else every 57th, of all kinds."""
    return [json.loads(line) for line in islice(lines("06-fulltext/ft-expressions.jsonl.gz"), 0, COUNT * STEP, STEP)]


def compiled(expression: list[Any]) -> TextExpression:
    """The data set's notation as a tree."""
    kind, *rest = expression
    match kind:
        case "word":
            return Word(rest[0])
        case "prefix":
            return Prefix(rest[0])
        case "phrase":
            return Phrase(tuple(map(Word, rest)))
        case "near":
            return Near((Word(rest[0]), Word(rest[1])), ((rest[2], rest[3]),), (True,))
        case "not":
            return TextNot(compiled(rest[0]))
        case "and" | "or":
            return (TextAnd if kind == "and" else TextOr)(tuple(map(compiled, rest)))
    raise AssertionError(f"the data has a new kind of expression: {kind}")


@pytest.mark.parametrize("part", range(PARTS))
def test_the_matches_are_those_stated(part: int) -> None:
    wrong = []
    for row in expected()[part::PARTS]:
        expression = compiled(row["expr"])
        found = sorted(key for key, text in texts().items() if satisfies(expression, text))
        sha = hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]
        if (len(found), sha) != (row["matches"], row["sha"]):
            wrong.append((row["id"], row["expr"], row["matches"], len(found)))
    assert not wrong


def written(expression: list[Any]) -> str:
    """The data set's notation as a text."""
    kind, *rest = expression
    match kind:
        case "word":
            return f'"{rest[0]}"'
        case "prefix":
            return f'"{rest[0]}*"'
        case "phrase":
            return f'"{" ".join(rest)}"'
        case "near":
            return f'("{rest[0]}" ftNEAR[{rest[2]},{rest[3]}] "{rest[1]}")'
        case "not":
            return f"ftNOT {written(rest[0])}"
    return "(" + f" ft{kind.upper()} ".join(map(written, rest)) + ")"


def test_the_texts_compile_to_the_same_trees() -> None:
    for row in expected():
        text = f"SELECT * {{ ?s ?p ?t FILTER ftcontains(?t, {written(row['expr'])}) }}"
        found = [node.expression for node in walk(parse(text, "sparql").where) if isinstance(node, FullText)]
        assert found == [compiled(row["expr"])]


def test_the_sample_has_every_kind_of_expression() -> None:
    def kinds(expression: list[Any]) -> set[str]:
        return {expression[0]}.union(*(kinds(part) for part in expression[1:] if isinstance(part, list)))

    found = set().union(*(kinds(row["expr"]) for row in expected()))
    assert found >= {"word", "and", "or", "not", "phrase", "near"}
    assert len(expected()) == COUNT
