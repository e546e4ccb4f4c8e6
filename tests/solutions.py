"""Is a row of bindings a solution? Asked of the reference, with the row's values given: others need not be listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.ir.nodes import And, Values, Variable
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.model.terms import Term


def is_solution(row: Mapping[str, Term], subscription: Subscription, publication: Publication, world: World) -> bool:
    """Is it one of the bindings that the subscription has, however many there are?"""
    constants: Any = tuple(row.values())  # blank nodes as well, which no query can name
    given = Values(tuple(map(Variable, row)), (constants,))
    settings = replace(world.settings, max_bindings=100_000)  # what is unbound in the row may have any value
    asked = replace(subscription, where=And((given, subscription.where)))
    answer = evaluate(asked, publication, replace(world, settings=settings))
    return dict(row) in [dict(binding) for binding in answer.bindings]


def wrong_rows(
    rows: Iterable[Iterable[tuple[str, Term]]],
    answer: Answer,
    subscription: Subscription,
    publication: Publication,
    world: World,
) -> str:
    """What is wrong with the rows of a match, where the reference gives this answer; "" if nothing is. Those of a
    truncated match are as many, and each is a solution; others are the same."""
    found = [frozenset(row) for row in rows]
    expected = {frozenset(binding.items()) for binding in answer.bindings}
    if len(found) != len(set(found)) or len(found) != len(expected):
        return f"{len(found)} rows, {len(set(found))} different ones, and the reference has {len(expected)}"
    if not answer.truncated:
        return "" if set(found) == expected else f"rows {set(found) ^ expected} are in one of both"
    others = [dict(row) for row in found if row not in expected]
    wrong = [row for row in others if not is_solution(row, subscription, publication, world)]
    return f"no solutions: {wrong}" if wrong else ""
