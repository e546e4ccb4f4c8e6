"""Functions and conditions cost what they read and write: `tests/cases/evaluate/work.toml` has all of them.

The literals have a million characters in `make full`, a quarter of that by default. What a step is, in time, is
measured here, on the machine at hand."""

from __future__ import annotations

import random
import time
import tomllib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from amounts import usually
from shared_data import ROOT
from triplewire.bounded_cache import BoundedCache
from triplewire.config import Settings
from triplewire.errors import LimitError
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.evaluation.expressions import KNOWN_FUNCTIONS, holds
from triplewire.ir.evaluation.state import Evaluation
from triplewire.ir.nodes import Expression, Filter, Function, Variable
from triplewire.ir.values import regexes
from triplewire.ir.values.regexes import LEAST_MEMORY, MEMORY, compile_regex
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, XSD_STRING, Literal, Triple, parse_term

WORK = tomllib.loads((ROOT / "tests/cases/evaluate/work.toml").read_text("utf-8"))
LONG = usually(250_000, 1_000_000)
SLACK = 0.05  # seconds, beside so many times the time that the steps stand for:
TIMES = usually(10, 2)  # a quadratic function takes a thousand times as much, a loaded machine a few times
S, P = IRI("urn:s"), IRI("urn:p")


def literal(case: dict[str, Any], share: float = 1) -> Literal:
    """The literal of a case, or a shorter one."""
    before, unit, after = case.get("before", ""), case.get("unit", "a"), case.get("after", "")
    length = int(case.get("long", LONG) * share) - len(before) - len(after)
    if "random" in case:
        unit = "".join(random.Random(1).choices(case["random"], k=length))
    text = before + unit * (length // len(unit)) + after
    return Literal(text, XSD + case["datatype"] if "datatype" in case else XSD_STRING)


def function(case: dict[str, Any]) -> Function:
    def argument(text: str) -> Any:
        if text == "?v":
            return Variable("v")
        value, _, name = text.partition("^^xsd:")
        return parse_term(f"{value}^^<{XSD}{name}>" if name else text)

    name = case["name"]
    return Function(XSD + name[4:] if name.startswith("xsd:") else name, tuple(map(argument, case["arguments"])))


def condition(case: dict[str, Any]) -> Expression:
    if "gql" in case:
        where = parse(f"SELECT * WHERE ((?s, p, ?v) SUCHTHAT ({case['gql']}))", "gql").where
    else:
        where = parse(f"SELECT * {{ ?s ?p ?v FILTER ({case['sparql']}) }}").where
    return next(node.condition for node in walk(where) if isinstance(node, Filter))


CONDITIONS: list[tuple[str, Expression, dict[str, Any]]] = [
    *((f"{case['name']} {case['arguments']}", function(case), case) for case in WORK["function"]),
    *((case.get("sparql") or case["gql"], condition(case), case) for case in WORK["condition"]),
]


def spent(expression: Expression, value: Literal) -> int:
    """The steps that the expression takes for the value."""
    state = Evaluation(Publication("urn:p", ()), World(), frozenset(), lambda *_: False)
    before = state.steps_left
    holds(expression, {"v": value}, state)
    return before - state.steps_left


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The least processor time that it takes, of so many times."""
    least = float("inf")
    for _ in range(times):
        begun = time.thread_time()
        work()
        least = min(least, time.thread_time() - begun)
    return least


@cache
def step_seconds() -> float:
    """What a step takes where triples are looked at."""
    triples = [Triple(S, P, Literal(str(number))) for number in range(200)]
    product = parse("SELECT * { ?s ?p ?a . ?s ?p ?b . ?s ?p ?c }")
    steps = 50_000
    world = World(settings=Settings(max_steps=steps, max_bindings=10**6))

    def refused() -> None:
        with pytest.raises(LimitError):
            evaluate(product, Publication("urn:p", tuple(triples)), world)

    return seconds(refused, 3) / steps


def test_every_function_is_here() -> None:
    assert {node.name for _, node, _ in CONDITIONS if isinstance(node, Function)} >= KNOWN_FUNCTIONS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "case"), [row[1:] for row in CONDITIONS], ids=[row[0][:60] for row in CONDITIONS]
)
def test_what_a_long_literal_costs(expression: Expression, case: dict[str, Any]) -> None:
    """Four times the literal, about four times the steps; and at most `TIMES` the time that the steps stand for."""
    value, steps = literal(case), set[int]()
    took = seconds(lambda: steps.add(spent(expression, value)))
    (most,) = steps
    if not case.get("constant"):
        assert most > 3 * spent(expression, literal(case, 0.25))
    limit = TIMES * most * step_seconds() + SLACK
    assert took <= limit or seconds(lambda: spent(expression, value), 2) <= limit  # the first time, RE2 compiles


@pytest.mark.parametrize("case", WORK["ordinary"], ids=[case["pattern"] for case in WORK["ordinary"]])
def test_an_ordinary_regular_expression_costs_little(case: dict[str, Any]) -> None:
    assert spent(Function("REGEX", (Variable("v"), Literal(case["pattern"]))), Literal("a" * 1_000_000)) <= case["most"]


def test_regular_expressions_are_kept_within_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a thousand ordinary ones are."""
    kept: BoundedCache[object, object] = BoundedCache()
    monkeypatch.setattr(regexes, "_cache", kept)
    assert MEMORY // compile_regex(r"\w+@\w+\.org", "", 100).memory >= 1_300
    assert compile_regex(r"\w+@\w+\.org", "", 100) is compile_regex(r"\w+@\w+\.org", "", 100)
    monkeypatch.setattr(regexes, "MEMORY", 3 * LEAST_MEMORY)
    for number in range(5):
        compile_regex(f"(a|b)*a(a|b){{40}}X{number}", "", 100)
        assert kept.weight <= 3 * LEAST_MEMORY
    assert compile_regex(r"\w{9}", "", 100).memory > LEAST_MEMORY


@pytest.mark.parametrize("case", WORK["many"], ids=[case["part"] for case in WORK["many"]])
def test_what_many_parts_cost(case: dict[str, Any]) -> None:
    few, many = (
        spent(condition({"sparql": case["before"] + parts + case["after"]}), Literal("1"))
        for parts in ("".join(case["part"].format(number) for number in range(count)) for count in (100, 900))
    )
    assert many - few >= 100


@pytest.mark.slow
@pytest.mark.parametrize("case", WORK["nested"], ids=[case["text"] for case in WORK["nested"]])
def test_sixty_in_each_other_end_or_are_refused(case: dict[str, Any]) -> None:
    text = "?v"
    for _ in range(case.get("times", 60)):
        text = case["text"].replace("@", text, 1)
    query = f"SELECT ?v {{ ?s ?p ?v BIND ({text} AS ?w) FILTER (STRLEN(STR(?w)) != 1) }}"
    assert len(query) <= 2_048
    most = 200_000
    world = World(settings=Settings(max_steps=most))
    subscription = parse(query, settings=world.settings)
    publication = Publication("urn:p", (Triple(S, P, literal(case)),))

    refusals: list[LimitError] = []

    def decided() -> None:
        try:
            evaluate(subscription, publication, world)
        except LimitError as error:
            refusals.append(error)

    assert seconds(decided) <= 2 * most * step_seconds() + SLACK
    assert bool(refusals) == case.get("refused", False)
    assert all(f"more than {most} steps" in error.what and "max_steps" in error.remedy for error in refusals)
