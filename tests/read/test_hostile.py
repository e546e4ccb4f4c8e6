"""Hostile and malformed documents: the exact refusal of each. A new case needs no Python: `tests/cases/hostile`."""

from __future__ import annotations

import gzip
import http.server
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import ReadError, Refusal
from triplewire.read import read, read_document

CASES = Path(__file__).resolve().parent.parent / "cases" / "hostile" / "documents.toml"
GOOD = b'<http://a> <http://b> "ok" .'


def _data(case: dict[str, Any]) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    text: str = case["text"] if "text" in case else "".join(part * times for part, times in case["parts"])
    return gzip.compress(text.encode()) if case.get("gzip") else text.encode()


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["name"]) for c in tomllib.loads(CASES.read_text("utf-8"))["case"]]
)
def test_refused(case: dict[str, Any]) -> None:
    settings = Settings(**case.get("settings", {}))
    with pytest.raises(ReadError) as refused:
        read_document(_data(case), case.get("source", "doc"), split=case.get("split", "item"), settings=settings)
    assert str(refused.value) == case["error"]
    assert [p.triples for p in read_document(GOOD, "next")], "the next document is read"


def test_one_refusal_does_not_stop_the_others(tmp_path: Path) -> None:
    cases = tomllib.loads(CASES.read_text("utf-8"))["case"]
    hostile = [case for case in cases if not case.get("settings") and not case.get("source")]
    for number, case in enumerate(hostile):
        (tmp_path / f"{number:03d}-hostile").write_bytes(_data(case))
        (tmp_path / f"{number:03d}-other").write_bytes(GOOD)
    refusals: list[Refusal] = []
    publications = list(read(tmp_path, on_refusal=refusals.append))
    assert len(publications) == len(refusals) == len(hostile)
    assert {r.subject for r in refusals} == {str(tmp_path / f"{n:03d}-hostile") for n in range(len(hostile))}
    for refusal in refusals:  # a picture, which an operator may read, is a warning
        assert refusal.where.startswith(refusal.subject) or "picture" in refusal.reason


def test_nothing_is_fetched(tmp_path: Path) -> None:
    """Every address in these documents leads to a listening canary, which nobody visits."""
    visits: list[str] = []

    class Canary(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            visits.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canary) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/x"
        for text in (
            f'{{"@context": "{address}", "@id": "http://a", "name": "x"}}',
            f'<!DOCTYPE rss SYSTEM "{address}"><rss><channel><item><title>x</title></item></channel></rss>',
            f'<!DOCTYPE r [<!ENTITY % a SYSTEM "{address}"> %a;]><rss><channel><item/></channel></rss>',
            f'<!DOCTYPE r SYSTEM "{address}"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
            address,
        ):
            read_document(text.encode(), "doc", on_refusal=lambda refusal: None)
        server.shutdown()
    assert visits == []


def test_attributes_of_one_element_are_counted() -> None:
    def document(count: int) -> bytes:
        attributes = " ".join(f'x:a{n}="1"' for n in range(count))
        return (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
            f"<rdf:Description {attributes}/></rdf:RDF>"
        ).encode()

    assert len(read_document(document(256), "doc")[0].triples) == 256
    with pytest.raises(ReadError, match=r"^doc:1:86: <rdf:Description> has more than 256 attributes; use elements$"):
        read_document(document(257), "doc")


def test_shared_blank_nodes_do_not_blow_a_split_up() -> None:
    subjects = "".join(f"<http://a/{n}> <http://p> _:x .\n" for n in range(100))
    shared = "".join(f"_:x <http://p> <http://b/{n}> .\n" for n in range(100))
    settings = Settings(max_triples=101)
    with pytest.raises(ReadError, match=r"^doc: split by subject, shared blank nodes make it more than 10 times"):
        read_document((subjects + shared).encode(), "doc", split="subject", settings=settings)
    assert len(read_document((subjects + shared).encode(), "doc", split="subject")) == 100


LONG = 17 << 20  # more than the parser takes as one token
LONG_LINES = {
    "a comment": (b"#" + b"x" * LONG, []),
    "a comment behind a statement": (b'<http://a> <http://b> "#" <http://g> . # ' + b"x" * LONG, []),
    "spaces": (b" " * LONG, []),
    "a literal": (b'<http://a> <http://b> "' + b"x" * LONG + b'" <http://g> .', ["http://g"]),
    "escapes in it": (b'<http://a> <http://b> "' + rb"\n" * (LONG // 2) + b'" <http://g> .', ["http://g"]),
    "an IRI": (b"<http://a> <http://b> <http://" + b"x" * LONG + b"> <http://g> .", ["http://g"]),
    "no statement": (b"<" * LONG, ["doc"]),
    "no statement, and a graph": (b"< " * (LONG // 2) + b"<http://g> .", ["http://g"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("line", LONG_LINES)
def test_a_line_that_is_too_long_costs_its_own_publication(line: str, tmp_path: Path) -> None:
    """Read as objects or as columns: the same."""
    text, refused = LONG_LINES[line]
    doc = tmp_path / "doc"
    statements = [b'<http://a> <http://b> "ok" <http://one> .', text, b'<http://a> <http://b> "ok" <http://two> .']
    doc.write_bytes(b"\n".join(statements))
    refusals: list[Refusal] = []
    publications = list(read(doc, on_refusal=refusals.append))
    names = ["http://one", *(["http://g"] if line == "a comment behind a statement" else []), "http://two"]
    assert [publication.id for publication in publications] == names
    wanted = [(subject.replace("doc", str(doc)), f"{doc}:2") for subject in refused]
    assert [(refusal.subject, refusal.where) for refusal in refusals] == wanted
    assert all(refusal.reason == "the line is longer than 16,777,216 bytes" for refusal in refusals)
    engine = Engine()
    engine.subscribe("ASK { ?s ?p ?o }", id="every")
    again: list[Refusal] = []
    (result,) = engine.match_files(doc, on_refusal=again.append)
    assert [match.publication for match in result] == names
    assert again == refusals
