"""Every matcher gives the answers of the reference meaning, and its selector never names too few."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.generated import WORLD, groups, publications
from triplewire import plugins
from triplewire.extend import Answer, MakeMatcher
from triplewire.ir.evaluate import evaluate
from triplewire.ir.nodes import And
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication


@pytest.mark.parametrize("name", plugins.names("matcher"))
@settings(max_examples=100, deadline=None)
@given(trees=st.lists(groups, max_size=6), some=st.lists(publications, max_size=3))
def test_same_answers(name: str, trees: list[And], some: list[Publication]) -> None:
    subscriptions = [Subscription(f"s{n}", "sparql", "", ("x", "y"), tree) for n, tree in enumerate(trees)]
    make: MakeMatcher = plugins.find("matcher", name)
    matcher = make(tuple(reversed(subscriptions)), WORLD)
    for publication in some:
        expected = {s.id: answer for s in subscriptions if (answer := evaluate(s, publication, WORLD)).bindings}
        candidates = matcher.selector.candidates(publication)
        ids = [candidate.id for candidate in candidates]
        assert ids == sorted(ids)
        assert expected.keys() <= set(ids)
        found = dict(matcher.verifier.verify(publication, candidates))
        assert [s.id for s in found] == sorted(expected)
        for subscription, answer in found.items():
            assert isinstance(answer, Answer)
            assert answer.truncated == expected[subscription.id].truncated
            if not answer.truncated:
                assert set(map(frozen, answer.bindings)) == set(map(frozen, expected[subscription.id].bindings))


def frozen(binding: object) -> frozenset[object]:
    assert isinstance(binding, dict)
    return frozenset(binding.items())
