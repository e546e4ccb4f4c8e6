"""The RDQL tests of Jena: each query is a subscription, each model a publication, which FROM names.

RDF 1.1 has no literal with both a language and a datatype: of one in a model the datatype counts. A blank node has no
name outside its file.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePosixPath

import pytest

from shared_data import members
from triplewire import IRI, Engine, Publication, plugins, read
from triplewire.languages import recognised
from triplewire.model.terms import BlankNode, Literal, Term

SUITE = "07-query-sets/rdql-jena-suite.tar.gz"
RESULT_SET = "http://jena.hpl.hp.com/2003/03/result-set#"
_BOTH = re.compile(r'("value")@en(\^\^)')
Row = frozenset[tuple[str, object]]


@cache
def files() -> dict[str, str]:
    return {PurePosixPath(name).name: data.decode("utf-8") for name, data in members(SUITE)}


def models() -> list[Publication]:
    """The models that queries name, each from a file of its name."""
    made = []
    for name, text in files().items():
        if name.startswith(("model", "vc-db")):
            (publication,) = read(_BOTH.sub(r"\1\2", text).encode(), base=f"http://models.example/{name}")
            made.append(Publication(name, publication.triples, source=name))
    return made


def without_name(term: Term) -> object:
    return "blank node" if isinstance(term, BlankNode) else term


def expected(text: str) -> set[Row]:
    """The rows of a result set; a variable that is undefined is left out."""
    (result,) = read(text.encode(), base="http://models.example/")

    def value(subject: Term, name: str) -> Term:
        (found,) = result.graph.objects(subject, IRI(RESULT_SET + name))
        return found

    rows = set()
    for solution in result.graph.find(None, IRI(RESULT_SET + "solution"), None):
        row = {}
        for binding in result.graph.objects(solution.object, IRI(RESULT_SET + "binding")):
            name, term = value(binding, "variable"), value(binding, "value")
            assert isinstance(name, Literal)
            if term != IRI(RESULT_SET + "undefined"):
                row[name.lexical] = without_name(term)
        rows.add(frozenset(row.items()))
    return rows


@pytest.mark.parametrize("matcher", plugins.names("matcher"))
def test_every_query_has_its_results(matcher: str) -> None:
    queries = {name.removeprefix("test-"): text for name, text in files().items() if name.startswith("test-")}
    assert len(queries) == 63
    engine = Engine(matcher=matcher)
    for name, text in queries.items():
        engine.subscribe(text, "rdql", id=name)
    found: dict[str, set[Row]] = {name: set() for name in queries}
    for match in engine.match(models()):
        rows = (frozenset((name, without_name(term)) for name, term in row.items()) for row in match.bindings)
        found[match.subscription] |= {row for row in rows if row}
    wrong = {}
    for name in queries:
        wanted = expected(files()[f"result-{name}.n3"])
        if found[name] != wanted:
            wrong[name] = f"{queries[name]}\nexpected {wanted}\nfound {found[name]}"
    assert sum(map(len, found.values())) > 100
    assert not wrong, "\n".join(wrong.values())


def test_examples_are_taken_for_rdql() -> None:
    examples = [text for name, text in files().items() if name.endswith(".rdql")]
    assert len(examples) == 16
    for text in examples:
        assert recognised(text) == "rdql" or not re.search(r"\bUSING\b|\bAND\b", text)
        Engine().subscribe(text, "rdql")
