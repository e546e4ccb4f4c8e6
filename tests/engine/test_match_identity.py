"""Matches as members of sets, and what is said where an engine or a result is pickled or copied."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from engine.samples import item
from triplewire import Engine


def filled() -> Engine:
    engine = Engine()
    engine.subscribe("SELECT ?t { ?s rss:title ?t }", id="titles")
    engine.subscribe("ASK { ?s rss:title ?t }", id="any")
    return engine


def test_equal_matches_are_one_in_a_set() -> None:
    engine = filled()
    first, again = engine.match(item("p", "one")), engine.match(item("p", "one"))
    assert len({*first, *again}) == 2
    assert {match.identity for match in first} == {match.identity for match in again}
    (titles,) = (match for match in first if match.subscription == "titles")
    assert titles.identity == ("p", titles.content, "titles", titles.revision)
    assert pickle.loads(pickle.dumps(titles)) == titles


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy, copy.copy])
def test_what_is_not_copied_says_what_to_do(copied: Callable[[object], object]) -> None:
    engine = filled()
    with pytest.raises(TypeError, match=r"save\(path\) and Engine.load\(path\)"):
        copied(engine)
    with pytest.raises(TypeError, match=r"list\(result\)"):
        copied(engine.match(item("p", "one")))
