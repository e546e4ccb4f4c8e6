"""The door of SPARQL: its protocol, its results as rdflib reads them, and who sees what."""

from __future__ import annotations

import csv
import io
import json
import random
import tomllib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rdflib
from hub_tools import ITEM, TOKEN, Said, ask, published, served
from rdflib.query import Result

from amounts import usually
from triplewire.broker.broker import Broker
from triplewire.broker.publications.kept_contents import read_body
from triplewire.broker.publications.solutions import Answers, answer
from triplewire.model.terms import IRI, BlankNode, Literal, Term
from triplewire.service.sparql import CSV, JSON, TSV, WRITERS, XML, chosen, to_csv

CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "sparql_door" / "refused.toml").read_text("utf-8"))["case"]
TITLES = "SELECT ?title WHERE { ?item rss:title ?title }"


@pytest.fixture
def broker(database_url: str) -> Iterator[Broker]:
    """A broker with three publications."""
    with Broker.open(database_url, b"secret of a test") as broker:
        published(broker, 1, 2, 3)
        yield broker


@pytest.fixture
def url(broker: Broker) -> Iterator[str]:
    """Its service."""
    with served(broker) as url:
        yield url


def titles(said: Said) -> list[str]:
    """The titles in an answer as JSON."""
    assert said.status == 200, said.body
    return [row["title"]["value"] for row in json.loads(said.body)["results"]["bindings"]]


def test_a_query_comes_in_four_ways(url: str) -> None:
    query, parameters = TITLES.encode(), urllib.parse.urlencode({"query": TITLES})
    direct = {"token": TOKEN, "Content_Type": "application/sparql-query"}
    found = [
        titles(ask(f"{url}/sparql?{parameters}", token=TOKEN)),
        titles(ask(f"{url}/sparql", {"query": TITLES}, token=TOKEN)),
        titles(ask(f"{url}/sparql", query, **direct)),
        titles(ask(f"{url}/sparql", query, method="QUERY", **direct)),
    ]
    assert found == [["Olympic games 3", "Olympic games 2", "Olympic games 1"]] * 4  # the newest first
    doors = json.loads(ask(f"{url}/openapi.json").body)["paths"]
    assert doors["/sparql"]["get"]["parameters"][0]["name"] == "query"
    for door in ("/sparql", "/hub", "/RPC2"):
        assert doors[door]["post"]["requestBody"]["content"]


def test_what_is_not_asked_as_the_protocol_has_it_is_refused(url: str) -> None:
    address = f"{url}/sparql?" + urllib.parse.urlencode({"query": TITLES})
    graph = {"default-graph-uri": "http://a.example/"}
    refused = {
        "no token": (ask(address), 401),
        "a wrong token": (ask(address, token="x" * 40), 401),
        "no query": (ask(f"{url}/sparql", token=TOKEN), 400),
        "two queries": (ask(f"{address}&{address.partition('?')[2]}", token=TOKEN), 400),
        "a data set": (ask(f"{url}/sparql", {"query": TITLES, **graph}, token=TOKEN), 400),
        "a named graph": (ask(f"{address}&named-graph-uri=http://a.example/", token=TOKEN), 400),
        "an update as a form": (ask(f"{url}/sparql", {"update": "CLEAR ALL"}, token=TOKEN), 400),
        "an update": (ask(f"{url}/sparql", b"CLEAR ALL", token=TOKEN, Content_Type="application/sparql-update"), 400),
        "another type": (ask(f"{url}/sparql", TITLES.encode(), token=TOKEN, Content_Type="text/plain"), 415),
        "no UTF-8": (ask(f"{url}/sparql", b"\xff", token=TOKEN, Content_Type="application/sparql-query"), 400),
        "another form": (ask(address, token=TOKEN, Accept="image/png"), 406),
    }
    assert {name: said.status for name, (said, _) in refused.items()} == {
        name: status for name, (_, status) in refused.items()
    }


@pytest.mark.parametrize("case", CASES, ids=[case["query"][:20] for case in CASES])
def test_what_is_no_query_is_refused_with_its_place(url: str, case: dict[str, str]) -> None:
    said = ask(f"{url}/sparql", {"query": case["query"]}, token=TOKEN)
    assert said.status == 400
    problem = json.loads(said.body)
    assert case["text"].lower() in json.dumps(problem).lower()


def test_each_publication_is_a_graph_of_its_own(url: str, broker: Broker) -> None:
    two = 'SELECT ?a ?b WHERE { ?a rss:title "Olympic games 1" . ?b rss:title "Olympic games 2" }'
    assert json.loads(ask(f"{url}/sparql", {"query": two}, token=TOKEN).body)["results"]["bindings"] == []
    blank = "SELECT ?who WHERE { ?who <http://xmlns.com/foaf/0.1/name> ?name }"
    for number in range(2):
        text = f'<urn:doc:{number}> <urn:by> [ <http://xmlns.com/foaf/0.1/name> "Ann" ] .'
        taken = broker.publish(read_body(text.encode(), f"http://a.example/{number}", broker.settings).publications)
        broker.wait([one.number for one in taken], 300)
    rows = json.loads(ask(f"{url}/sparql", {"query": blank}, token=TOKEN).body)["results"]["bindings"]
    assert len({row["who"]["value"] for row in rows}) == 2, "blank nodes of two publications are two"


