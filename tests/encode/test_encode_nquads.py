"""N-Quads bytes to a batch: what the safe reader gives, or None."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from decoded import check, encoded, said, said_by
from documents import Documents, colliding

import shared_data
from amounts import usually
from triplewire.config import Settings
from triplewire.encode import names as text
from triplewire.encode.batch import BLANK_KIND
from triplewire.errors import Refusal
from triplewire.read import read_document
from triplewire.read.names import document_iri

COUNT = usually(1_000, 3_000)  # random documents
SOURCE = "/where/it/is.nq"
IRI = document_iri(SOURCE)
XSD = "http://www.w3.org/2001/XMLSchema#"


def _agrees(data: bytes, settings: Settings = Settings()) -> bool:  # noqa: B008  # a frozen value
    """Is the document plain? If so, the batch has to say what the safe reader reads, without a refusal."""
    batch = encoded(data, IRI, settings)
    if batch is None:
        return False
    refusals: list[Refusal] = []
    read = read_document(data, SOURCE, settings=settings, on_refusal=refusals.append)
    assert not refusals, data
    assert said_by(batch) == said(read), data
    check(batch)
    return True


PLAIN = {
    "nothing": b"",
    "comment alone": b"# nothing",
    "one": b'<http://a/s> <http://a/p> "o" .',
    "two graphs": b"<http://a/s> <http://a/p> _:o <http://a/g> .\n<http://a/s> <http://a/p> _:o <http://a/h> .\n",
    "apart": b"".join(
        b"<http://a/s> <http://a/p%d> <http://a/o> <http://a/g%d> .\n" % (i, i % 3) for i in (1, 2, 3, 4, 5, 6)
    ),
    "default among named": b'_:a <http://a/p> "1" <http://a/g> .\n_:a <http://a/p> "2" .\n_:a <http://a/p> "3" _:g .\n',
    "again after none": b"<a:s> <a:p> <a:o> <a:g> .\n<a:s> <a:p> <a:q> .\n<a:s> <a:p> <a:r> <a:g> .\n",
    "again after blank": b"<a:s> <a:p> <a:o> .\n_:s <a:p> <a:q> .\n_:s <a:p> <a:q> .\n<a:s> <a:p> <a:r> .\n",
    "a prefix of the last": b"<http://a/sx> <http://a/p> <a:o> .\n<http://a/s> <http://a/px> <a:o> .\n",
    "duplicates": b"<a:s> <a:p> <a:o> .\n" * 3,
    "tags": b'<a:s> <a:p> "x"@en .\n<a:s> <a:p> "x"@EN .\n<a:s> <a:p> "x"@en-US .\n<a:s> <a:p> "x" .\n',
    "strings": f'<a:s> <a:p> "x"^^<{XSD}string> .\n<a:s> <a:p> "x" .\n<a:s> <a:p> "x"^^<{XSD}String> .'.encode(),
    "kinds": f'<a:s> <a:p> "a:s" .\n<a:s> <a:p> _:x .\n<a:s> <a:p> "x"^^<{XSD}int> .\n<a:s> <a:p> "x" .'.encode(),
    "escapes": rb'<a:s> <a:p> "\t\b\n\r\f\"\'\\ \u00e9\U0001F600\u0000 e" .',
    "not in need of escapes": '<a:s> <a:p> "é😀\x00\x01\x7f\u2028\ufffe" .'.encode(),
    "blanks and lines": b' <a:s>\t<a:p>  <a:o> . # c\r\n\r\n\n\t \n<a:s><a:p>"o"<a:g>.#',
    "comment in UTF-8": "# é\n<a:s> <a:p> <a:o> .".encode(),
    "IRI of any script": "<http://bücher.example/é> <a:p> <http://a:80/?x=%41#y> .".encode(),
    "arrows in a text": b'<a:s> <a:p> "<<" .',
}

OTHER = {
    "byte order mark": b"\xef\xbb\xbf<a:s> <a:p> <a:o> .",
    "escape in an IRI": rb"<a:\u0073> <a:p> <a:o> .",
    "label with a dot": b"_:a.b <a:p> <a:o> .",
    "label at the full stop": b"<a:s> <a:p> _:o.",
    "label of another script": "_:é <a:p> <a:o> .".encode(),
    "comment not in UTF-8": b"# \xff\n<a:s> <a:p> <a:o> .",
    "carriage returns": b"<a:s> <a:p> <a:o> .\r<a:s> <a:p> <a:q> .",
    "Turtle": b"@prefix a: <a:> . a:s a:p a:o .",
    "blanks in a literal": b'<a:s> <a:p> "o" ^^ <a:d> .',
}
"""Right, but not plain."""

WRONG = {
    "relative IRI": b"<s> <a:p> <a:o> .",
    "no IRI": b"<> <a:p> <a:o> .",
    "blank in an IRI": b"<a:s s> <a:p> <a:o> .",
    "bracket in an IRI": b"<a:s<> <a:p> <a:o> .",
    "half a percent sign": b"<http://a/%4> <a:p> <a:o> .",
    "literal as subject": b'"s" <a:p> <a:o> .',
    "blank node as predicate": b"<a:s> _:p <a:o> .",
    "literal as graph": b'<a:s> <a:p> <a:o> "g" .',
    "no full stop": b"<a:s> <a:p> <a:o>",
    "two full stops": b"<a:s> <a:p> <a:o> . .",
    "two statements in a line": b"<a:s> <a:p> <a:o> . <a:s> <a:p> <a:o> .",
    "statement over two lines": b"<a:s> <a:p>\n<a:o> .",
    "text over two lines": b'<a:s> <a:p> "o\no" .',
    "no closing mark": b'<a:s> <a:p> "o .',
    "escape at the end": b'<a:s> <a:p> "\\',
    "half an escape at the end": b'<a:s> <a:p> "\\u00',
    "unknown escape": rb'<a:s> <a:p> "\x" .',
    "surrogate": rb'<a:s> <a:p> "\uD83D\uDE00" .',
    "beyond Unicode": rb'<a:s> <a:p> "\U00110000" .',
    "no digit": rb'<a:s> <a:p> "\u00g0" .',
    "bad UTF-8": b'<a:s> <a:p> "\xc3" .',
    "overlong": b'<a:s> <a:p> "\xc0\xaf\xe0\x80\xaf" .',
    "encoded surrogate": b'<a:s> <a:p> "\xed\xa0\x80" .',
    "UTF-8 that breaks off": b'<a:s> <a:p> "\xf0\x9f\x98',
    "bad UTF-8 in an IRI": b"<http://a/\xff> <a:p> <a:o> .",
    "bad UTF-8 in a datatype": b'<a:s> <a:p> "o"^^<http://a/\xff> .',
    "triple term": b"<< <a:s> <a:p> <a:o> >> <a:p> <a:o> .",
    "base direction": b'<a:s> <a:p> "o"@en--ltr .',
    "bad tag": b'<a:s> <a:p> "o"@abcdefghijk .',
    "no tag": b'<a:s> <a:p> "o"@ .',
    "datatype like a tag": b'<a:s> <a:p> "o"^^<@en> .',
    "no datatype": b'<a:s> <a:p> "o"^^<> .',
    "tagged without a tag": b'<a:s> <a:p> "o"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    "byte order mark in a later line": b"<a:s> <a:p> <a:o> .\n\xef\xbb\xbf<a:s> <a:p> <a:o> .",
}


@pytest.mark.parametrize("data", PLAIN.values(), ids=PLAIN.keys())
def test_plain(data: bytes) -> None:
    assert _agrees(data)


@pytest.mark.parametrize("data", [*OTHER.values(), *WRONG.values()], ids=[*OTHER.keys(), *WRONG.keys()])
def test_not_plain(data: bytes) -> None:
    assert encoded(data, IRI, Settings()) is None
    after = b'<a:s> <a:p> "before" .\n' + data
    assert encoded(after, IRI, Settings()) is None


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG.keys())
def test_wrong_is_refused_by_the_safe_reader_too(data: bytes) -> None:
    refusals: list[Refusal] = []
    read_document(data, SOURCE, on_refusal=refusals.append)
    assert refusals


@pytest.mark.parametrize(("name", "publications"), [("mixed-5000", 5_000), ("graph-publications", 2_000)])
def test_real(name: str, publications: int) -> None:
    data = gzip.decompress(shared_data.path(f"10-workloads/{name}.nq.gz").read_bytes())
    assert _agrees(data)
    batch = encoded(np.frombuffer(data, np.uint8), IRI, Settings())
    assert batch is not None
    assert len(batch) == publications


def test_w3c_n_triples() -> None:
    files = dict(shared_data.members("05-w3c-suites/rdf-n-triples-a.tar.gz"))
    tests = json.loads(files["index.json"])["tests"]
    plain = 0
    for test in tests:
        is_plain = _agrees(files[test["action"]])
        assert not (is_plain and "Negative" in test["type"]), test
        plain += is_plain
    assert (len(tests), plain) == (47, 24)


def test_random() -> None:
    plain = 0
    for number in range(COUNT):
        strange = (0.0, 0.1, 0.5)[number % 3]
        plain += _agrees(Documents(random.Random(number), strange).document())
    assert plain > COUNT // 3


def test_damaged() -> None:
    data = gzip.decompress(shared_data.path("10-workloads/mixed-5000.nq.gz").read_bytes())[:300_000]
    lines = data.splitlines(keepends=True)
    chance, plain = random.Random(7), 0
    for _ in range(usually(400, 1_000)):
        at = chance.randrange(len(lines) - 4)
        some = bytearray(b"".join(lines[at : at + chance.randrange(1, 4)]))
        for _ in range(chance.randrange(1, 3)):
            some[chance.randrange(len(some))] = chance.choice(b'<>"\\ .\n\r_:@^a\xc3\xff')
        plain += _agrees(bytes(some))
    assert plain > usually(50, 200)


@pytest.mark.parametrize("place", ["<%s> <a:p> <a:o>", "<a:s> <%s> <a:o>", '<a:s> <a:p> "o"^^<%s>'])
def test_limits(place: str) -> None:
    long = "http://a/" + 36 * "x"
    data = (f"{place % long} <a:g> .\n" * 2 + '<a:s> <a:p> "123456789" <a:g> .\n').encode()
    assert _agrees(data, Settings(max_iri_bytes=45, max_literal_bytes=9, max_triples=2))
    for name, limit in (("max_iri_bytes", 44), ("max_iri_bytes", 30), ("max_literal_bytes", 8), ("max_triples", 1)):
        settings = replace(Settings(), **{name: limit})
        assert encoded(data, IRI, settings) is None
        refusals: list[Refusal] = []
        read_document(data, SOURCE, settings=settings, on_refusal=refusals.append)
        assert name in refusals[0].remedy


def test_limits_count_bytes_of_the_text_itself() -> None:
    assert _agrees('<a:s> <a:p> "éé\\u00e9\\n" .'.encode(), Settings(max_literal_bytes=7))
    assert encoded('<a:s> <a:p> "éé\\u00e9\\n" .'.encode(), IRI, Settings(max_literal_bytes=6)) is None


def test_many_of_everything() -> None:
    """More statements, terms, words and suffixes than the first tables have room for."""
    lines = [
        f'<http://a/{i % 7}> <http://a/p{i}> "w{i} x{i}"^^<http://a/t{i % 3_000}> <http://a/g{i * 7919 % 500}> .\n'
        f'_:b{i} <http://a/p> "w{i} y{i}"@en-x-t{i % 5_000} .\n'
        for i in range(9_000)
    ]
    assert _agrees("".join(lines).encode())


def test_terms_made_to_collide_are_left_to_the_safe_reader() -> None:
    """The time must not grow with the square of the terms."""
    data = b"".join(b"<a:s> <a:p> _:%s .\n" % label for label in colliding(2_200, BLANK_KIND))
    assert encoded(data, IRI, Settings()) is None
    assert encoded(data[: len(data) // 2], IRI, Settings()) is not None


@pytest.mark.parametrize("share", [1, 2], ids=["another way", "as others are"])
def test_words_made_to_collide_are_counted_right(share: int) -> None:
    """More of them than one table may hold in one place, and half as many."""
    words = b" ".join(colliding(2_200, text.WORD_SEED))
    assert _agrees(b'<a:s> <a:p> "%s" .' % words[: len(words) // share])
