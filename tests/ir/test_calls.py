"""Operator calls beside each other, in Or and OPTIONAL, and past their time (semantics, section 3)."""

from __future__ import annotations

import threading

import pytest

from triplewire import IRI, Literal, Publication, Settings, Triple
from triplewire.ir.evaluation.calls import within
from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.languages import parse
from triplewire.operators import function_operator

PUBLICATION = Publication("urn:p", (Triple(IRI("urn:s"), IRI("urn:p"), Literal("o")),))


def table(name, rows, asked=None):
    """An operator that holds for these rows, whatever it is given; `asked` collects the arguments."""

    def function(publication, arguments):
        if asked is not None:
            asked.append(arguments)
        return [tuple(map(Literal, row)) for row in rows]

    return function_operator(name, [f"p{at}" for at in range(len(rows[0]))], function)


def fails(publication, arguments):
    raise RuntimeError("no answer")


def answer(query: str, *operators, language="sparql", settings=None) -> Answer:
    world = World(operators={one.name: one for one in operators}, settings=settings or Settings())
    return evaluate(parse(query, language, operators=world.operators), PUBLICATION, world)


def values(found: Answer, name: str) -> list[str]:
    return sorted(binding[name].lexical for binding in found.bindings)


@pytest.mark.parametrize("query", ["one(?x), two(?x)", "two(?x), one(?x)"])
def test_what_another_call_binds_is_an_output_of_both(query):
    asked = []
    found = answer(query, table("one", ["1", "2"], asked), table("two", ["2", "3"], asked), language="predicates")
    assert values(found, "x") == ["2"]
    assert asked == [(None,), (None,)]


def test_what_a_pattern_binds_is_an_input():
    asked = []
    answer("SELECT * { ?s <urn:p> ?x CALL one(?x) }", table("one", ["o"], asked))
    assert asked == [(Literal("o"),)]


def test_a_call_in_a_branch_binds_nothing_outside():
    query = "SELECT * { ?s ?p ?o { CALL one(?x) } UNION { ?s <urn:none> ?y } }"
    found = answer(query, table("one", ["1"]))
    assert [set(binding) for binding in found.bindings] == [{"s", "p", "o"}]


def test_a_failed_call_leaves_open_whether_an_optional_stands_alone():
    bad = function_operator("bad", ["x"], fails)
    for query in (
        "SELECT * { ?s ?p ?o OPTIONAL { CALL bad(?x) } FILTER(!BOUND(?x)) }",
        "SELECT * { ?s ?p ?o OPTIONAL { { CALL bad(?x) } } FILTER(!BOUND(?x)) }",
        "SELECT * { ?s ?p ?o OPTIONAL { ?s ?p ?o { CALL bad(?x) OPTIONAL { ?o <urn:none> ?s } } } FILTER(!BOUND(?x)) }",
    ):
        found = answer(query, bad)
        assert not found.bindings, query
        assert [str(failure) for failure in found.failures] == [
            "urn:p: the operator bad failed: RuntimeError: no answer"
        ]


def test_a_call_past_its_time_is_unknown():
    ended = threading.Event()

    def hangs(publication, arguments):
        ended.wait(300)
        return True

    slow = function_operator("slow", ["x"], hangs)
    try:
        for query in ("ASK { ?s ?p ?o CALL slow(1) }", "ASK { ?s ?p ?o FILTER(!op:slow(1)) }"):
            found = answer(query, slow, settings=Settings(operator_seconds=1))
            assert not found.bindings
            (failure,) = found.failures
            assert "no answer within 1 s (operator_seconds)" in str(failure)
    finally:
        ended.set()


def test_the_helper_thread_is_kept_and_ends_with_its_owner():
    assert within(60, lambda: threading.current_thread()) is within(60, lambda: threading.current_thread())
    helpers = []
    owner = threading.Thread(target=lambda: helpers.append(within(60, threading.current_thread)))
    owner.start()
    owner.join()
    helpers[0].join(300)
    assert not helpers[0].is_alive()
