"""Generated queries with operators that fail at random: the matchers agree, and Kleene's logic keeps its laws."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import pytest

from amounts import usually
from operators.called_queries import Writer, publications
from operators.scenes import Counting, engine, fixed, publication, usual
from triplewire.config import Settings
from triplewire.errors import LimitError, TriplewireError
from triplewire.ir.evaluation.evaluate import Answer, CallKey, CallResults, World, evaluate
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI
from triplewire.operators.order.call_trees import Connective
from triplewire.operators.order.choice import CallChoice
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.verify.operators import CallCounts, OperatorStage

QUERIES, PUBLICATIONS = 150, 8


def scene(seed: int) -> tuple[Counting, list[Subscription], list[Publication]]:
    chance, counting, subscriptions = random.Random(seed), fixed(seed), list[Subscription]()
    writer = Writer(chance)
    while len(subscriptions) < QUERIES:
        text = writer.query()
        try:
            subscriptions.append(parse(text, id=f"s{len(subscriptions):03}", operators=counting.operators))
        except TriplewireError:
            continue  # such as a variable that BIND would bind again
    return counting, subscriptions, publications(chance, PUBLICATIONS)


def outcome(answer: Answer) -> str:
    return "undecided" if answer.undecided else "match" if answer.bindings else "none"


def bag(answer: Answer) -> list[str]:
    return sorted(repr(sorted(binding.items())) for binding in answer.bindings)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["greedy", "naive"])
@pytest.mark.parametrize("seed", range(usually(2, 4)))
def test_the_matchers_agree(seed: int, order: str) -> None:
    counting, subscriptions, some = scene(seed)
    found = {}
    asked = {}
    for matcher in ("reference", "trie"):
        counting.asked.clear()
        one = engine(matcher, counting, operator_order=order)
        for subscription in subscriptions:
            one.subscribe(subscription)
        result = one.match(some)
        matches = {
            (m.publication, m.subscription): (m.truncated, sorted(repr(sorted(b.items())) for b in m.bindings))
            for m in result
        }
        refused = {tuple(refusal.subject.split()) for refusal in result.refusals}
        assert not refused & matches.keys()
        assert set(counting.asked.values()) == {1}, "each call once, the bindings included"
        found[matcher], asked[matcher] = (matches, refused), set(counting.asked)
    assert found["trie"] == found["reference"]
    if order == "naive":  # calls as stated: what the index leaves out asks for none
        assert asked["trie"] <= asked["reference"]
    matches, refused = found["trie"]
    assert len(matches) > 50
    assert len(refused) > 20


class AnyOrder(OperatorStage):
    """Makes open calls in an order drawn by chance."""

    def __init__(self, world: World, chance: random.Random) -> None:
        super().__init__(world)
        self.chance = chance

    def choice(self, *asked: Any, **given: Any) -> CallChoice:
        return Drawn(self.chance)


class Drawn(CallChoice):
    """Chooses any open call."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__("naive", lambda place: Connective(False, ()), LearnedCalls(), lambda name: None)
        self.open: dict[int, Collection[CallKey]] = {}
        self.chance = chance

    def waits(self, place: int, calls: Collection[CallKey]) -> None:
        self.open[place] = calls

    def next(self) -> CallKey:
        place = self.chance.choice(sorted(place for place, calls in self.open.items() if calls))
        return self.chance.choice(list(self.open[place]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, usually(11, 13)))
def test_the_order_of_calls_changes_no_answer(seed: int) -> None:
    counting, subscriptions, some = scene(seed)
    world = World(operators=counting.operators)
    for one in some:
        alone = [evaluate(subscription, one, world) for subscription in subscriptions]
        for again in range(2):
            stage = AnyOrder(world, random.Random(again))
            results: CallResults = {}
            counts = CallCounts()
            for mine, theirs in zip(stage.decide(one, subscriptions, results, counts), alone, strict=True):
                assert isinstance(mine, Answer)
                assert (outcome(mine), bag(mine), mine.truncated) == (outcome(theirs), bag(theirs), theirs.truncated)
            assert counts.calls == len(results)
            assert counts.failed > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, usually(21, 23)))
def test_what_is_decided_stays_so_whatever_the_failed_calls_would_have_said(seed: int) -> None:
    """Of each pair, a few completions: results in place of the failures."""
    counting, subscriptions, some = scene(seed)
    world, chance = World(operators=counting.operators), random.Random(seed)
    seen = dict.fromkeys(("match", "none", "undecided", "open bindings"), 0)
    for one in some:
        for subscription in subscriptions:
            answer = evaluate(subscription, one, world)
            seen["open bindings" if answer.truncated else outcome(answer)] += 1
            for _ in range(3):
                whole = completed(subscription, one, counting, chance)
                assert not whole.failures
                if outcome(answer) == "none":
                    assert not whole.bindings, subscription.text
                elif outcome(answer) == "match":
                    assert whole.bindings, subscription.text
                    if not answer.truncated:
                        assert bag(whole) == bag(answer), subscription.text
    assert min(seen.values()) > 3, seen


def completed(subscription: Subscription, given: Publication, counting: Counting, chance: random.Random) -> Answer:
    """The answer if no call failed."""
    whole = Counting()
    for name, operator in counting.operators.items():

        def answer(one: Publication, arguments: object, operator: object = operator, name: str = name) -> object:
            try:
                return operator.evaluate(one, arguments)  # type: ignore[attr-defined]  # an operator
            except RuntimeError:
                if name.startswith("t"):
                    return chance.random() < 0.5
                terms = [IRI(f"http://e/{letter}") for letter in "abc"]
                rows = [(chance.choice(terms), chance.choice(terms)) for _ in range(chance.randrange(3))]
                return [
                    tuple(value or drawn for value, drawn in zip(arguments, row, strict=True))  # type: ignore[call-overload]
                    for row in rows
                ]

        whole.add(name, answer, len(operator.parameters))
    return evaluate(subscription, given, World(operators=whole.operators))


def test_a_limit_counts_only_after_the_calls() -> None:
    """Too many solutions in doubt: with the result of the call there is nothing to look at."""
    counting = usual()
    one = publication("urn:p", *(f"{name} p {number}" for name in "abc" for number in range(2)))
    few = World(operators=counting.operators, settings=Settings(max_steps=60))
    for operator, past in (("no", False), ("yes", True)):
        text = f"SELECT * {{ ?a ?b ?c CALL {operator}(1) OPTIONAL {{ ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }} }}"
        subscription = parse(text, operators=counting.operators)
        if past:
            with pytest.raises(LimitError):
                evaluate(subscription, one, few)
        else:
            assert evaluate(subscription, one, few) == Answer(())
    assert set(counting.asked.values()) == {1}
    assert len(counting.asked) == 2
