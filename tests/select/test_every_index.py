"""The law of every index: it names all that match. What it accepts matches, and is not truncated.

Saved, merged and selected in parts, an index says the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from built import MAKERS, Built, accepted, clauses_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amounts import examples
from engine.generated import WORLD, groups, publications
from triplewire import IRI, Literal, Publication, Triple, UnsupportedQuery, parse
from triplewire.clauses.clauses import merge
from triplewire.ir.checks import check
from triplewire.ir.evaluation.evaluate import evaluate
from triplewire.ir.nodes import And
from triplewire.ir.subscription import Subscription
from triplewire.select.index import Selected
from triplewire.select.trie import build as atom_tables

MOST = 3


def registered(tree: And, ask: bool) -> Subscription | None:
    one = Subscription("s", "sparql", "", () if ask else ("x", "y"), tree, ask)
    try:
        check(one, WORLD.settings)
    except UnsupportedQuery:  # nothing positive is asked for
        return None
    return one


def keeps_the_law(built: Built, selected: Selected, subscriptions: list[Subscription], some: list[Publication]) -> None:
    for row, publication in enumerate(some):
        sure, maybe = accepted(selected, row), built.to_check(selected, row)
        assert len(set(sure)) == len(sure)
        for number, one in enumerate(subscriptions):
            answer = evaluate(one, publication, WORLD)
            many = len(answer.bindings) > MOST or answer.truncated
            if number in sure:
                assert answer.bindings, one.where
                assert not many, one.where
            elif answer.bindings:
                assert number in maybe, one.where


@pytest.mark.parametrize("maker", MAKERS)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees=st.lists(st.tuples(groups, st.booleans()), max_size=12))
def test_an_order_has_each_clause_once(maker: str, trees: list[tuple[And, bool]]) -> None:
    built = Built.of(clauses_of([one for tree, ask in trees if (one := registered(tree, ask))]), maker)
    order = built.index.order
    assert order is not None or maker != "trie"
    assert order is None or sorted(order.tolist()) == list(range(built.clauses.count))


@pytest.mark.parametrize("maker", MAKERS)
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    trees=st.lists(st.tuples(groups, st.booleans()), min_size=1, max_size=12),
    some=st.lists(publications, min_size=1, max_size=4),
    removed=st.sets(st.integers(0, 11)),
    least=st.sampled_from([0, atom_tables._LEAST]),  # 0: more atoms lie in the hash table
)
def test_never_too_few(
    maker: str, trees: list[tuple[And, bool]], some: list[Publication], removed: set[int], least: int
) -> None:
    subscriptions = [one for tree in trees if (one := registered(*tree)) is not None]
    numbers = [n for n in range(len(subscriptions)) if n not in removed]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atom_tables, "_LEAST", least)
        built = Built.of(clauses_of(subscriptions), maker)
        parts = [(built.clauses, np.array(numbers, np.int64)), (built.clauses, np.arange(len(subscriptions)))]
        merged = Built.of(merge(parts), maker)
    for one, meant in ((built, subscriptions), (merged, [subscriptions[n] for n in numbers] + subscriptions)):
        again = one.saved(maker)
        selected = again.selected(some, MOST)
        keeps_the_law(again, selected, meant, some)
        middle = len(some) // 2
        for part, mine in zip(
            again.selected_in_parts(some, MOST, (middle, len(some))), (some[:middle], some[middle:]), strict=True
        ):
            keeps_the_law(again, part, meant, mine)


@pytest.mark.parametrize("maker", MAKERS)
def test_removed_subscriptions_are_left_out(maker: str) -> None:
    """Of three with the same pattern the second is removed: what is left is named, by its place among the rest."""
    texts = ["ASK { ?s <urn:p> ?o }", "SELECT ?s { ?s <urn:p> ?o }", 'ASK { ?s <urn:p> ?o FILTER ftcontains(?o, "w") }']
    clauses = clauses_of([parse(text) for text in texts])
    some = [Publication("p", (Triple(IRI("urn:s"), IRI("urn:p"), Literal("a w")),)), Publication("none", ())]
    named = []
    for kept in ([0, 1, 2], [0, 2], []):
        built = Built.of(merge([(clauses, np.array(kept, np.int64))]), maker)
        selected = built.selected(some)
        assert len(built.clauses) == len(kept)
        named.append([set(accepted(selected, row)) | built.to_check(selected, row) for row in range(2)])
    assert [first for first, _ in named] == [{0, 1, 2}, {0, 1}, set()]
