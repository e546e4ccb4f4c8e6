"""JSON-LD contexts that are at hand: bundled ones, and files that the user names. Nothing is fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from triplewire.errors import ReadError
from triplewire.model.terms import IRI, RDF_TYPE, XSD, Literal, Triple
from triplewire.read import read_document
from triplewire.read.rdf.contexts import BUNDLED, FOLDER, ContextLoader

SCHEMA, ACTIVITIES = "http://schema.org/", "https://www.w3.org/ns/activitystreams#"
PERSON = {
    "@id": "http://e.org/p",
    "@type": "Person",
    "name": "Ada",
    "url": "http://e.org/ada",
    "birthDate": "1815-12-10",
}
PERSON_TRIPLES = {
    Triple(IRI("http://e.org/p"), RDF_TYPE, IRI(SCHEMA + "Person")),
    Triple(IRI("http://e.org/p"), IRI(SCHEMA + "name"), Literal("Ada")),
    Triple(IRI("http://e.org/p"), IRI(SCHEMA + "url"), IRI("http://e.org/ada")),
    Triple(IRI("http://e.org/p"), IRI(SCHEMA + "birthDate"), Literal("1815-12-10", SCHEMA + "Date")),
}


@pytest.mark.parametrize(
    "address",
    [
        "https://schema.org",
        "http://schema.org/",
        "https://www.schema.org/",
        "http://schema.org/docs/jsonldcontext.jsonld",
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
def test_schema_org(address: str, escaped: bool) -> None:
    text = json.dumps({"@context": address, **PERSON})
    (publication,) = read_document((text.replace("/", "\\/") if escaped else text).encode(), "a.jsonld")
    assert set(publication.triples) == PERSON_TRIPLES


def test_activity_streams() -> None:
    note = {
        "@context": ["https://www.w3.org/ns/activitystreams", {"own": "http://e.org/own"}],
        "id": "http://e.org/n",
        "type": "Note",
        "attributedTo": "http://e.org/ada",
        "published": "2024-05-01T10:00:00Z",
        "own": "x",
    }
    (publication,) = read_document(json.dumps(note).encode(), "a.json")
    subject = IRI("http://e.org/n")
    assert set(publication.triples) == {
        Triple(subject, RDF_TYPE, IRI(ACTIVITIES + "Note")),
        Triple(subject, IRI(ACTIVITIES + "attributedTo"), IRI("http://e.org/ada")),
        Triple(subject, IRI(ACTIVITIES + "published"), Literal("2024-05-01T10:00:00Z", XSD + "dateTime")),
        Triple(subject, IRI("http://e.org/own"), Literal("x")),
    }


def test_a_file_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "context.json"
    file.write_text('{"@context": {"name": "http://e.org/name"}}')
    data = b'{"@context": "https://e.org/c", "@id": "http://e.org/a", "name": "x"}'
    (publication,) = read_document(data, "a.json", loader=ContextLoader({"https://e.org/c": file}))
    assert publication.triples == (Triple(IRI("http://e.org/a"), IRI("http://e.org/name"), Literal("x")),)


@pytest.mark.parametrize(
    "context", ['"https://e.org/c"', '["https://e.org/c"]', '[{"@base": "http://b.org/"}, "https://e.org/c"]']
)
def test_the_base_of_a_loaded_context_is_not_the_documents(context: str) -> None:
    def load(address: str) -> bytes:
        return b'{"@context": [{"@base": "http://wrong.org/"}, {"name": "http://e.org/name", "@base": null}]}'

    data = f'{{"@context": {context}, "@id": "a", "name": "x"}}'.encode()
    (publication,) = read_document(data, "http://d.org/doc", loader=load)
    base = "http://b.org/" if "@base" in context else "http://d.org/"
    assert publication.triples == (Triple(IRI(base + "a"), IRI("http://e.org/name"), Literal("x")),)


@pytest.mark.parametrize("more", ["", '"https://schema.org", '])
def test_other_contexts_are_not_fetched(more: str) -> None:
    data = f'{{"@context": [{more}"https://w3id.org/security/v1"], "@id": "http://e.org/a", "name": "x"}}'.encode()
    with pytest.raises(ReadError, match="fetched") as raised:
        read_document(data, "a.json")
    assert "--context" in str(raised.value)


def test_every_file_is_named_and_has_its_source() -> None:
    sources = (FOLDER / "SOURCES.txt").read_text(encoding="utf-8")
    assert {*BUNDLED.values(), "SOURCES.txt"} == {file.name for file in FOLDER.iterdir()}
    assert all(name in sources for name in BUNDLED.values())


def test_json_that_says_nothing_is_refused() -> None:
    with pytest.raises(ReadError, match="this JSON says nothing"):
        read_document(b'{"error": "rate limit exceeded"}', "feed.json")
