"""The evaluation tests of the W3C suites: the data file is the publication, the query the subscription.

A right query that cannot stand is listed, each exactly once: what the language refuses in `sparql_refusals.tsv`, what
registration refuses in `evaluation_refusals.tsv`. Terms are compared as they are written, but for the computed numbers
of `BY_VALUE`, where the suites follow the canonical forms of an older XML Schema.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyoxigraph
import pytest

from shared_data import members
from triplewire import plugins
from triplewire.engine.result import construct
from triplewire.errors import UnsupportedQuery
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.values.compare import value_of
from triplewire.languages import parse
from triplewire.languages.context import Context
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple, made_blank, made_iri, made_literal

ARCHIVES = ("sparql10-a", "sparql11-a")
BASE = "http://example.org/base/"
BY_VALUE = {"sparql11/functions/coalesce01", "sparql11/functions/plus-1-corrected"}  # "3.0" where XSD 1.1 has "3"
NO_DATA = {"sparql10/graph/dawg-graph-02"}  # asks the default graph of a dataset that has named graphs only
RESULT_SET = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
RESULT_FORMATS = {
    ".srx": pyoxigraph.QueryResultsFormat.XML,
    ".srj": pyoxigraph.QueryResultsFormat.JSON,
    ".tsv": pyoxigraph.QueryResultsFormat.TSV,
}


class Case(NamedTuple):
    """One evaluation test, and the files of its suite."""

    name: str
    query: str
    data: tuple[str, ...]
    result: str
    files: dict[str, bytes]


@cache
def cases() -> dict[str, Case]:
    found = {}
    for archive in ARCHIVES:
        files = dict(members(f"05-w3c-suites/{archive}.tar.gz"))
        index = next(name for name in files if name.endswith("index.json"))
        below = {name.removeprefix(index.removesuffix("index.json")): data for name, data in files.items()}
        for test in json.loads(files[index]):
            if test["type"] == "QueryEvaluationTest":
                name = f"{test['suite']}/{test['dir']}/{test['test']}"
                text = below[test["query"]].decode("utf-8")
                found[name] = Case(name, text, tuple(test["data"]), test["result"], below)
    return found


@cache
def outcomes() -> tuple[dict[str, str], dict[str, str], list[str]]:
    """What the language refuses, what registration refuses, and what stands."""
    language, registration, standing = {}, {}, []
    compile_text = plugins.find("language", "sparql")
    for case in cases().values():
        try:
            compile_text(case.query, Context(base=BASE))
        except UnsupportedQuery as error:
            language[case.name] = error.what.removesuffix(" is not supported in a standing query")
            continue
        try:
            parse(case.query, base=BASE)
        except UnsupportedQuery as error:
            registration[case.name] = error.what
            continue
        standing.append(case.name)
    return language, registration, standing


def listed(file: str) -> dict[str, str]:
    lines = Path(__file__).with_name(file).read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def test_refused_queries_are_listed() -> None:
    language, registration, standing = outcomes()
    assert registration == listed("evaluation_refusals.tsv")
    assert language.items() <= listed("sparql_refusals.tsv").items()
    assert len(cases()) == 337
    assert len(standing) >= 230


def test_standing_queries_are_answered() -> None:
    answered = Counter(kind_of_failure(cases()[name]) for name in outcomes()[2] if name not in NO_DATA)
    right = answered.pop("")
    assert not answered
    assert right >= 230


def kind_of_failure(case: Case) -> str:
    """Nothing, or the test's name and what was expected and found."""
    assert len(case.data) == 1, case.name
    triples = tuple(graph_of(case, case.data[0]))
    subscription = parse(case.query, id=case.name, base=BASE)
    answer = evaluate(subscription, Publication(case.name, triples), World())
    expected = expected_of(case)
    found: object
    if isinstance(expected, bool):
        found = bool(answer.bindings)
    elif subscription.construct is not None:
        expected = isomorphic_form(graph_of(case, case.result))
        found = isomorphic_form(construct(subscription.construct, answer.bindings, 1 << 20)[0])
    else:
        compared = by_value if case.name in BY_VALUE else written
        expected = {frozenset((name, compared(term)) for name, term in row.items()) for row in expected}
        found = {frozenset((name, compared(term)) for name, term in row.items()) for row in answer.bindings}
    return "" if found == expected else f"{case.name}\n{case.query}\nexpected: {expected}\nfound: {found}"


def written(term: Term) -> object:
    """The term; a blank node has no name outside its file."""
    return "blank node" if isinstance(term, BlankNode) else term


def by_value(term: Term) -> object:
    return value_of(term) if isinstance(term, Literal) else written(term)


# --- the suites' files ---------------------------------------------------------------------------------------------


def term_of(term: Any) -> Term:
    if isinstance(term, pyoxigraph.NamedNode):
        return made_iri(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return made_blank(term.value)
    if term.language:
        return Literal.tagged(term.value, term.language)
    return made_literal(term.value, term.datatype.value)


def graph_of(case: Case, name: str) -> list[Triple]:
    syntax = pyoxigraph.RdfFormat.TURTLE if name.endswith((".ttl", ".n3")) else pyoxigraph.RdfFormat.RDF_XML
    triples = []
    for quad in pyoxigraph.parse(case.files[name], syntax, base_iri=BASE):
        subject, predicate, object_ = term_of(quad.subject), term_of(quad.predicate), term_of(quad.object)
        assert not isinstance(subject, Literal)
        assert isinstance(predicate, IRI)
        triples.append(Triple(subject, predicate, object_))
    return triples


def expected_of(case: Case) -> bool | list[dict[str, Term]]:
    """The expected solutions, or the answer to ASK."""
    format_ = RESULT_FORMATS.get(Path(case.result).suffix)
    if format_ is not None:
        results = pyoxigraph.parse_query_results(case.files[case.result], format_)
        if isinstance(results, pyoxigraph.QueryBoolean):
            return bool(results)
        assert isinstance(results, pyoxigraph.QuerySolutions)
        names = [variable.value for variable in results.variables]
        return [{n: term_of(row[n]) for n in names if row[n] is not None} for row in results]
    graph = Publication(case.result, tuple(graph_of(case, case.result))).graph

    def objects(subject: Any, name: str) -> list[Any]:
        return [triple.object for triple in graph.find(subject, IRI(RESULT_SET + name), None)]

    for said in objects(None, "boolean"):
        return bool(said.lexical == "true")
    return [
        {objects(b, "variable")[0].lexical: objects(b, "value")[0] for b in objects(solution, "binding")}
        for solution in objects(None, "solution")
    ]


def isomorphic_form(triples: Any) -> set[str]:
    """The graph with canonical names for its blank nodes (RDFC-1.0)."""
    dataset = pyoxigraph.Dataset()
    text = "\n".join(map(str, triples))
    for quad in pyoxigraph.parse(text.encode("utf-8"), pyoxigraph.RdfFormat.N_TRIPLES):
        dataset.add(quad)
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.RDFC_1_0)
    return set(map(str, dataset))


@pytest.mark.parametrize("name", sorted(BY_VALUE | NO_DATA))
def test_exceptions_exist(name: str) -> None:
    assert name in cases()
