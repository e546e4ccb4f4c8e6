"""Publications are matched in parts of so many rows: each comes once, in order, whatever the sizes of the parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bench.cluster import take_publications
from engine.samples import RSS, item
from triplewire import Engine, Publication
from triplewire.encode import publications as encoding
from triplewire.encode.batch import Batch
from triplewire.encode.schema import to_batch
from triplewire.engine.chunk import Chunk
from triplewire.engine.incoming import ROWS, ChunkSizer
from triplewire.engine.views import chunks_for, encoded, match_chunks


def sizes(sizer: ChunkSizer, chunk: Chunk, rows: int, verified: int = 0) -> list[int]:
    """Of the parts, where a publication has so many rows, and pairs that are verified."""
    found, names = list[int](), list[str]()
    for part in sizer.parts(chunk):
        found.append(len(part))
        names += part.ids
        sizer.record(len(part), rows * len(part), verified * len(part))
    assert names == list(chunk.ids)
    return found


def test_parts_have_about_so_many_rows() -> None:
    chunk, sizer = Chunk([item(f"p{n}", "title") for n in range(3_000)]), ChunkSizer()
    few = sizes(sizer, chunk, 0)
    assert few == sorted(few[:-1]) + few[-1:]
    assert few[0] < 100 < few[-2]
    many = sizes(sizer, chunk, ROWS // 90)
    assert set(many[1:-1]) == {90}
    assert set(sizes(sizer, chunk, ROWS // 360, ROWS // 360)[1:-1]) == {90}  # rows that had to be verified
    assert set(sizes(sizer, chunk, 100 * ROWS)[1:-1]) == {64}


@pytest.mark.parametrize("columns", [False, True], ids=["objects", "columns"])
def test_a_part_has_what_its_publications_have(columns: bool) -> None:
    some = [item(f"p{n}", f"title {n}") for n in range(9)]
    whole = Chunk(batch=encoding.encode(some), source="urn:here") if columns else Chunk(some)
    part = whole.part(3, 7)
    assert list(part.ids) == list(part.batch.ids) == ["p3", "p4", "p5", "p6"]
    assert len(part) == len(part.batch) == 4
    for number in range(4):
        assert set(part.publication(number).triples) == set(some[3 + number].triples)
        assert set(part.decoder.publication(number).triples) == set(some[3 + number].triples)
        assert part.publication(number).source == ("urn:here" if columns else some[3 + number].source)
    assert whole.part(0, 9) is whole


def test_parts_ask_for_what_there_is_more_of_a_publication() -> None:
    some = [item(f"p{n}", "title") for n in range(6)]
    part = Chunk(batch=encoding.encode(some), read_publication=lambda number: some[number]).part(2, 5)
    assert [part.publication(number) for number in range(3)] == some[2:5]
    some_of_it = part.take(np.array([0, 2]))
    assert [some_of_it.publication(number) for number in range(2)] == [some[2], some[4]]
    assert list(some_of_it.batch.ids) == ["p2", "p4"]


def test_a_publication_is_made_of_its_columns_once() -> None:
    part = Chunk(batch=encoding.encode([item(f"p{n}", "title") for n in range(6)])).part(2, 5)
    assert part.part_of is not None
    assert part.publication(1) is part.publication(1) is part.part_of.chunk.publication(3)


@pytest.mark.parametrize("columns", [False, True], ids=["objects", "columns"])
@pytest.mark.parametrize("matcher", ["reference", "trie"])
def test_what_is_handed_on_is_matched_as_it_is(matcher: str, columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second engine gets some of the publications that the first one has encoded, and hashed."""
    some = [item(f"p{n}", f"title {n % 4}") for n in range(9)]
    first, second = Engine(matcher=matcher), Engine(matcher=matcher)
    first.subscribe(f"SELECT ?t {{ ?s <{RSS}title> ?t }}", id="all")
    second.subscribe(f'SELECT ?s {{ ?s <{RSS}title> "title 2" }}', id="some")
    for engine in (first, second):
        engine.settle()
    chunks = encoded(first, to_batch(some)) if columns else chunks_for(first, some)
    assert len(match_chunks(first, chunks).to_arrow()) == 9
    monkeypatch.setattr(encoding, "encode", None)
    for numbers in ([2, 5, 6, 8], [0], [2]):
        found = match_chunks(second, take_publications(chunks, numbers)).to_arrow()
        wanted = second.match_batch(to_batch([some[number] for number in numbers]))
        names = [name for name in found.column_names if name != "matched_at"]
        assert found.select(names).to_pylist() == wanted.select(names).to_pylist()
    assert [list(chunk.ids) for chunk in take_publications([*chunks, *chunks], [8, 9])] == [["p8"], ["p0"]]


def test_a_matcher_of_objects_needs_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []

    def encode(publications: Sequence[Publication]) -> Batch:
        encoded.append(len(publications))
        return made(publications)

    made = encoding.encode
    monkeypatch.setattr(encoding, "encode", encode)
    some = [item(f"p{n}", "title") for n in range(300)]
    for matcher, expected in (("reference", list[int]()), ("trie", [300])):
        engine = Engine(matcher=matcher)
        engine.subscribe(f"SELECT ?t {{ ?s <{RSS}title> ?t }}")
        assert len(engine.match(some)) == 300
        assert encoded == expected
