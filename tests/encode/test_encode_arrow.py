"""Arrow columns to a batch: what `from_batch` gives, or None."""

from __future__ import annotations

import datetime as dt
import gzip
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from decoded import check, said, said_by
from documents import IRIS, LABELS, TAGS, TEXTS

import shared_data
from triplewire.config import Settings
from triplewire.encode.publications import encode_arrow
from triplewire.encode.schema import PUBLICATIONS, from_batch, to_batch
from triplewire.errors import Refusal
from triplewire.model.terms import LANG_STRING, XSD
from triplewire.read import read_document

Row = tuple[str | None, Sequence[tuple[str | None, str | None, str | None]] | None]


def _batch(rows: Sequence[Row], schema: pa.Schema = PUBLICATIONS) -> pa.RecordBatch:
    members: list[dict[str, Any]] = [
        {"id": id_, "triples": None if triples is None else [dict(zip("spo", t, strict=True)) for t in triples]}
        for id_, triples in rows
    ]
    return pa.RecordBatch.from_pylist(members, schema=pa.schema([field.with_nullable(True) for field in schema]))


def _agrees(rows: pa.RecordBatch, settings: Settings | None = None) -> bool:
    """Are all rows plain? If so, the batch has to say what `from_batch` reads."""
    batch = encode_arrow(rows, settings)
    if batch is None:
        return False
    assert said_by(batch) == said(from_batch(rows, settings=settings))
    check(batch)
    return True


S, P, O = "<http://a/s>", "<http://a/p>", '"o"'  # noqa: E741  # as in RDF


PLAIN: dict[str, Sequence[Row]] = {
    "no rows": [],
    "no triples": [("x", [])],
    "ids twice": [("x", [(S, P, O)]), ("x", [(S, P, S)]), ("y", [])],
    "duplicates": [("x", [(S, P, O), (S, P, O)])],
    "terms": [
        (
            "x",
            [
                ("_:b", P, o)
                for o in ('"x"', '"x"@EN', '"x"@en', f'"x"^^<{XSD}string>', f'"x"^^<{XSD}int>', "<x>", "<>")
            ],
        )
    ],
    "not what a parser takes": [("x", [("<rel{x}>", P, f'"x"^^<{LANG_STRING}>'), (S, P, '"a"@x--y')])],
    "escapes": [("x", [(S, P, r'"\"\\ \n\r\t\u00e9\U0001F600"')])],
}


@pytest.mark.parametrize("rows", PLAIN.values(), ids=PLAIN.keys())
def test_plain(rows: Sequence[Row]) -> None:
    assert _agrees(_batch(rows))


NOT_PLAIN: dict[str, Sequence[Row]] = {
    "no id": [(None, [(S, P, O)])],
    "empty id": [("", [(S, P, O)])],
    "triples are null": [("x", None)],
    "a term is null": [("x", [(S, P, None)])],
    "an empty term": [("x", [(S, P, "")])],
    "a literal as subject": [("x", [(O, P, O)])],
    "a literal as predicate": [("x", [(S, O, O)])],
    "a blank node as predicate": [("x", [(S, "_:p", O)])],
    "two terms in one": [("x", [(f"{S} {P}", P, O)])],
    "a term in two": [("x", [('"a', P, 'b"')])],
    "a line feed behind": [("x", [(S, P, O + "\n")])],
    "a blank behind": [("x", [(S + " ", P, O)])],
    "a line feed within": [("x", [(S, P, '"a\nb"')])],
    "a bracket in an IRI": [("x", [("<a<b>", P, O)])],
    "a mark in an IRI": [("x", [('<a"b>', P, O)])],
    "a mark in a datatype": [("x", [(S, P, '"x"^^<a"b>')])],
    "a datatype like a tag": [("x", [(S, P, '"x"^^<@en>')])],
    "no datatype": [("x", [(S, P, '"x"^^<>')])],
    "a surrogate": [("x", [(S, P, r'"\uD800"')])],
    "an escape in an IRI": [("x", [(r"<a\u0041>", P, O)])],
    "a label of another script": [("x", [("_:é", P, O)])],
}


@pytest.mark.parametrize("rows", NOT_PLAIN.values(), ids=NOT_PLAIN.keys())
def test_not_plain(rows: Sequence[Row]) -> None:
    assert encode_arrow(_batch([("before", [(S, P, O)])])) is not None
    assert encode_arrow(_batch([("before", [(S, P, O)]), *rows])) is None


