"""Files, folders, standard input, bytes, streams; ids and refusals."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from triplewire.config import Settings
from triplewire.encode.schema import from_batch, to_batch
from triplewire.errors import ReadError, Refusal
from triplewire.model.references import id_iri
from triplewire.read import read, read_document, to_nquads
from triplewire.read.names import document_iri

TURTLE = b"@prefix a: <http://a/> . a:s a:p <x> ."


class Pausing(io.RawIOBase):
    """A stream that has nothing to give for a moment, as a pipe that does not wait."""

    def __init__(self) -> None:
        self._parts: list[bytes | None] = [b"<http://a> <http://b> ", None, b"<http://c> ."]

    def read(self, size: int = -1) -> bytes | None:
        return self._parts.pop(0) if self._parts else b""


def test_a_stream_that_does_not_wait_is_refused() -> None:
    """Its pause is not its end."""
    with pytest.raises(ReadError, match="nothing to give at this moment"):
        list(read(Pausing()))


def test_a_folder_is_read_recursively_in_sorted_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("c.ttl", "b/z.ttl", "b/a b%.ttl", "a.ttl", ".hidden/x.ttl", ".x.ttl"):
        (tmp_path / name).write_bytes(TURTLE)
    found = list(read(tmp_path))
    assert [p.source for p in found] == [str(tmp_path / n) for n in ("a.ttl", "b/a b%.ttl", "b/z.ttl", "c.ttl")]
    assert found[1].id == f"file://{tmp_path}/b/a%20b%25.ttl"
    assert [p.id for p in read(str(tmp_path / "c.ttl"), tmp_path / "a.ttl")] == [found[3].id, found[0].id]


def test_a_file_name_that_is_no_utf_8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.ttl")).write_bytes(TURTLE)
    (publication,) = read(tmp_path)
    assert (publication.source, publication.id) == (f"{tmp_path}/a\ufffd.ttl", f"file://{tmp_path}/a%FF.ttl")
    assert list(from_batch(to_batch([publication]))) == [publication]


def test_gzip_is_recognised_by_its_content(tmp_path: Path) -> None:
    packed = gzip.compress(TURTLE[:10]) + gzip.compress(TURTLE[10:])
    (tmp_path / "plain-name").write_bytes(packed)
    (publication,) = read(tmp_path)
    assert publication.triples == next(read(TURTLE, base=f"file://{tmp_path}/plain-name")).triples
    assert read_document(packed, "http://e/x")[0].id == "http://e/x"


def test_bytes_streams_and_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    (publication,) = read(b"<http://a> <http://p> 1 .")
    assert (publication.id, publication.source) == ("urn:triplewire:input", "")
    (publication,) = read(io.BytesIO(b"<http://a> <http://p> 1 ."))
    assert publication.id == "urn:triplewire:input"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<http://a> <http://p> 1 .")))
    (publication,) = read("-")
    assert (publication.id, publication.source) == ("urn:triplewire:stdin", "urn:triplewire:stdin")


def test_a_limit_larger_than_the_memory_is_no_room_that_is_taken(tmp_path: Path) -> None:
    large = Settings(max_input_bytes=1 << 50)
    (tmp_path / "a.ttl").write_bytes(TURTLE)
    assert len(list(read(tmp_path / "a.ttl", settings=large))) == 1
    assert len(list(read(io.BytesIO(TURTLE), settings=large))) == 1


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_stream_may_have_as_many_bytes_as_the_limit_says(beyond: int, tmp_path: Path) -> None:
    data = TURTLE + b" " * (3 << 20)
    (tmp_path / "a.ttl").write_bytes(data)
    settings, refusals = Settings(max_input_bytes=len(data) - beyond), list[Refusal]()
    found = list(read(io.BytesIO(data), tmp_path / "a.ttl", settings=settings, on_refusal=refusals.append))
    assert (len(found), len(refusals)) == ((0, 2) if beyond else (2, 0))


def test_the_first_error_is_raised_or_each_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "1.ttl").write_text("<http://a> ")
    (tmp_path / "2.ttl").write_bytes(TURTLE)
    with pytest.raises(ReadError, match=r"1\.ttl:1:12: not Turtle: "):
        list(read(tmp_path))
    refusals: list[Refusal] = []
    found = list(read(tmp_path, tmp_path / "absent.ttl", on_refusal=refusals.append))
    assert [p.source for p in found] == [str(tmp_path / "2.ttl")]
    assert [str(r) for r in refusals] == [
        f"refused publication {tmp_path}/1.ttl:1:12: not Turtle: Unexpected end",
        f"refused publication {tmp_path}/absent.ttl: the file cannot be read: No such file or directory",
    ]


def test_a_malformed_line_costs_its_own_graph_only() -> None:
    lines = [
        '<http://a> <http://p> "kept" <http://g1> .',
        '<http://a> <http://p> "fine, but its graph is refused" <http://g2> .',
        '<http://a> "no predicate" <http://b> <http://g2> .',
        "not a line at all",
        '<http://a> <http://p> "default" .',
        '<http://a> <http://p> "cut off <http://g3> .',
        '<http://a> <http://p> "kept too" <http://g1> .',
        '<http://a> <http://p> "x"@en--ltr <http://g4> .',
        "<http://a> <http://p> <<( <http://a> <http://p> <http://b> )>> <http://g5> .",
        '<http://a> <http://p> "<< is fine in a text" <http://g6> .',
    ]
    refusals: list[Refusal] = []
    found = read_document("\n".join(lines).encode(), "doc.nq", on_refusal=refusals.append)
    assert {p.id: len(p.triples) for p in found} == {"http://g1": 2, document_iri("doc.nq"): 1, "http://g6": 1}
    assert [(r.subject, r.where.split(":")[1]) for r in refusals] == [
        ("http://g2", "3"),
        ("doc.nq", "4"),
        ("http://g3", "6"),
        ("http://g4", "8"),
        ("http://g5", "9"),
    ]


def test_a_malformed_line_of_n_triples_costs_the_file() -> None:
    refusals: list[Refusal] = []
    text = b"<http://a> <http://p> <http://b> .\n<http://a> <http://p> \n"
    assert read_document(text, "doc.nt", on_refusal=refusals.append) == []
    assert [str(r) for r in refusals] == ["refused publication doc.nt:2:23: not N-Triples or N-Quads: Unexpected end"]


@pytest.mark.slow
def test_every_malformed_line_of_a_long_file_is_reported() -> None:
    text = "".join(
        f'<http://a> <http://p> "{n}" <http://g/{n}> .\n' + ("broken\n" if n % 1000 == 0 else "") for n in range(60_000)
    )
    refusals: list[Refusal] = []
    found = read_document(text.encode(), "doc.nq", on_refusal=refusals.append)
    assert len(found) == 60_000
    assert [int(r.where.split(":")[1]) for r in refusals] == [n * 1001 + 2 for n in range(60)]


def test_a_loader_supplies_contexts() -> None:
    contexts = {
        "http://c/1": b'{"@context": ["2", {"name": "http://v/name"}]}',
        "http://c/2": b'{"@context": {"@import": "http://c/3", "age": "http://v/age"}}',
        "http://c/3": b'{"@context": {"age": "http://wrong/", "knows": {"@id": "http://v/knows", "@type": "@id"}}}',
    }
    text = b'{"@context": "http://c/1", "@id": "http://a", "name": "A", "age": 5, "knows": "http://b"}'
    (publication,) = read_document(text, "http://d", loader=contexts.__getitem__)
    assert [str(t) for t in publication.triples] == [
        '<http://a> <http://v/name> "A" .',
        '<http://a> <http://v/age> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        "<http://a> <http://v/knows> <http://b> .",
    ]
    with pytest.raises(ReadError, match=r"^http://d: the context 'http://c/1' cannot be loaded: 'http://c/1'$"):
        read_document(text, "http://d", loader={}.__getitem__)
    with pytest.raises(ReadError, match=r"^http://d:1:16: the JSON-LD context escape .ud800 is half a surrogate pair"):
        read_document(text, "http://d", loader=lambda _: rb'{"@context": {"\ud800": "http://x"}}')


@pytest.mark.parametrize(
    ("source", "iri"),
    [
        ("", "urn:triplewire:input"),
        ("/a b/ü#?.nt", "file:///a%20b/%C3%BC%23%3F.nt"),
        ("file:/a/b.nt", "file:///a/b.nt"),
        ("file:///a%20b.nt", "file:///a%20b.nt"),
        ("http://e/x y", "http://e/x%20y"),
        ("urn:x:y", "urn:x:y"),
        ("http://[::1]/a[1]?b[]=%#c#d%20", "http://[::1]/a%5B1%5D?b%5B%5D=%25#c%23d%20"),
    ],
)
def test_document_iri(source: str, iri: str) -> None:
    assert document_iri(source) == iri


@pytest.mark.parametrize(
    ("identifier", "iri"),
    [
        ("http://a/b#c", "http://a/b#c"),
        ("tag:a,2004:x", "tag:a,2004:x"),
        ("no. 5 <b>", "urn:triplewire:id:no.%205%20%3Cb%3E"),
        ("http://a/ b", "urn:triplewire:id:http%3A%2F%2Fa%2F%20b"),
        ("ü", "urn:triplewire:id:%C3%BC"),
        ("", "urn:triplewire:id:"),
        ("http://a/#b#c", "urn:triplewire:id:http%3A%2F%2Fa%2F%23b%23c"),
        ("http://a/100%", "urn:triplewire:id:http%3A%2F%2Fa%2F100%25"),
        ("http://[::1]:80/é", "http://[::1]:80/é"),
        ("http://a:b/", "urn:triplewire:id:http%3A%2F%2Fa%3Ab%2F"),
    ],
)
def test_id_iri(identifier: str, iri: str) -> None:
    assert id_iri(identifier) == iri


def test_control_characters_survive_writing_and_reading() -> None:
    text = '<http://a> <http://p> "\\u0000\\u0001\\t\\n\\r\\b\\f\\"\\\\\\u007F\\u2028é😀" .'
    (publication,) = read_document(text.encode(), "http://d/x.nt")
    assert to_nquads(publication) == (
        '<http://a> <http://p> "\\u0000\\u0001\\t\\n\\r\\b\\f\\"\\\\\\u007F\u2028é😀" <http://d/x.nt> .\n'
    )
