"""Matches made in bulk are those made one by one; the bindings that matches share stay as they are."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import pickle
from collections.abc import MutableMapping
from typing import Any

import pytest

from triplewire.model.match import Match, SharedBinding, matches_of, shared_bindings
from triplewire.model.terms import IRI, Literal, Triple

(BINDING,) = shared_bindings(("x", "y"), [(IRI("http://e/a"), Literal("1"))])
NOW = dt.datetime(2024, 5, 6, tzinfo=dt.UTC)
GRAPH = (Triple(IRI("http://e/a"), IRI("http://e/p"), Literal("1")),)


def test_a_match_made_in_bulk_is_a_match() -> None:
    rows: list[Any] = [("p", "s", (BINDING,), False, None), ("q", "t", (), True, GRAPH)]
    made = list(matches_of(rows, NOW))
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
    assert repr(made[0]).startswith("Match(publication='p', subscription='s', bindings=({'x': IRI(value='http://e/a')")
    assert hash(made[1]) == hash(Match("q", "t", (), True, None, GRAPH))


def test_a_shared_binding_cannot_be_changed() -> None:
    one: Any = BINDING
    with pytest.raises(TypeError):
        one["x"] = IRI("http://e/b")
    with pytest.raises(TypeError):
        del one["x"]
    assert not isinstance(one, MutableMapping)
    changed = dict(one)
    changed["z"] = IRI("http://e/z")
    one.items()  # a copy, whatever is done to it
    assert len(one) == 2


def test_a_shared_binding_is_what_a_dictionary_is() -> None:
    plain = {"x": IRI("http://e/a"), "y": Literal("1")}
    for one in (BINDING, pickle.loads(pickle.dumps(BINDING, 0)), copy.copy(BINDING), copy.deepcopy(BINDING)):
        assert type(one) is SharedBinding
        assert one == plain
        assert plain == one
        assert one == BINDING
        assert list(one) == list(one.keys()) == ["x", "y"]
        assert one.items() == plain.items()
        assert list(one.values()) == list(plain.values())
        assert one["y"] == one.get("y") == Literal("1")
        assert [name in one for name in "xyz"] == [True, True, False]
        assert one.get("z") is None
        with pytest.raises(KeyError, match="z"):
            one["z"]
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)
    assert repr(BINDING) == repr(plain)
    match BINDING:
        case {"x": IRI(value)}:
            assert value == "http://e/a"
        case _:
            pytest.fail("not a mapping")


def test_shared_bindings_are_equal_whatever_the_order_of_their_names() -> None:
    (turned, other) = shared_bindings(
        ("y", "x"), [(Literal("1"), IRI("http://e/a")), (Literal("2"), IRI("http://e/a"))]
    )
    assert turned == BINDING != other
    assert list(shared_bindings((), [()])) == [{}]
    assert BINDING != ("x", "y")