def test_limit() -> None:
    rows = _batch([("x", [(S, P, O), (S, P, S)])])
    assert _agrees(rows, Settings(max_triples=2))
    assert encode_arrow(rows, Settings(max_triples=1)) is None
    refusals: list[Refusal] = []
    assert list(from_batch(rows, settings=Settings(max_triples=1), on_refusal=refusals.append)) == []
    assert len(refusals) == 1


def test_other_types_and_slices() -> None:
    text, triple = pa.large_string(), pa.struct([("o", pa.string_view()), ("p", pa.large_string()), ("s", pa.string())])
    schema = pa.schema([("triples", pa.large_list(triple)), ("id", text)])
    rows = [(f"x{i}", [(f"<http://a/{j}>", P, f'"o{i}"') for j in range(i)]) for i in range(6)]
    whole = _batch(rows, schema)
    for batch in (whole, whole.slice(2), whole.slice(1, 3), whole.slice(6), _batch(rows).slice(3)):
        assert _agrees(batch)


@pytest.mark.parametrize(
    "column",
    [
        ("published", pa.array(["yesterday"])),
        ("published", pa.array([2**62], pa.timestamp("s"))),
        ("source", pa.array([5])),
        ("id", pa.array([5])),
        ("triples", pa.array(["x"])),
        ("triples", pa.array([[{"s": S, "p": P}]])),
        ("triples", pa.array([[{"s": S, "p": P, "o": 5}]])),
    ],
)
def test_columns_of_other_types_are_left_to_from_batch(column: tuple[str, pa.Array]) -> None:
    rows = _batch([("x", [(S, P, O)])])
    columns = {name: rows.column(name) for name in rows.schema.names} | dict([column])
    assert encode_arrow(pa.RecordBatch.from_pydict(columns)) is None


def test_dates_and_sources_may_be_there_or_not() -> None:
    rows = _batch([("x", [(S, P, O)])])
    assert _agrees(rows.drop_columns(["published", "source"]))
    columns = {name: rows.column(name) for name in ("id", "triples")}
    columns |= {"published": pa.array([dt.datetime(2020, 1, 1)]), "source": pa.array(["there"])}
    assert _agrees(pa.RecordBatch.from_pydict(columns))
    assert encode_arrow(rows.drop_columns(["id"])) is None


def test_not_utf_8() -> None:
    texts = pa.array([b"<\xff>"]).cast(pa.binary())
    wrong = pa.Array.from_buffers(pa.string(), 1, texts.buffers())
    for place in range(3):
        parts = [pa.array([S]), pa.array([P]), pa.array([O])]
        parts[place] = wrong
        struct = pa.StructArray.from_arrays(parts, names=["s", "p", "o"])
        triples = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), struct)
        assert encode_arrow(pa.RecordBatch.from_pydict({"id": pa.array(["x"]), "triples": triples})) is None


def test_real() -> None:
    data = gzip.decompress(shared_data.path("10-workloads/mixed-5000.nq.gz").read_bytes())
    publications = read_document(data[: data.index(b"\n", 2_000_000) + 1], "x.nq")
    batch = encode_arrow(to_batch(publications))
    assert batch is not None
    assert said_by(batch) == said(publications)


def test_random() -> None:
    chance = random.Random(3)
    plain = 0

    def term() -> str:
        usual = chance.random() < 0.9
        match chance.randrange(4):
            case 0 | 1:
                return f"<{chance.choice(IRIS[:3] if usual else IRIS)}>"
            case 2:
                return "_:" + chance.choice(LABELS[:2] if usual else LABELS)
        text = f'"{chance.choice(TEXTS[:8] if usual else TEXTS)}"'
        return text + chance.choice(["", f"@{chance.choice(TAGS)}", f"^^<{chance.choice(IRIS)}>"])

    for _ in range(2_000):
        rows = [(f"x{i}", [(f"<http://a/{i}>", P, term()) for _ in range(3)]) for i in range(chance.randrange(1, 3))]
        batch = _batch(rows)
        encoded = encode_arrow(batch)
        if encoded is not None:
            plain += 1
            assert said_by(encoded) == said(from_batch(batch))
    assert plain > 500
