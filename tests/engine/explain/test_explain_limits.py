"""An explanation costs no more than what decides a pair, however many parts the query has."""

from __future__ import annotations

import pytest

from triplewire import Engine
from triplewire.config import Settings
from triplewire.engine.explain.nearest import MOST_TRIES
from triplewire.errors import LimitError
from triplewire.ir.evaluation.state import Evaluation
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, Literal, Triple

MOST_STEPS = 40_000
NUMBERS = Publication(
    "urn:numbers", [Triple(IRI(f"urn:s{n}"), IRI("urn:p"), Literal(str(n), XSD + "integer")) for n in range(14)]
)
PRODUCT = "?a <urn:p> ?x . ?b <urn:p> ?y . ?c <urn:p> ?z"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are taken."""
    steps: list[int] = []
    step = Evaluation.step

    def counting(state: Evaluation, count: int = 1) -> None:
        steps.append(count)
        step(state, count)

    monkeypatch.setattr(Evaluation, "step", counting)
    return steps


def engine_of(conditions: int) -> Engine:
    """Of a query that misses: a product, so many conditions that hold for few of its rows, and one that fails."""
    some = " ".join(f"FILTER(?x + ?y + ?z >= 37 - {number})" for number in range(conditions))
    engine = Engine(matcher="reference", settings=Settings(max_steps=MOST_STEPS))
    engine.subscribe(f"SELECT ?a {{ {PRODUCT} {some} FILTER(?x + ?y + ?z < 14) }}", id="query")
    return engine


def test_all_parts_together_take_the_steps_of_one_pair(counted: list[int]) -> None:
    engine = engine_of(24)
    result = engine.match([NUMBERS])
    assert (len(result), len(result.refusals)) == (0, 0)  # it is decided: each part alone is within the limit
    counted.clear()
    with pytest.raises(LimitError, match=f"the explanation takes more than {MOST_STEPS} steps; raise max_steps"):
        engine.explain("query", NUMBERS)
    assert MOST_STEPS < sum(counted) <= 2 * MOST_STEPS + 100  # those of the decision, and those of the parts


def test_a_search_for_the_nearest_query_is_bounded_too(counted: list[int]) -> None:
    explanation = engine_of(1).explain("query", NUMBERS, nearest=True)
    assert explanation.failing is not None
    assert explanation.failing.part == "FILTER (((?x + ?y) + ?z) < 14)"
    assert sum(counted) <= 3 * MOST_STEPS + MOST_TRIES * 2 * 3_000
