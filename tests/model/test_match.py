"""Matches that look their fields up are those made with them; the bindings that matches share stay as they are."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from triplewire.model.match import KnownOrigin, Match, SharedBinding, matches_of
from triplewire.model.terms import IRI, Literal, Triple

BINDING = SharedBinding(x=IRI("http://e/a"), y=Literal("1"))
NOW = dt.datetime(2024, 5, 6, tzinfo=dt.UTC)
GRAPH = (Triple(IRI("http://e/a"), IRI("http://e/p"), Literal("1")),)


@dataclasses.dataclass
class Rows:
    """A source of matches that knows all of them."""

    rows: list[tuple[str, tuple[Any, ...], bool, Any, Any]]
    matched_at: dt.datetime | None = NOW

    def publication(self, row: int) -> str:
        return self.rows[row][0]

    def bindings(self, row: int) -> tuple[Any, ...]:
        return self.rows[row][1]

    def truncated(self, row: int, bindings: tuple[Any, ...]) -> bool:
        assert bindings == self.rows[row][1]
        return self.rows[row][2]

    def construct(self, row: int, bindings: tuple[Any, ...]) -> Any:
        assert bindings == self.rows[row][1]
        return self.rows[row][3]

    def origin(self, row: int) -> Any:
        return self.rows[row][4]


def test_a_match_that_looks_its_fields_up_is_a_match() -> None:
    source = Rows([("p", (BINDING,), False, None, None), ("q", (), True, GRAPH, KnownOrigin("c", "r"))])
    made = list(matches_of(source, ["s", "t"], [None, None]))
    assert list(matches_of(source, ["t"], [()], first=1)) == made[1:]
    assert made == [Match("p", "s", (BINDING,), False, NOW), Match("q", "t", (), True, NOW, GRAPH)]
    assert [match.matched_at for match in made] == [NOW, NOW]
    assert made[0] == Match("p", "s", ({"x": IRI("http://e/a"), "y": Literal("1")},))
    for match in made:
        assert type(match) is Match
        assert pickle.loads(pickle.dumps(match)) == copy.deepcopy(match) == match
        assert dataclasses.replace(match, publication="r") == Match(
            "r", match.subscription, match.bindings, match.truncated, NOW, match.construct
        )
        with pytest.raises(dataclasses.FrozenInstanceError):
            match.publication = "r"  # type: ignore[misc]
    assert [(match.content, match.revision) for match in made] == [("", ""), ("c", "r")]
    assert pickle.loads(pickle.dumps(made[1])).to_json() == made[1].to_json()
    assert repr(made[0]) == """<Match 's' matches 'p': 1 binding, ?x = <http://e/a>, ?y = "1">"""
    assert hash(made[1]) == hash(Match("q", "t", (), True, None, GRAPH))


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(x=1),
        lambda one: one.pop("x"),
        lambda one: one.popitem(),
        lambda one: one.clear(),
        lambda one: one.setdefault("z", 1),
        lambda one: one.__setitem__("x", 1),
        lambda one: one.__delitem__("x"),
        lambda one: one.__ior__({"z": 1}),
    ],
)
def test_a_shared_binding_cannot_be_changed(change: Callable[[Any], object]) -> None:
    before = dict(BINDING)
    with pytest.raises(TypeError, match="cannot be changed"):
        change(BINDING)
    assert before == BINDING


def test_a_shared_binding_is_a_dictionary() -> None:
    plain = {"x": IRI("http://e/a"), "y": Literal("1")}
    for one in (BINDING, pickle.loads(pickle.dumps(BINDING)), copy.copy(BINDING), copy.deepcopy(BINDING)):
        assert one == plain
        assert list(one) == ["x", "y"]
        assert type(one) is SharedBinding
    assert repr(BINDING) == repr(plain)
    assert json.dumps(SharedBinding()) == "{}"
    changed = dict(BINDING)
    changed["z"] = IRI("http://e/z")
    assert len(BINDING) == 2
