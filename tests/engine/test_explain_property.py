"""Generated pairs: what an explanation says is so.

A miss names the first part after which no solution is left: the parts before it still match, together with it they do
not, and without it the pair matches or a later part is named. A match names triples of the publication and conditions
that are true.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from triplewire.ir.evaluate import World, evaluate
from triplewire.ir.taxonomy import Taxonomy

from triplewire.config import Settings
from triplewire.engine.explain import Explanation, Finding, Verdict, explain
from triplewire.engine.pieces import in_order, parts_of
from triplewire.engine.reasons import triple_text
from triplewire.ir.nodes import (
    ANY,
    AllOf,
    And,
    AnyOf,
    Bind,
    Compare,
    Filter,
    FullText,
    Function,
    InstanceOf,
    Minus,
    Negate,
    Not,
    Optional,
    Or,
    Pattern,
    Relation,
    Values,
    Variable,
    Where,
)
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.ir.text import TextAnd, TextNot, Word
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, BlankNode, Literal, Triple

NODES = [IRI("urn:a"), IRI("urn:b"), BlankNode("n")]
PREDICATES = [IRI("urn:p"), IRI("urn:q"), RDF_TYPE]
CLASSES = [IRI("urn:C"), IRI("urn:D")]
NUMBERS = [Literal(n, XSD + "integer") for n in "12"]
OBJECTS = [*NODES, *CLASSES, *NUMBERS, Literal("one two"), Literal("two")]
NAMES = [Variable(name) for name in ("x", "y", "z", ".h")]
WORLD = World(Taxonomy.build([("urn:C", "urn:D")]), {}, Settings(max_bindings=50))

triples = st.builds(Triple, st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from(OBJECTS))
publications = st.lists(triples, min_size=1, max_size=7).map(lambda some: Publication("p", tuple(some)))

variables = st.sampled_from(NAMES)
constants = st.sampled_from([*NODES[:2], *CLASSES, *NUMBERS])
patterns = st.builds(
    Pattern,
    st.one_of(variables, variables, st.sampled_from(NODES[:2])),
    st.one_of(st.sampled_from(PREDICATES), st.sampled_from(PREDICATES), variables, st.just(ANY)),
    st.one_of(variables, variables, constants, st.just(ANY)),
)
words = st.sampled_from([Word("one"), Word("two"), TextNot(Word("one")), TextAnd((Word("two"), TextNot(Word("one"))))])
tests = st.one_of(
    st.builds(Compare, st.sampled_from(["=", "!=", "<", ">="]), variables, st.one_of(variables, constants)),
    st.builds(InstanceOf, variables, st.sampled_from(Relation), st.sampled_from(CLASSES)),
    st.builds(FullText, variables, words),
    st.builds(Function, st.just("BOUND"), st.tuples(variables)),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.builds(Negate, inner),
        st.builds(AllOf, st.tuples(inner, inner)),
        st.builds(AnyOf, st.tuples(inner, inner)),
    ),
    max_leaves=3,
)
filters = st.builds(Filter, conditions)
simple = st.lists(st.one_of(patterns, patterns, filters), min_size=1, max_size=3).map(lambda parts: And(tuple(parts)))
others = st.one_of(
    simple,
    st.builds(Or, st.tuples(simple, patterns)),
    st.builds(Or, st.tuples(patterns, patterns)),
    st.builds(Optional, simple),
    st.builds(Not, simple),
    st.builds(Minus, simple),
    st.builds(Bind, st.just(Variable("new")), variables),
    st.builds(Values, st.tuples(variables), st.lists(st.tuples(constants), min_size=1, max_size=2).map(tuple)),
)
groups = st.lists(st.one_of(patterns, patterns, filters, others), min_size=1, max_size=5).map(lambda p: And(tuple(p)))


def subscription(where: Where) -> Subscription:
    return Subscription("s", "sparql", "", ("x", "y", "z"), where)


def matches(where: Where, publication: Publication) -> bool:
    return bool(evaluate(subscription(where), publication, WORLD).bindings)


@settings(max_examples=400, deadline=None)
@given(groups, publications)
def test_explanations_are_right(group: And, publication: Publication) -> None:
    explanation = explain(subscription(group), publication, WORLD)
    assert explanation.matched == matches(group, publication)
    assert str(explanation)
    assert explanation.to_json()["matched"] == explanation.matched
    if explanation.matched:
        check_match(explanation, publication)
    else:
        check_miss(explanation, in_order(parts_of(group)), publication)


def check_match(explanation: Explanation, publication: Publication) -> None:
    there = {triple_text(triple) for triple in publication.triples}
    for finding in explanation.findings:
        assert finding.verdict in (Verdict.HOLDS, Verdict.ABSENT)
        check_held(finding, there)


def check_held(finding: Finding, there: set[str]) -> None:
    """A pattern has its triple; of an alternative, one branch holds."""
    if " UNION " in finding.part and finding.part.startswith("("):
        assert [part.verdict for part in finding.parts].count(Verdict.HOLDS) == 1
    elif not finding.part.startswith(("FILTER", "OPTIONAL", "NOT", "MINUS", "BIND", "VALUES", "{")):
        assert finding.because
        assert finding.because[0] in there
    for part in finding.parts:
        if part.verdict is Verdict.HOLDS:
            check_held(part, there)


def check_miss(explanation: Explanation, parts: tuple[Where, ...], publication: Publication) -> None:
    verdicts = [finding.verdict for finding in explanation.findings]
    at = verdicts.index(Verdict.FAILS)
    assert verdicts == [Verdict.HOLDS] * at + [Verdict.FAILS] + [Verdict.NOT_REACHED] * (len(parts) - at - 1)
    assert [finding.part for finding in explanation.findings] == [show(part) for part in parts]
    assert matches(And(parts[:at]), publication)
    assert not matches(And(parts[: at + 1]), publication)
    failing = explanation.findings[at]
    assert failing.because or failing.parts
    without = And(parts[:at] + parts[at + 1 :])
    next_one = explain(replace(subscription(without)), publication, WORLD)
    if not next_one.matched:
        assert [f.part for f in next_one.findings[:at]] == [show(part) for part in parts[:at]]
        assert {f.verdict for f in next_one.findings[:at]} <= {Verdict.HOLDS}
        assert next_one.failing is not None
        assert next_one.failing.part in [show(part) for part in parts[at + 1 :]]
