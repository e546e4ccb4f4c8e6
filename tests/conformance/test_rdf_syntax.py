"""The W3C syntax tests of RDF/XML, Turtle, N-Triples and JSON-LD (deserialisation), each suite as one test.

Positive tests are read as any file is, so that they test recognition as well; negative ones are given to the parser of
their syntax, because some are right in a twin of it. What is not passed is listed with its reason in
`tests/cases/conformance/rdf-syntax.toml`, and checked both ways.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from oxigraph_terms import theirs
from shared_data import members
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.read import read_document
from triplewire.read.decoded import Syntax
from triplewire.read.process.frames import Request
from triplewire.read.process.parsing import CLIENT

LISTED = Path(__file__).resolve().parent.parent / "cases" / "conformance" / "rdf-syntax.toml"
RDF_TESTS = "https://w3c.github.io/rdf-tests/rdf/rdf11/"
DOCUMENT = "urn:document"


def _archive(name: str) -> dict[str, bytes]:
    return {member.removeprefix("./"): data for member, data in members(f"05-w3c-suites/{name}-a.tar.gz")}


def _canonical(quads: Iterable[Any]) -> list[str]:
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return sorted(map(str, dataset))


def _quads(publications: Iterable[Publication]) -> list[str]:
    def graph(name: str) -> Any:
        if name == DOCUMENT:
            return ox.DefaultGraph()
        label = name.removeprefix(DOCUMENT + "#")
        return ox.NamedNode(name) if label == name else ox.BlankNode(label)

    return _canonical(
        ox.Quad(theirs(t.subject), theirs(t.predicate), theirs(t.object), graph(p.id))
        for p in publications
        for t in p.triples
    )


def _refused_by(syntax: Syntax, data: bytes, base: str) -> bool:
    try:
        return bool(CLIENT.ask(Request(data, syntax, DOCUMENT, base=base, first_line=1)).piece.refused)
    except ReadError:
        return True


def _check(name: str, results: dict[str, bool], passed: int) -> None:
    listed = tomllib.loads(LISTED.read_text("utf-8"))[name]
    failed = {test for test, good in results.items() if not good}
    assert failed == set(listed), f"newly failing {failed - set(listed)}, newly passing {set(listed) - failed}"
    assert sum(results.values()) == passed


@pytest.mark.parametrize(
    ("name", "syntax", "passed"),
    [("rdf-xml", Syntax.RDF_XML, 112), ("rdf-turtle", Syntax.TURTLE, 219), ("rdf-n-triples", Syntax.N_QUADS, 47)],
)
def test_rdf(name: str, syntax: Syntax, passed: int) -> None:
    files = _archive(name)
    results = {}
    for test in json.loads(files["index.json"])["tests"]:
        data, base = files[test["action"]], f"{RDF_TESTS}{name}/{test['action']}"
        if "Negative" in test["type"]:
            results[test["test"]] = _refused_by(syntax, data, base)
            continue
        try:
            got = _quads(read_document(data, DOCUMENT, base=base))
        except ReadError:
            results[test["test"]] = False
            continue
        want = test.get("result")
        results[test["test"]] = not want or got == _canonical(ox.parse(files[want], ox.RdfFormat.N_TRIPLES))
    _check(name, results, passed)


def test_json_ld() -> None:
    files = _archive("jsonld-toRdf")
    index = json.loads(files["index.json"])
    load = _loader(files, index["baseIri"])
    results = {}
    for test in index["sequence"]:
        kinds, options = " ".join(test["@type"]), test.get("option", {})
        base = options.get("base", index["baseIri"] + test["input"])
        try:
            got = _quads(read_document(files[test["input"]], DOCUMENT, base=base, loader=load))
        except ReadError:
            results[test["@id"]] = "Negative" in kinds
            continue
        if "Evaluation" in kinds and "Negative" not in kinds:
            results[test["@id"]] = got == _expected(files[test["expect"]])
        else:
            results[test["@id"]] = "Negative" not in kinds
    _check("jsonld-toRdf", results, 308)


def _loader(files: dict[str, bytes], base: str) -> Callable[[str], bytes]:
    return lambda address: files[address.removeprefix(base)]


def _expected(data: bytes) -> list[str]:
    try:
        return _canonical(ox.parse(data, ox.RdfFormat.N_QUADS))
    except SyntaxError:  # generalized RDF
        return ["no RDF 1.1"]


def test_json_ld_without_a_loader_names_the_context() -> None:
    files = _archive("jsonld-toRdf")
    refused = []
    for test in json.loads(files["index.json"])["sequence"]:
        try:
            read_document(files[test["input"]], DOCUMENT)
        except ReadError as error:
            if "would have to be fetched" in str(error):
                refused.append(test["@id"])
    expected = "#tc031 #tc034 #te128 #ter03 #ter04 #ter05 #tso06 #tso07 #tso08 #tso10 #tso12 #tso13"
    assert " ".join(refused) == expected
