"""The order of calls changes how many there are, never an answer: all orders against the reference matcher."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import pytest

from operators.called_queries import publications
from operators.order.conjoined_queries import ConjoinedWriter
from operators.scenes import Counting, engine, fixed
from triplewire import Publication, Settings
from triplewire.errors import TriplewireError
from triplewire.operators.order import ORDERS

QUERIES, PUBLICATIONS = 200, 8

Query: TypeAlias = tuple[str, str]  # language, text


class Answers(NamedTuple):
    """What an engine said: matches with their bindings, undecided pairs, and how often each call was made."""

    matches: dict[tuple[str, str], tuple[bool, list[str]]]
    undecided: set[tuple[str, str]]
    calls: Counter[Any]


def answers(
    queries: Sequence[tuple[str, str]], data: Sequence[Publication], counting: Counting, **given: Any
) -> Answers:
    """The answers of a new engine. `given`: the matcher and what else is said to it."""
    counting.asked.clear()
    matching = engine(given.pop("matcher", "trie"), counting, **given)
    for number, (language, query) in enumerate(queries):
        matching.subscribe(query, language, id=f"s{number:03}")
    result = matching.match(data)
    if "operator_order" in given:  # before the bindings, which may need more calls
        list(result.refusals)
        assert result.stats.operators.calls == counting.asked.total()
        by_name = Counter(name for _, name, _ in counting.asked.elements())
        assert {name: own["calls"] for name, own in result.stats.operators.by_name.items()} == by_name
    matches = {
        (match.publication, match.subscription): (
            match.truncated,
            sorted(repr(sorted(binding.items())) for binding in match.bindings),
        )
        for match in result
    }
    undecided = {(words[0], words[-1]) for words in (refusal.subject.split() for refusal in result.refusals)}
    return Answers(matches, undecided, Counter(counting.asked))


def scene(seed: int) -> tuple[list[Query], list[Publication], Counting]:
    """Queries that can be subscribed to, publications, and operators."""
    chance, counting = random.Random(seed), fixed(seed)
    writer, checking = ConjoinedWriter(chance), engine("reference", counting)
    queries: list[Query] = []
    while len(queries) < QUERIES:
        language, query = writer.query()
        try:
            checking.subscribe(query, language)
        except TriplewireError:
            continue  # such as a variable that BIND would bind again
        queries.append((language, query))
    return queries, publications(chance, PUBLICATIONS), counting


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("subscriptions", [2, 10_000], ids=["many segments", "one segment"])
def test_all_orders_give_the_answers_of_the_reference(seed: int, subscriptions: int) -> None:
    queries, data, counting = scene(seed)
    expected = answers(queries, data, counting, matcher="reference")
    assert len(expected.matches) > 50
    assert len(expected.undecided) > 20
    settings = Settings(merge_subscriptions=subscriptions)
    for order in ORDERS:
        given = answers(queries, data, counting, operator_order=order, settings=settings)
        assert given.matches == expected.matches, order
        assert given.undecided == expected.undecided, order
        assert set(given.calls.values()) == {1}, order
