"""Loading files in place of what is registered: the same subscriptions as loading them anew, and few are touched."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from triplewire.engine import Engine
from triplewire.errors import ArgumentError, Refusal

QUERY = "SELECT * WHERE {{ ?s <urn:p{0}> ?o . ?s <urn:q> <urn:o{1}> . }}"
RULE = "search {0} s register s where s.<urn:memory> > {1}"
Rows = dict[str, tuple[str, str]]

BEFORE: Rows = {
    **{f"q{n}": ("sparql", QUERY.format(n % 3, n)) for n in range(12)},
    "base": ("mdv", RULE.format("<urn:Server>", 5)),
    "over": ("mdv", RULE.format("base", 9)),
}
CHANGES: dict[str, tuple[Rows, tuple[int, int, int]]] = {
    "nothing": ({}, (0, 2, 0)),  # rules are taken anew
    "another text": ({"q3": ("sparql", QUERY.format(9, 9))}, (0, 3, 0)),
    "new": ({"q99": ("sparql", QUERY.format(1, 1))}, (1, 2, 0)),
    "gone": ({"q4": ("", "")}, (0, 2, 1)),
    "refused": ({"q5": ("sparql", "SELECT * {")}, (0, 2, 1)),
    "a rule that another names": ({"base": ("mdv", RULE.format("<urn:Client>", 5))}, (0, 2, 0)),
    "a rule that another named is gone": ({"base": ("", "")}, (0, 1, 1)),  # the other one names a class then
}
"""What a file has of other rows ("" for none), and how many subscriptions are new, changed and gone."""


def _file(path: Path, rows: Rows) -> Path:
    stated: Iterable[dict[str, str]] = (
        {"id": id, "language": language, "query": query} for id, (language, query) in rows.items() if language
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in stated), "utf-8")
    return path


@pytest.mark.parametrize("matcher", ["trie", "reference"])
@pytest.mark.parametrize("change", CHANGES)
def test_as_loading_anew(change: str, matcher: str, tmp_path: Path) -> None:
    rows, counts = CHANGES[change]
    before, after = _file(tmp_path / "before.jsonl", BEFORE), _file(tmp_path / "after.jsonl", {**BEFORE, **rows})
    engine, anew = Engine(matcher=matcher), Engine(matcher=matcher)
    refused: list[list[Refusal]] = [[], []]
    engine.load_subscriptions(before)
    count = engine.load_subscriptions(after, replace=True, on_refusal=refused[0].append)
    anew.load_subscriptions(after, on_refusal=refused[1].append)
    assert refused[0] == refused[1]
    assert (count.new, count.changed, count.gone) == counts
    assert {each.id: each for each in engine.subscriptions} == {each.id: each for each in anew.subscriptions}


def test_a_part_does_not_take_the_place_of_all(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="ids"):
        Engine().load_subscriptions(_file(tmp_path / "a.jsonl", BEFORE), ids=["q1"], replace=True)
