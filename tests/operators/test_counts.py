"""What is counted of calls: those that reached their operator, true ones, and the costs that operators state."""

from __future__ import annotations

from typing import Any

import pytest

from triplewire import Engine, Publication
from triplewire.errors import OperatorError
from triplewire.extend import Argument, Parameter
from triplewire.model.terms import Literal


class Refusing:
    """An operator that answers, or lets nothing through, by the publication's number. `cost` where it states one."""

    parameters = (Parameter("x"),)

    def __init__(self, name: str, **stated: Any) -> None:
        self.name, self.reached = name, 0
        vars(self).update(stated)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Any:
        self.reached += 1
        number = int(publication.id)
        if number % 3 == 2:
            raise OperatorError("no answer")
        holds = number % 3 == 0
        return holds if arguments[0] is not None else [(Literal("1"),)] * holds


@pytest.mark.parametrize("argument", ["1", "?x"])  # by compiled loops, and one by one
@pytest.mark.parametrize("matcher", ["trie", "reference"])
def test_calls_that_held_failed_and_cost(matcher: str, argument: str) -> None:
    stating, silent = Refusing("stating", cost=5), Refusing("silent")
    engine = Engine(matcher=matcher, operators={each.name: each for each in (stating, silent)})
    engine.subscribe(f"stating({argument})", "predicates", id="stating")
    engine.subscribe(f"silent({argument})", "predicates", id="silent")
    result = engine.match([Publication(str(number), ()) for number in range(9)])
    assert len(result) == 6
    counts = result.stats.operators
    assert (counts.calls, counts.failed, counts.held, counts.withheld) == (18, 6, 6, 0)
    assert counts.cost == 9 * 5, "seconds are no part of it"
    assert counts.by_name["silent"]["cost"] == 0
    assert counts.by_name["silent"]["held"] == 3
    learned = engine.learned.by_operator()
    assert set(learned) == {"stating", "silent"}
    assert learned["silent"]["selectivity"] == pytest.approx(0.5, abs=0.01)
