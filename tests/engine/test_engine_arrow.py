"""Arrow in, Arrow out: publications come back as they were, and a bad row refuses itself alone."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.config import Settings
from triplewire.encode.schema import MATCHES, PUBLICATIONS, from_batch, to_batch
from triplewire.engine import Engine
from triplewire.errors import ReadError, Refusal
from triplewire.model.match import bindings_text
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Triple, made_literal

A, B = IRI("http://a.example/"), IRI("http://b.example/p")
WHEN = dt.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=dt.UTC)

texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)
iris = st.from_regex(r"[a-z]{1,3}:[^\s<>\"{}|^`\\\x00-\x20]{0,6}", fullmatch=True).map(IRI)
blanks = st.from_regex(r"[a-z0-9]{1,3}", fullmatch=True).map(BlankNode)
literals = st.one_of(
    texts.map(Literal),
    st.builds(made_literal, texts, iris.map(lambda iri: iri.value)),
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


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_an_instant_without_a_zone_is_one_of_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the zone of the machine, and however the publication comes."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    engine = Engine()
    engine.subscribe("SELECT ?now { ?s ?p ?o BIND(NOW() AS ?now) }", id="now")
    publication = Publication("urn:p", (Triple(A, B, B),), published=WHEN.replace(tzinfo=None))
    try:
        (match,) = engine.match(publication)
        rows = engine.match_batch(to_batch([publication]))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert match.bindings == ({"now": Literal("2024-02-29T12:30:00.123456Z", XSD + "dateTime")},)
    assert rows.column("bindings").to_pylist() == [bindings_text(match.bindings)]


@pytest.mark.parametrize("why", [False, True])
def test_the_columns_of_no_match_are_those_of_some(why: bool) -> None:
    engine = Engine()
    engine.subscribe("SELECT * { ?s <urn:q> ?o }", id="q")
    none = to_batch([Publication("urn:p", (Triple(A, B, B),))])
    some = to_batch([Publication("urn:p", (Triple(A, IRI("urn:q"), B),))])
    assert engine.match_batch(none, why=why).schema == engine.match_batch(some, why=why).schema
    assert engine.match_batch(to_batch([]), why=why).schema == engine.match_batch(some, why=why).schema


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
    "published is a list": pa.record_batch(
        {"id": ["a"], "triples": pa.array([[]], PUBLICATIONS.field("triples").type), "published": [["2020-01-01"]]}
    ),
}


@pytest.mark.parametrize("batch", WRONG_BATCHES.values(), ids=WRONG_BATCHES.keys())
def test_a_batch_of_other_columns_is_refused(batch: pa.RecordBatch) -> None:
    with pytest.raises(ReadError, match="column") as caught:
        list(from_batch(batch, on_refusal=lambda refusal: None))
    assert "PUBLICATIONS" in caught.value.remedy


# --- rows that only memory can hold ----------------------------------------------------------------------------------

LONE = b"\xed\xa0\x80"  # U+D800 as three bytes: what UTF-8 must not have
MARK = "BAD"


def _with_bytes(column: pa.Array) -> pa.Array:
    """The column of texts with the bytes of a lone surrogate for each `MARK`."""
    raw = column.cast(pa.large_binary()).to_pylist()
    wrong = pa.array([data and data.replace(MARK.encode(), LONE) for data in raw], pa.large_binary())
    return pa.Array.from_buffers(pa.large_string(), len(wrong), wrong.buffers())


def _list_of(terms: list[pa.Array], offsets: list[int]) -> pa.Array:
    """A list column of triples with these offsets, whatever they are."""
    struct = pa.StructArray.from_arrays(terms, names=list("spo"))
    kind, buffer = pa.list_(struct.type), pa.array(offsets, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, buffer], children=[struct])


def _three_rows(**bad: Any) -> pa.RecordBatch:
    """Rows "first", "bad" and "last" of one triple each; `bad` changes the second."""
    cells = {"id": "bad", "source": "there", "s": str(A), "p": str(B), "o": '"o"', "published": WHEN} | bad
    texts = {name: _with_bytes(pa.array([_good(name, 1), cells[name], _good(name, 3)])) for name in ("id", "source")}
    terms = [_with_bytes(pa.array([_good(name, 1), cells[name], _good(name, 3)])) for name in "spo"]
    published = pa.array([WHEN, cells["published"], WHEN]) if "published" not in bad else bad["published"]
    triples = _list_of(terms, cells.get("offsets", [0, 1, 2, 3]))
    return pa.RecordBatch.from_pydict({**texts, "published": published, "triples": triples})


def _good(name: str, number: int) -> str:
    given = {"id": "first" if number == 1 else "last", "source": "here", "s": str(A), "p": str(B)}
    return given.get(name, f'"{number}"')


YEAR_10000 = pa.array([0, 253_402_300_800, 0], pa.timestamp("s", tz="UTC"))
WRITTEN = pa.array(["2024-02-29T12:30:00Z", "yesterday", "2024-03-01T00:00:00Z"])

DAMAGED = {
    "the id": ({"id": MARK}, "id '\\xed\\xa0\\x80' is not UTF-8"),
    "the source": ({"source": f"a{MARK}"}, "source"),
    "a subject": ({"s": f"<urn:{MARK}>"}, "is not UTF-8"),
    "a predicate": ({"p": f"<urn:{MARK}>"}, "is not UTF-8"),
    "an object": ({"o": f'"{MARK}"'}, "is not UTF-8"),
    "an object that is none": ({"o": None}, "a triple lacks a term"),
    "an id that is none": ({"id": None}, "has no id"),
    "a year that Python does not have": ({"published": YEAR_10000}, "date cannot be read"),
    "a text that is no date": ({"published": WRITTEN}, "date cannot be read"),
    "a list that ends before it begins": ({"offsets": [0, 2, 1, 3]}, "goes from 2 to 1"),
    "a list that ends nowhere": ({"offsets": [0, 1, 99, 3]}, "goes from"),
    "a list before the first": ({"offsets": [0, 1, -5, 3]}, "goes from"),
}


@pytest.mark.parametrize(("bad", "reason"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_row_refuses_itself_alone(bad: dict[str, Any], reason: str, matcher: str) -> None:
    """A row that is no text, no date or no list costs nothing but itself, whichever way the batch takes."""
    engine = Engine(matcher=matcher)
    engine.subscribe(f"SELECT ?o {{ ?s {B} ?o }}", id="all")
    batch = _three_rows(**bad)
    refusals: list[Refusal] = []
    rows = engine.match_batch(batch, on_refusal=refusals.append).to_pylist()
    wrong = {refusal.where: refusal for refusal in refusals}
    assert "(record 2)" in wrong
    assert reason in wrong["(record 2)"].reason
    assert {refusal.kind for refusal in refusals} == {"publication"}
    next_is_lost = "(record 3)" in wrong  # two lists share a bound
    assert next_is_lost == (reason == "goes from")
    assert {row["publication"] for row in rows} == ({"first"} if next_is_lost else {"first", "last"})
    with pytest.raises(ReadError, match="on_refusal"):
        engine.match_batch(batch)
    assert engine.match_batch(_three_rows()).column("publication").to_pylist() == ["first", "bad", "last"]


def test_a_batch_whose_texts_are_out_of_bounds_is_refused_whole() -> None:
    wrong = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\x09\0\0\0\x02\0\0\0"), pa.py_buffer(b"ab")]
    )
    batch = pa.RecordBatch.from_pydict({"id": wrong, "triples": pa.array([[], []], PUBLICATIONS.field("triples").type)})
    with pytest.raises(ReadError, match="damaged"):
        Engine(matcher="reference").match_batch(batch, on_refusal=lambda refusal: None)


def test_tables_frames_and_slices(matcher: str) -> None:
    """A table gives a table; its refusals count the rows of all its pieces."""
    engine = Engine(matcher=matcher)
    engine.subscribe(f"SELECT ?o {{ ?s {B} ?o }}", id="all")
    good, bad = _three_rows(), _three_rows(id=None)
    refusals: list[Refusal] = []
    found = engine.match_batch(pa.Table.from_batches([good, bad]), on_refusal=refusals.append)
    assert isinstance(found, pa.Table)
    assert found.schema == MATCHES
    assert [row["publication"] for row in found.to_pylist()] == ["first", "bad", "last", "first", "last"]
    assert [refusal.where for refusal in refusals] == ["(record 5)"]
    assert isinstance(engine.match_batch(good), pa.RecordBatch)
    stream = pa.RecordBatchReader.from_batches(good.schema, [good])
    assert engine.match_batch(stream).num_rows == 3
    refusals.clear()
    assert engine.match_batch(bad.slice(1, 1), on_refusal=refusals.append).num_rows == 0
    assert [refusal.where for refusal in refusals] == ["(record 1)"]


def test_a_data_frame_of_pandas(matcher: str) -> None:
    pytest.importorskip("pandas")
    engine = Engine(matcher=matcher)
    engine.subscribe(f"SELECT ?o {{ ?s {B} ?o }}", id="all")
    table = pa.Table.from_batches([_three_rows(o=None)])
    refusals: list[Refusal] = []
    matches = engine.match_batch(table.to_pandas(), on_refusal=refusals.append)
    assert matches.to_pandas()["publication"].tolist() == ["first", "last"]
    assert [refusal.where for refusal in refusals] == ["(record 2)"]


@pytest.mark.parametrize("kind", [pa.large_list, lambda one: pa.list_(one, 1)], ids=["large", "fixed"])
def test_other_lists(kind: Any) -> None:
    batch = _three_rows()
    triples = batch.column("triples").cast(kind(batch.schema.field("triples").type.value_type))
    other = batch.set_column(batch.schema.get_field_index("triples"), "triples", triples)
    assert list(from_batch(other)) == list(from_batch(batch))


def test_nanoseconds_are_cut() -> None:
    batch = _three_rows(published=pa.array([1, 2, 3], pa.timestamp("ns", tz="UTC")))
    assert {publication.published for publication in from_batch(batch)} == {dt.datetime(1970, 1, 1, tzinfo=dt.UTC)}


def test_a_publication_whose_id_holds_a_lone_surrogate_is_named() -> None:
    """Arrow has no text for it. Terms are written with escapes, and so are names of files."""
    good = Publication("p", (Triple(A, B, Literal("x\ud800")),), "\udcff")
    with pytest.raises(ReadError) as caught:
        to_batch([good, Publication("q\ud800", good.triples), good])
    assert caught.value.record == 2
    assert caught.value.source == "q\\ud800"
    assert "a lone surrogate" in str(caught.value)
    assert to_batch([good]).num_rows == 1
