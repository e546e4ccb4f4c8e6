"""Generated subscriptions and publications over a tiny vocabulary, so that a good part of the pairs match."""

from __future__ import annotations

from hypothesis import strategies as st

from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World
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
    TextAnd,
    TextNot,
    Values,
    Variable,
    Word,
)
from triplewire.ir.taxonomy import Taxonomy
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
