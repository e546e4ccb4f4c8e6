"""Calls are counted: index and joins come first, and each call is made once for all subscriptions of a match."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from operators.scenes import Counting, E, engine, publication, usual
from triplewire import Publication, Settings
from triplewire.model.terms import Literal

MATCHERS = ["reference", "trie"]


def asked(counting: Counting) -> dict[tuple[str, str], int]:
    """How many calls of each operator each publication had."""
    out: dict[tuple[str, str], int] = {}
    for (id_, name, _), count in counting.asked.items():
        out[id_, name] = out.get((id_, name), 0) + count
    return out


@pytest.mark.parametrize("settings", [Settings(), Settings(merge_subscriptions=16)], ids=["one segment", "several"])
def test_operators_keep_the_index(settings: Settings) -> None:
    """A pattern that few publications have, beside a call: few pairs are looked at, and few calls are made."""
    counting = usual()
    one = engine("trie", counting, settings=settings)
    for number in range(300):
        query = f'SELECT * {{ ?e <{E}kind> "{number % 100}" FILTER op:yes("{number % 3}") }}'
        one.subscribe(query, id=f"s{number:03}")
    some = [publication(f"urn:p{n}", f"e{n} kind {n % 50}", f"e{n} other {n}") for n in range(200)]
    result = one.match(some)
    assert len(result) == 200 * 3
    assert result.stats.candidates <= 2 * len(result)
    assert result.stats.verified <= 2 * len(result)
    assert max(asked(counting).values()) <= 3
    assert set(counting.asked.values()) == {1}


@pytest.mark.parametrize("matcher", MATCHERS)
def test_one_call_for_all_subscriptions_and_languages(matcher: str) -> None:
    counting = usual()
    one = engine(matcher, counting)
    one.subscribe(f"SELECT * {{ ?e <{E}p> ?x CALL yes(1) }}", id="sparql")
    one.subscribe(f"ASK {{ ?e <{E}p> ?x FILTER op:yes('1') }}", id="ask")
    one.subscribe("yes(1), yes(2)", "predicates", id="predicates")
    one.subscribe(f"SELECT ?e WHERE (?e, <{E}p>, ?x) AND CALL yes(1)", "gql", id="gql")
    some = [publication(f"urn:p{n}", "a p 1") for n in range(3)]
    result = one.match(some)
    literal = Literal("1")
    sparql = {key for key in counting.asked if key[2] != (literal,) and key[2] != (Literal("2"),)}
    assert len(list(result)) == 4 * 3
    assert [len(match.bindings) for match in result] == [1] * 12
    assert set(counting.asked.values()) == {1}
    assert len(sparql) == 3  # SPARQL's 1 is an integer, the other languages' a plain literal
    assert len(counting.asked) == 3 * 3
    one.match(some)
    assert set(counting.asked.values()) == {2}, "nothing is kept from one match call to the next"


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * {{ ?e <{E}nothing> ?x CALL yes(?x) }}",
        f"SELECT * {{ ?e <{E}p> ?x FILTER(?x = '2') CALL yes(?x) }}",
        f"SELECT * {{ ?e <{E}p> ?x . ?x <{E}p> ?y CALL yes(?x) }}",
        f"SELECT * {{ ?e <{E}p> ?x FILTER(op:yes(?x) && ?x = '2') }}",
        f"SELECT * {{ ?e <{E}p> ?x MINUS {{ ?e <{E}p> ?x }} CALL yes(?x) }}",
        f"SELECT * {{ ?e <{E}p> ?x FILTER(op:yes(?x) || ?x = '1') }}",
        f"SELECT ?e {{ ?e <{E}p> ?x OPTIONAL {{ ?e <{E}q> ?y CALL yes(?y) }} }}",
    ],
)
def test_what_is_cheap_decides_first(matcher: str, query: str) -> None:
    counting = usual()
    one = engine(matcher, counting)
    one.subscribe(query)
    one.match(publication("urn:p", "a p 1", "b q 2"))
    assert not counting.asked


@pytest.mark.parametrize("matcher", MATCHERS)
def test_the_first_call_that_does_not_hold_is_the_last(matcher: str) -> None:
    counting = usual()
    one = engine(matcher, counting)
    one.subscribe("yes(1), no(1), yes(2), yes(3)", "predicates")
    one.match(publication("urn:p"))
    assert [name for _, name, _ in counting.asked] == ["yes", "no"]


@pytest.mark.parametrize("matcher", MATCHERS)
def test_refusals_for_undecided_pairs_only(matcher: str) -> None:
    counting = usual()
    one = engine(matcher, counting)
    one.subscribe("bad(1), yes(1)", "predicates", id="undecided")
    one.subscribe("bad(1), no(1)", "predicates", id="none")
    one.subscribe(f"SELECT ?x {{ {{ ?s <{E}p> ?x }} UNION {{ ?s <{E}q> ?x CALL bad(?x) }} }}", id="match")
    result = one.match(publication("urn:p", "a p 1", "a q 2"))
    (match,) = result
    assert (match.subscription, match.truncated) == ("match", True)
    assert [binding["x"] for binding in match.bindings] == [Literal("1")]
    (refusal,) = result.refusals
    assert (refusal.kind, refusal.subject) == ("pair", "urn:p undecided")
    assert refusal.reason == "the operator bad failed: RuntimeError: no answer"
    assert set(counting.asked.values()) == {1}


class Unsaid(Exception):
    """An exception that has no text."""

    def __str__(self) -> str:
        raise RuntimeError


RAISED = [SystemExit(0), SystemExit(3), KeyboardInterrupt("x"), asyncio.CancelledError("x"), GeneratorExit(), Unsaid()]


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize("raised", RAISED, ids=lambda raised: type(raised).__name__)
def test_whatever_is_raised_costs_that_call_only(matcher: str, raised: BaseException, at_once: int) -> None:
    counting = usual()

    class Ends:
        name, parameters, concurrency = "ends", (), at_once

        def evaluate(self, publication: Publication, arguments: tuple[Any, ...]) -> bool:
            """See `Operator`."""
            raise raised

    counting.operators["ends"] = Ends()
    one = engine(matcher, counting)
    one.subscribe("yes(1)", "predicates", id="match")
    one.subscribe("ends()", "predicates", id="undecided")
    result = one.match(publication("urn:p"))
    assert [match.subscription for match in result] == ["match"]
    (refusal,) = result.refusals
    assert refusal.reason.startswith(f"the operator ends failed: {type(raised).__name__}")
    assert type(raised).__name__ in str(one.explain("undecided", publication("urn:p")))


@pytest.mark.parametrize("matcher", MATCHERS)
def test_each_of_many_values_is_asked_about_once(matcher: str) -> None:
    counting = usual()

    def odd(given: Publication, arguments: tuple[Any, ...]) -> bool:
        return bool(int(arguments[0].lexical) % 2)

    counting.add("odd", odd)
    one = engine(matcher, counting)
    one.subscribe(f"SELECT ?x {{ ?s <{E}p> ?x FILTER op:odd(?x) }}")
    (match,) = one.match(publication("urn:p", *(f"a p {number}" for number in range(400))))
    assert len(match.bindings) == 200
    assert len(counting.asked) == 400
    assert set(counting.asked.values()) == {1}
