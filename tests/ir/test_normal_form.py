"""The normal form of a subscription: the cases are data, and its two laws hold on generated pairs.

Never too few: what matches satisfies a clause. Exact: the solutions of the clauses are the solutions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from engine import generated
from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.patterns import fits
from triplewire.ir.evaluation.state import Evaluation
from triplewire.ir.nodes import (
    ANY,
    Analyzer,
    And,
    AnyOf,
    Coercion,
    Compare,
    Exists,
    Filter,
    FullText,
    In,
    Label,
    Near,
    Or,
    Pattern,
    Phrase,
    Prefix,
    TextAnd,
    TextNot,
    TextOr,
    TextRelation,
    TextTest,
    Values,
    Variable,
    Where,
    Word,
)
from triplewire.ir.normal_form import Clause, NormalForm, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, Literal, Term, Triple

FILE = Path(__file__).parent.parent / "cases" / "normal_form" / "clauses.toml"
CASES = tomllib.loads(FILE.read_text("utf-8"))["case"]


# --- the twin: clauses, solved by trying every triple ------------------------------------------------------------


def solutions(clause: Clause, publication: Publication, world: World) -> Iterator[dict[str, Term]]:
    def no_exists(where: Where, solution: object, state: object) -> bool:
        raise AssertionError("a test asks of one node only")

    state = Evaluation(publication, world, frozenset(), no_exists)
    found: list[dict[str, Term]] = [{}]
    for pattern in clause.patterns:
        found = [
            extended
            for solution in found
            for triple in publication.graph.triples
            if (extended := _extended(pattern, triple, solution)) is not None
        ]
    for solution in found:
        if all(
            fits(test, solution[name]) if isinstance(test, Label) else holds(test, {"x": solution[name]}, state)
            for name, test in clause.tests
        ):
            yield solution


def _extended(pattern: Any, triple: Any, solution: dict[str, Term]) -> dict[str, Term] | None:
    extended = dict(solution)
    for position, term in zip(pattern, triple, strict=True):
        if isinstance(position, Variable):
            if extended.setdefault(position.name, term) != term:
                return None
        elif position != term:
            return None
    return extended


def check_laws(subscription: Subscription, found: NormalForm, publication: Publication, world: World) -> Answer:
    answer = evaluate(subscription, publication, world)
    all_solutions = [s for clause in found.clauses for s in solutions(clause, publication, world)]
    if answer.bindings:
        assert all_solutions, "never too few"
    if found.exact:
        names = () if subscription.ask else subscription.select
        rows = {tuple(solution.get(name) for name in names) for solution in all_solutions}
        wanted = {tuple(binding.get(name) for name in names) for binding in answer.bindings}
        cap = world.settings.max_bindings
        assert answer.truncated == (len(rows) > cap)
        assert wanted == rows if not answer.truncated else wanted <= rows and len(wanted) == cap
    return answer


# --- cases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_clauses(case: dict[str, Any]) -> None:
    text = f"PREFIX : <http://e/> {case['query']}"
    subscription = parse(text, case.get("language", "sparql"))
    found = normal_form(subscription, most=case.get("most", 64))
    assert [_shown(clause) for clause in found.clauses] == case["clauses"]
    assert found.exact == case["exact"]


def _shown(clause: Clause) -> list[str]:
    """Patterns, then tests, as readable lines."""
    lines = [" ".join(_position(p) for p in pattern) for pattern in clause.patterns]
    return lines + [f"{name}: {_test(test)}" for name, test in clause.tests]


def _position(position: Any) -> str:
    if isinstance(position, Variable):
        return f"?{position.name}"
    if isinstance(position, IRI):
        return position.value.replace("http://e/", ":").replace(RDF_TYPE.value, "a")
    return position.lexical if position.datatype == XSD + "integer" else str(position)


def _test(node: Any) -> str:
    """Kinds of nodes, operators, constants: what tells one test from another."""
    return " ".join([_leaf(part) for part in walk(node) if part != Variable("x") and not isinstance(part, Analyzer)])


def _leaf(part: Any) -> str:
    if isinstance(part, Compare):
        return part.op
    if isinstance(part, Word):
        return part.word
    if isinstance(part, Prefix):
        return f"{part.prefix}*"
    if isinstance(part, IRI | Literal):
        return _position(part)
    if isinstance(part, Label):
        return f"'{part.text}'"
    if isinstance(part, TextTest):
        return f"{'not ' * part.negated}{part.relation.value} {part.text}"
    return getattr(part, "name", "") or type(part).__name__


# --- the laws ----------------------------------------------------------------------------------------------------

leaves = st.sampled_from([Word("one"), Word("two"), Prefix("tw"), Word("absent")])
texts = st.recursive(
    st.one_of(
        leaves,
        st.just(Phrase((Word("one"), Prefix("t")))),
        st.just(Near((Word("two"), Word("one")), ((0, 1),), (False,))),
    ),
    lambda inner: st.one_of(
        st.builds(TextNot, inner),
        st.builds(TextAnd, st.tuples(inner, inner)),
        st.builds(TextOr, st.tuples(inner, inner)),
    ),
    max_leaves=4,
)
lenient_constants = st.sampled_from(
    [Literal("1"), Literal("two"), Label("two"), Label("1"), IRI("urn:a"), Label("a", "urn:a")]
)
more_tests = st.one_of(
    st.builds(FullText, generated.variables, texts),
    st.builds(
        Compare,
        st.sampled_from(["=", "<", ">=", "!="]),
        generated.variables,
        lenient_constants,
        st.just(Coercion.LENIENT),
    ),
    st.builds(
        TextTest,
        st.sampled_from([TextRelation.CONTAINS, TextRelation.ENDS]),
        generated.variables,
        st.just("o"),
        st.booleans(),
    ),
    st.builds(In, generated.variables, st.lists(generated.constants, max_size=2).map(tuple), st.booleans()),
    st.builds(Exists, generated.patterns),
    generated.conditions,
)
more_conditions = st.one_of(
    more_tests,
    st.builds(AnyOf, st.lists(more_tests, max_size=3).map(tuple)),
    st.builds(AnyOf, st.tuples(more_tests, more_tests)),
)
label_patterns = st.builds(
    Pattern,
    st.one_of(generated.variables, st.just(Label("a", "urn:a"))),
    st.just(ANY),
    st.sampled_from([Label("two"), Label("1")]),
)
values = st.builds(
    Values,
    st.just((Variable("x"), Variable("y"))),
    st.lists(st.tuples(generated.constants, st.one_of(st.none(), generated.constants)), max_size=2).map(tuple),
)
positive = st.recursive(
    st.one_of(generated.patterns, generated.patterns, label_patterns, st.builds(Filter, more_conditions)),
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, min_size=1, max_size=4).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)
groups = st.one_of(
    st.tuples(generated.patterns, st.lists(positive, min_size=1, max_size=4)).map(lambda p: And((p[0], *p[1]))),
    st.tuples(generated.patterns, st.one_of(values, generated.others), positive).map(And),
    generated.groups,
)
selects = st.sampled_from([("x",), ("x", "y"), (), ("x", "y", "z", ".h", "new")])


@pytest.mark.slow
@settings(max_examples=examples(800), deadline=None)
@given(groups, selects, st.lists(generated.publications, min_size=1, max_size=3), st.sampled_from([1, 2, 64]))
def test_never_too_few_and_exact_where_it_says_so(
    where: And, select: tuple[str, ...], publications: list[Publication], most: int
) -> None:
    subscription = Subscription("s", "", "", select, where, ask=not select)
    found = normal_form(subscription, most=most)
    assert len(found.clauses) <= most
    for clause in found.clauses:
        named = {p.name for pattern in clause.patterns for p in pattern if isinstance(p, Variable)}
        assert {name for name, _ in clause.tests} <= named
    for publication in publications:
        check_laws(subscription, found, publication, generated.WORLD)


def test_the_cap_on_bindings_is_that_of_the_clauses() -> None:
    where = And((Pattern(Variable("x"), Variable("y"), Variable("z")),))
    subscription = Subscription("s", "", "", ("x", "z"), where)
    triples = tuple([Triple(IRI("urn:a"), IRI("urn:p"), Literal(str(n))) for n in range(60)])
    found = normal_form(subscription, most=64)
    assert found.exact
    assert check_laws(subscription, found, Publication("p", triples), generated.WORLD).truncated


def test_a_tree_deeper_than_the_stack_is_a_candidate_for_everything() -> None:
    where: Where = Pattern(Variable("x"), ANY, ANY)
    for _ in range(20_000):
        where = And((where,))
    found = normal_form(Subscription("s", "", "", ("x",), where), most=64)
    assert found == NormalForm((Clause((), ()),), False)
