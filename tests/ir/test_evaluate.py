"""One query, one publication. The cases are data: `tests/cases/evaluate/groups.toml`; limits and calls are here."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

from triplewire.config import Settings
from triplewire.errors import LimitError
from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.languages import parse
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Term, Triple, parse_term

E = "http://e/"
FILE = Path(__file__).parent.parent / "cases" / "evaluate" / "groups.toml"
CASES = tomllib.loads(FILE.read_text("utf-8"))["case"]


def publication(turtle: str) -> Publication:
    text = f"@prefix : <{E}> . {turtle}"
    triples = pyoxigraph.parse(text.encode("utf-8"), pyoxigraph.RdfFormat.TURTLE)
    return Publication("urn:p", tuple(Triple(*(term(str(t)) for t in quad.triple)) for quad in triples))  # type: ignore[arg-type]


def term(text: str) -> Term:
    """N-Triples notation, `:name`, or an integer."""
    if text.startswith(":"):
        return IRI(E + text[1:])
    return Literal(text, XSD + "integer") if text.lstrip("-").isdecimal() else parse_term(text)


def answer(query: str, turtle: str, world: World | None = None, language: str = "sparql") -> Answer:
    world = world or World()
    text = f"PREFIX : <{E}> {query}" if language == "sparql" else query
    subscription = parse(text, language, operators=world.operators, settings=world.settings)
    return evaluate(subscription, publication(turtle), world)


def rows(bindings: Iterable[Mapping[str, Term]]) -> set[frozenset[tuple[str, Term]]]:
    return {frozenset(binding.items()) for binding in bindings}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_bindings(case: dict[str, Any]) -> None:
    found = answer(case["query"], case["data"], language=case.get("language", "sparql"))
    wanted = [{name: term(text) for name, text in row.items()} for row in case["bindings"]]
    if "_:" in case["data"] and found.bindings:  # the parser renames blank nodes
        assert any(isinstance(t, BlankNode) for row in found.bindings for t in row.values())
        return
    assert rows(found.bindings) == rows(wanted)
    assert len(found.bindings) == len(wanted)
    assert not found.truncated
    assert not found.failures


# --- limits -----------------------------------------------------------------------------------------------------------

NUMBERS = ":a :p " + ", ".join(map(str, range(10))) + " ."


@pytest.mark.parametrize(
    ("limit", "count", "truncated"), [(1, 1, True), (9, 9, True), (10, 10, False), (11, 10, False)]
)
def test_bindings_are_capped_and_the_cap_is_reported(limit: int, count: int, truncated: bool) -> None:
    found = answer("SELECT * { ?x :p ?v }", NUMBERS, World(settings=Settings(max_bindings=limit)))
    assert (len(found.bindings), found.truncated) == (count, truncated)


def test_a_query_that_selects_nothing_bound_has_one_binding() -> None:
    found = answer("SELECT ?nothing { ?x :p ?v }", NUMBERS, World(settings=Settings(max_bindings=1)))
    assert found == Answer(({},))


def test_too_many_steps_are_refused_by_name() -> None:
    with pytest.raises(LimitError, match="max_steps"):
        answer("SELECT * { ?x :p ?v . ?y :p ?w . ?z :p ?u }", NUMBERS, World(settings=Settings(max_steps=500)))


def test_what_is_not_asked_for_costs_no_product() -> None:
    """Eight patterns of ten triples each; a product would be 10**8 steps."""
    patterns = " . ".join(f"?x{number} :p ?v{number}" for number in range(8))
    found = answer(f"SELECT ?x0 {{ {patterns} }}", NUMBERS, World(settings=Settings(max_steps=500)))
    assert rows(found.bindings) == {frozenset({("x0", IRI(E + "a"))})}


def test_a_long_query_needs_no_deep_stack() -> None:
    binds = " ".join(f"BIND (?v{number} + 1 AS ?v{number + 1})" for number in range(1_000))
    found = answer(f"SELECT ?v1000 {{ ?x :p ?v0 {binds} }}", ":a :p 1 .")
    assert rows(found.bindings) == rows([{"v1000": term("1001")}])


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "?a :p ?b . ?c :p ?d . ?e :p ?f . ?g :p ?h . ?i :p ?j FILTER ("
        + " + ".join(["?b", "?d", "?f", "?h", "?j"] * 10)
        + " < 0)",
        "?a :p ?b " + " ".join(f"OPTIONAL {{ ?a{number} :p ?b{number} }}" for number in range(60)),
    ],
)
def test_hard_queries_end_at_the_budget(query: str) -> None:
    """Each would look at more than 10**5 candidates."""
    world = World(settings=Settings(max_steps=20_000, max_bindings=100_000))
    with pytest.raises(LimitError, match="max_steps"):
        answer(f"SELECT * {{ {query} }}", NUMBERS, world)


def test_evaluation_is_deterministic() -> None:
    world = World(settings=Settings(max_bindings=30))
    first, second = (answer("SELECT * { ?x :p ?v . ?y :p ?w }", NUMBERS, world) for _ in range(2))
    assert first == second
    assert len(first.bindings) == 30


# --- operator calls --------------------------------------------------------------------------------------------------


class Table:
    """An operator that holds for the rows of a table, counts its calls, and fails on the argument "fail"."""

    def __init__(self, name: str, *rows: tuple[Term, ...]) -> None:
        self.name = name
        self.rows = rows
        self.parameters = tuple(Parameter(f"p{at}") for at in range(len(rows[0])))
        self.calls: list[tuple[Argument, ...]] = []

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        self.calls.append(arguments)
        if Literal("fail") in arguments:
            raise RuntimeError("no answer")
        return [row for row in self.rows if all(a is None or a == b for a, b in zip(arguments, row, strict=True))]


def numbers(*values: int) -> tuple[Term, ...]:
    return tuple(Literal(str(value), XSD + "integer") for value in values)


def test_a_call_takes_bound_variables_and_binds_the_others() -> None:
    table = Table("twice", numbers(1, 2), numbers(2, 4), numbers(3, 6))
    found = answer("SELECT * { CALL twice(?v, ?w) ?x :p ?v }", ":a :p 1 , 3 , 5 .", World(operators={"twice": table}))
    assert rows(found.bindings) == rows(
        [{"x": IRI(E + "a"), "v": numbers(v)[0], "w": numbers(w)[0]} for v, w in ((1, 2), (3, 6))]
    )
    assert sorted(str(call) for call in table.calls) == sorted(str((v, None)) for v in numbers(1, 3, 5))


def test_equal_calls_are_made_once() -> None:
    table = Table("twice", numbers(1, 2))
    answer(
        "SELECT * { ?x :p ?v CALL twice(?v, ?w) }", ":a :p 1 . :b :p 1 . :c :p 1 .", World(operators={"twice": table})
    )
    assert len(table.calls) == 1


def test_a_repeated_variable_of_a_call_is_one_value() -> None:
    table = Table("pair", numbers(1, 2), numbers(3, 3))
    found = answer("SELECT * { ?x :p ?v CALL pair(?w, ?w) }", ":a :p 1 .", World(operators={"pair": table}))
    assert [binding["w"] for binding in found.bindings] == [numbers(3)[0]]


def test_a_failing_call_is_unknown_and_told_where_the_answer_depends_on_it() -> None:
    world = World(operators={"has": Table("has", (Literal("x"),))})
    data = ":a :p 'fail' . :b :p 'x' . :c :p 'y' ."
    for query, wanted, open_ in (
        ("SELECT ?x { ?x :p ?v CALL has(?v) }", ["b"], True),
        ("SELECT ?x { ?x :p ?v FILTER op:has(?v) }", ["b"], True),
        ("SELECT ?x { ?x :p ?v FILTER (!op:has(?v)) }", ["c"], True),
        ("SELECT ?x { ?x :p ?v FILTER NOT EXISTS { CALL has(?v) } }", ["c"], True),
        ("SELECT ?x { ?x :p ?v FILTER (op:has(?v) || true) }", ["a", "b", "c"], False),
        ("SELECT ?x { ?x :p ?v MINUS { ?x :p ?v CALL has(?v) } }", ["c"], True),
        ("ASK { ?x :p ?v CALL has(?v) }", None, False),
    ):
        found = answer(query, data, world)
        assert rows(found.bindings) == rows([{}] if wanted is None else [{"x": IRI(E + n)} for n in wanted]), query
        said = ["urn:p: the operator has failed: RuntimeError: no answer"] * open_
        assert ([str(failure) for failure in found.failures], found.truncated) == (said, open_), query


class Wrong:
    """An operator whose answer is given."""

    name = "wrong"
    parameters = (Parameter("x"),)

    def __init__(self, verdict: Any) -> None:
        self.verdict = verdict

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        return self.verdict  # type: ignore[no-any-return]  # wrong on purpose


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ([(Literal("a"), Literal("b"))], "and should give True, False, or rows (tuples of 1 term"),
        ([("text",)], "it gives the row ('text',)"),
        (None, "it gives None, and should give True, False"),
        (iter((Literal(str(n)),) for n in range(10_000)), "more than 5000 rows"),
    ],
)
def test_a_wrong_answer_of_an_operator_is_a_failure(verdict: Any, reason: str) -> None:
    world = World(operators={"wrong": Wrong(verdict)}, settings=Settings(max_steps=5_000))
    found = answer("SELECT * { ?x :p ?v CALL wrong(?w) }", ":a :p 1 .", world)
    assert found.bindings == ()
    assert reason in found.failures[0].what