def test_equal_solutions_are_told_once_and_changed_contents_are_not_kept(url: str, broker: Broker) -> None:
    every = {"query": "SELECT ?d WHERE { ?i rss:description ?d }"}
    assert len(json.loads(ask(f"{url}/sparql", every, token=TOKEN).body)["results"]["bindings"]) == 1
    came = read_body(ITEM.format(n=1).replace("games 1", "swimming").encode(), "", broker.settings)
    broker.wait([one.number for one in broker.publish(came.publications)], 300)
    assert titles(ask(f"{url}/sparql", {"query": TITLES}, token=TOKEN)) == [
        "Olympic swimming", "Olympic games 3", "Olympic games 2",
    ]  # fmt: skip


def test_ask(url: str) -> None:
    for text, truth in (("Olympic games 2", True), ("nothing", False)):
        query = {"query": f'ASK {{ ?i rss:title "{text}" }}'}
        assert json.loads(ask(f"{url}/sparql", query, token=TOKEN).body) == {"head": {}, "boolean": truth}
        said = ask(f"{url}/sparql", query, token=TOKEN, Accept="application/sparql-results+xml, text/csv;q=2")
        assert Result.parse(io.BytesIO(said.body), format="xml").askAnswer is truth


def test_readers_are_respected(url: str, broker: Broker) -> None:
    published(broker, 4, readers=["ann"])
    tokens = {name: broker.new_token(name) for name in ("ann", "bob")}
    found = {name: titles(ask(f"{url}/sparql", {"query": TITLES}, token=token)) for name, token in tokens.items()}
    assert ("Olympic games 4" in found["ann"], "Olympic games 4" in found["bob"]) == (True, False)
    assert len(found["bob"]) == 3
    secret = {"query": 'ASK { ?i rss:title "Olympic games 4" }'}
    said = {name: json.loads(ask(f"{url}/sparql", secret, token=token).body) for name, token in tokens.items()}
    assert (said["ann"]["boolean"], said["bob"]["boolean"]) == (True, False)


def test_an_answer_that_is_cut_says_so(broker: Broker) -> None:
    whole = answer(broker, TITLES, "owner")
    assert (len(whole.rows), whole.cut) == (3, "")
    cut = answer(broker, TITLES, "owner", most_rows=2)
    assert (cut.rows, bool(cut.cut)) == (whole.rows[:2], True)
    clock = iter([0.0, 100.0])
    assert "not all publications" in answer(broker, TITLES, "owner", clock=lambda: next(clock)).cut


def test_results_are_as_rdflib_reads_them() -> None:
    chance = random.Random(4)
    for _ in range(usually(100, 1_000)):
        names = tuple(chance.sample(["a", "b", "c_1", "\u00e4"], chance.randint(1, 4)))
        rows: list[dict[str, Term]] = [
            {name: _term(chance) for name in names if chance.random() < 0.8} for _ in range(chance.randint(0, 4))
        ]
        found = Answers(names, rows, None, "", 0)
        wanted = [{name: _of_rdflib(term) for name, term in row.items()} for row in rows]
        for kind, form in ((JSON, "json"), (XML, "xml"), (TSV, "tsv")):
            read = Result.parse(io.BytesIO(WRITERS[kind](found).encode()), format=form)
            assert [str(name) for name in read.vars or []] == list(names)
            said = [_row(each) for each in read.bindings if each or form != "tsv"]
            assert said == [_row(row) for row in wanted if row or form != "tsv"], form  # rdflib leaves out some
        lines = list(csv.reader(io.StringIO(to_csv(found), newline="")))
        assert lines[0] == list(names)
        assert lines[1:] == [[_value(row.get(name)) for name in names] for row in rows]


def _term(chance: random.Random) -> Term:
    text = "".join(chance.choice("ab \"'\\<&>,;\t\n\r\u00e9\u20ac\U0001f600]") for _ in range(chance.randint(0, 8)))
    made = chance.randrange(5)
    if made == 0:
        return IRI(f"http://a.example/{chance.randrange(9)}?q=\u00e9&x")
    if made == 1:
        return BlankNode(f"p{chance.randrange(9)}-b0")
    if made == 2:
        return Literal.tagged(text, "de-at")
    return Literal(text, "http://a.example/type" if made == 3 else "http://www.w3.org/2001/XMLSchema#string")


def _of_rdflib(term: Term) -> Any:
    if isinstance(term, IRI):
        return rdflib.URIRef(term.value)
    if isinstance(term, BlankNode):
        return rdflib.BNode(term.label)
    if term.language:
        return rdflib.Literal(term.lexical, lang=term.language)
    plain = term.datatype.endswith("#string")
    return rdflib.Literal(term.lexical, datatype=None if plain else rdflib.URIRef(term.datatype), normalize=False)


def _row(row: Any) -> dict[str, tuple[str, ...]]:
    """A row to be compared. rdflib renames blank nodes."""
    said: dict[str, tuple[str, ...]] = {}
    for name, term in row.items():
        if isinstance(term, rdflib.Literal):
            said[str(name)] = "literal", str(term), str(term.language or ""), str(term.datatype or "")
        else:
            said[str(name)] = ("blank",) if isinstance(term, rdflib.BNode) else ("iri", str(term))
    return said


def _value(term: Term | None) -> str:
    if term is None:
        return ""
    return term.lexical if isinstance(term, Literal) else str(term).strip("<>")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("text/html, */*;q=0.1", JSON),
        ("application/json", JSON),
        ("application/xml;q=0.5, text/csv;q=0.9", CSV),
        ("text/tab-separated-values", TSV),
        ("text/*", CSV),
        ("application/*;q=0.2, text/xml", XML),
        ("text/csv;q=0", None),
        ("text/csv;q=x", None),
        ("application/rdf+xml", None),
    ],
)
def test_the_form_of_results_is_negotiated(accept: str, kind: str | None) -> None:
    assert chosen(accept, False) == kind
