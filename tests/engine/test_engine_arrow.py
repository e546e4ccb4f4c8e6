"""Arrow in, Arrow out: publications come back as they were, and a bad row refuses itself alone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.config import Settings
from triplewire.encode.schema import PUBLICATIONS, from_batch, to_batch
from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Triple

A, B = IRI("http://a.example/"), IRI("http://b.example/p")
WHEN = dt.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=dt.UTC)

texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)
iris = st.from_regex(r"[a-z]{1,3}:[^\s<>\"{}|^`\\\x00-\x20]{0,6}", fullmatch=True).map(IRI)
blanks = st.from_regex(r"[a-z0-9]{1,3}", fullmatch=True).map(BlankNode)
literals = st.one_of(
    texts.map(Literal),
    st.builds(Literal, texts, iris.map(lambda iri: iri.value)),
    st.builds(Literal.tagged, texts, st.sampled_from(["en", "de-AT"])),
)
triples = st.builds(Triple, iris | blanks, iris, iris | blanks | literals)
publications = st.builds(
    Publication,
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8),
    st.lists(triples, max_size=4).map(tuple),
    texts,
    st.none() | st.just(WHEN),
)


@given(st.lists(publications, max_size=4), st.integers(0, 4))
def test_round_trip(given_publications: list[Publication], start: int) -> None:
    batch = to_batch(given_publications)
    assert batch.schema == PUBLICATIONS
    assert list(from_batch(batch)) == given_publications
    assert list(from_batch(batch.slice(start))) == given_publications[start:]


def test_other_arrow_types_for_the_same_columns() -> None:
    publication = Publication("urn:p", (Triple(A, B, Literal("5", XSD + "integer")),), published=WHEN)
    triple = pa.struct([("o", pa.large_string()), ("p", pa.large_string()), ("s", pa.large_string())])
    schema = pa.schema(
        [
            ("published", pa.timestamp("ns", tz="Europe/Vienna")),
            ("triples", pa.large_list(triple)),
            ("id", pa.large_string()),
            ("more", pa.int8()),
        ]
    )
    rows = [{**to_batch([publication]).to_pylist()[0], "more": 1}]
    assert list(from_batch(pa.RecordBatch.from_pylist(rows, schema=schema))) == [publication]


def row(**changes: Any) -> dict[str, Any]:
    return {"id": "bad", "source": None, "published": None, "triples": []} | changes


def spo(s: str | None, p: str | None, o: str | None) -> list[dict[str, str | None]]:
    return [{"s": s, "p": p, "o": o}]


BAD_ROWS = {
    "no id": (row(id=None), "has no id"),
    "empty id": (row(id=""), "has no id"),
    "no triples": (row(triples=None), "triples are null"),
    "literal subject": (row(triples=spo('"x"', str(B), str(A))), 'the subject "x" is a literal'),
    "blank predicate": (row(triples=spo(str(A), "_:b", str(A))), "the predicate _:b is no IRI"),
    "null object": (row(triples=spo(str(A), str(B), None)), "a triple lacks a term"),
    "null triple": (row(triples=[None]), "a triple lacks a term"),
    "no notation": (row(triples=spo(str(A), str(B), "http://a")), "is no term in N-Triples notation"),
    "open string": (row(triples=spo(str(A), str(B), '"a')), "is no term in N-Triples notation"),
    "wrong escape": (row(triples=spo(str(A), str(B), r'"\q"')), r"\q is no escape"),
    "beyond Unicode": (row(triples=spo(str(A), str(B), r'"\U00110000"')), ""),
    "too many triples": (row(triples=spo(str(A), str(B), '"1"') * 3), "3 triples, 2 are allowed"),
}


@pytest.mark.parametrize(("bad", "reason"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_a_bad_row_refuses_itself_alone(bad: dict[str, Any], reason: str) -> None:
    schema = pa.schema([field.with_nullable(True) for field in PUBLICATIONS])
    good = [row(id="first"), row(id="last", triples=spo(str(A), str(B), "_:b"))]
    batch = pa.RecordBatch.from_pylist([good[0], bad, good[1]], schema=schema)
    refusals: list[Refusal] = []
    read = list(from_batch(batch, settings=Settings(max_triples=2), on_refusal=refusals.append))
    assert [publication.id for publication in read] == ["first", "last"]
    assert read[1].triples == (Triple(A, B, BlankNode("b")),)
    assert [(r.kind, r.where) for r in refusals] == [("publication", "(record 2)")]
    assert reason in refusals[0].reason
    with pytest.raises(ReadError):
        list(from_batch(batch, settings=Settings(max_triples=2)))


WRONG_BATCHES = {
    "no id": pa.record_batch({"triples": pa.array([[]], PUBLICATIONS.field("triples").type)}),
    "no triples": pa.record_batch({"id": ["a"]}),
    "triples are text": pa.record_batch({"id": ["a"], "triples": ["<a:a> <a:b> <a:c> ."]}),
    "triples lack a part": pa.record_batch({"id": ["a"], "triples": [[{"s": "<a:a>", "p": "<a:b>"}]]}),
    "id is a number": pa.record_batch({"id": [1], "triples": pa.array([[]], PUBLICATIONS.field("triples").type)}),
    "published is text": pa.record_batch(
        {"id": ["a"], "triples": pa.array([[]], PUBLICATIONS.field("triples").type), "published": ["yesterday"]}
    ),
}


@pytest.mark.parametrize("batch", WRONG_BATCHES.values(), ids=WRONG_BATCHES.keys())
def test_a_batch_of_other_columns_is_refused(batch: pa.RecordBatch) -> None:
    with pytest.raises(ReadError, match="column") as caught:
        list(from_batch(batch, on_refusal=lambda refusal: None))
    assert "PUBLICATIONS" in caught.value.remedy
