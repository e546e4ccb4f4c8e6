"""Every matcher gives the answers of the reference meaning."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amounts import MATCHERS, examples
from engine.generated import WORLD, groups, publications
from solutions import wrong_rows
from triplewire import Engine, Publication, UnsupportedQuery
from triplewire.ir.evaluation.evaluate import evaluate
from triplewire.ir.nodes import And
from triplewire.ir.subscription import Subscription


def engine_of(matcher: str) -> Engine:
    return Engine(matcher=matcher, taxonomy=WORLD.taxonomy, operators=WORLD.operators, settings=WORLD.settings)


@pytest.mark.parametrize("matcher", MATCHERS)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    trees=st.lists(st.tuples(groups, st.booleans()), max_size=6),
    some=st.lists(publications, max_size=3),
    together=st.booleans(),
)
def test_same_answers(matcher: str, trees: list[tuple[And, bool]], some: list[Publication], together: bool) -> None:
    subscriptions = [
        Subscription(f"s{n}", "sparql", "", () if ask else ("x", "y"), tree, ask) for n, (tree, ask) in enumerate(trees)
    ]
    engine = engine_of(matcher)
    for subscription in reversed(subscriptions):
        with suppress(UnsupportedQuery):  # nothing positive is asked for
            engine.subscribe(subscription)
    subscriptions = [one for one in subscriptions if one in engine.subscriptions]
    expected = {
        (number, s.id): answer
        for number, publication in enumerate(some)
        for s in subscriptions
        if (answer := evaluate(s, publication, WORLD)).bindings
    }
    named = [Publication(str(number), one.triples) for number, one in enumerate(some)]
    results = [engine.match(named)] if together else [engine.match(one) for one in named]
    matches = [match for result in results for match in result]
    by_id = {one.id: one for one in subscriptions}
    assert [(int(match.publication), match.subscription) for match in matches] == sorted(expected)
    for match in matches:
        answer = expected[int(match.publication), match.subscription]
        assert match.truncated == answer.truncated
        rows = (binding.items() for binding in match.bindings)
        assert wrong_rows(rows, answer, by_id[match.subscription], named[int(match.publication)], WORLD) == ""
