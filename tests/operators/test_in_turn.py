"""Functions that run one after the other in one helper thread, each with a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from triplewire import Engine, Publication
from triplewire.ir.evaluation.calls import Turn, in_turn
from triplewire.model.operator import Argument, Parameter
from triplewire.model.terms import Literal


def _run(function: Callable[[], object]) -> object:
    return function()


def test_results_come_in_order_and_a_turn_may_depend_on_the_last() -> None:
    told: list[object] = []
    threads = set()

    def same(number: int) -> int:
        threads.add(threading.get_ident())
        return number

    def turns() -> Iterator[Turn[int, int]]:
        while len(told) < 3:
            start = len(told) * 10
            yield Turn(300.0, same, [start, start + 1], lambda turn: told.append((turn.values, len(turn.spent))))

    in_turn(turns())
    assert told == [([0, 1], 2), ([10, 11], 2), ([20, 21], 2)]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_what_is_late_is_left_behind_and_the_rest_goes_on() -> None:
    ended = threading.Event()
    told: list[tuple[object, float]] = []
    functions: list[Callable[[], object]] = [lambda: 1, lambda: ended.wait(120), lambda: 3]
    begun = time.monotonic()
    in_turn(iter([Turn(3.0, _run, functions, lambda turn: told.extend(zip(turn.values, turn.spent, strict=True)))]))
    assert time.monotonic() - begun < 60
    (first, _), (late, seconds), (last, _) = told
    assert (first, last) == (1, 3)
    assert isinstance(late, TimeoutError)
    assert seconds >= 3
    ended.set()  # it returns now, and nobody listens
    time.sleep(0.05)
    assert len(told) == 3


def test_the_last_of_a_turn_may_be_late() -> None:
    ended = threading.Event()
    told: list[list[object]] = []
    turns = [Turn(0.1, _run, [lambda: ended.wait(120)], lambda turn: told.append(list(turn.values))) for _ in range(2)]
    in_turn(iter(turns))
    ended.set()
    assert [[type(value) for value in values] for values in told] == [[TimeoutError], [TimeoutError]]


def test_what_is_raised_reaches_the_caller() -> None:
    def broken() -> int:
        raise KeyError("x")

    with pytest.raises(KeyError):
        in_turn(iter([Turn(300.0, _run, [broken], lambda turn: None)]))


def test_a_surprise_ends_a_turn() -> None:
    told: list[list[object]] = []
    run: list[int] = []

    def is_even(number: int) -> bool:
        run.append(number)
        return number % 2 == 0

    guesses = [False, False, True, False]
    turns = [
        Turn(300.0, is_even, numbers, lambda turn: told.append(list(turn.values)), guesses)
        for numbers in ([1, 3, 4, 5], [1, 2, 4, 5])
    ]
    in_turn(iter(turns))
    assert told == [[False, False, True, False], [False, True]]
    assert run == [1, 3, 4, 5, 1, 2]


def test_what_is_late_is_a_surprise() -> None:
    ended = threading.Event()
    told: list[list[object]] = []
    functions: list[Callable[[], object]] = [lambda: False, lambda: ended.wait(120), lambda: False]
    in_turn(iter([Turn(3.0, _run, functions, lambda turn: told.append(list(turn.values)), [False] * 3)]))
    ended.set()
    ((first, late),) = told
    assert first is False
    assert isinstance(late, TimeoutError)


class Slow:
    """Is true, but for 2, about which it never comes to an end."""

    name, parameters, timeout = "slow", (Parameter("number"),), 3.0

    def __init__(self) -> None:
        self.ended = threading.Event()

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        """See `Operator`."""
        return arguments != (Literal("2"),) or self.ended.wait(120)


def test_a_call_that_hangs_costs_that_call_only() -> None:
    slow = Slow()
    matching = Engine(operators={"slow": slow})
    for number in (1, 2, 3):
        matching.subscribe(f"slow({number})", "predicates", id=f"s{number}")
    result = matching.match([Publication("p", ())])
    assert sorted(match.subscription for match in result) == ["s1", "s3"]
    (refusal,) = result.refusals
    assert "s2" in refusal.subject
    assert "no answer within 3 s (its timeout)" in str(refusal.reason)
    assert result.stats.operators.calls == 3
    assert result.stats.operators.failed == 1
    slow.ended.set()
