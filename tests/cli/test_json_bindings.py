"""The bindings of rows as JSON text: pieces that come one by one, rows in any order, equal texts once."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from triplewire.cli.matches import written
from triplewire.cli.matches.rows import JsonBindings, Ordered, Payload
from triplewire.cli.matches.written import write_json_lines, write_parquet
from triplewire.encode.strings import TextColumn

PIECES = [
    TextColumn.of([b"[1]", b"[2]"]),
    TextColumn(np.frombuffer(b"[2][3]", np.uint8), np.array([0, 3, 6]), np.array([1, 0, 1], np.int32)),
    TextColumn.of([]),
    TextColumn.of(["[é]".encode()]),
]
TEXTS = ["[1]", "[2]", "[3]", "[2]", "[3]", "[é]"]


def test_rows_in_order() -> None:
    order = np.array([5, 3, 1, 0, 4, 2])
    column = JsonBindings.of(PIECES).ordered(order)
    assert column.encoded(slice(0, 6)).to_pylist() == [TEXTS[row] for row in order]
    assert column.encoded(slice(1, 3)).dictionary.to_pylist() == ["[2]"]
    assert column.encoded(slice(5, 9)).to_pylist() == ["[3]"]


PORTIONS = {
    "a row": (1, False, [1, 1, 1, 1, 1, 1]),
    "two texts": (6, False, [2, 2, 1, 1]),
    "a text and a graph": (16, False, [4, 2]),
    "a text that is there and a graph": (21, True, [5, 1]),
    "the same, each text counted": (21, False, [4, 2]),
    "all": (100, False, [6]),
}


@pytest.mark.parametrize(("most", "once", "lengths"), PORTIONS.values(), ids=PORTIONS)
def test_portions_have_so_many_bytes(
    monkeypatch: pytest.MonkeyPatch, most: int, once: bool, lengths: list[int]
) -> None:
    """Few rows of long texts are put together at once, and the file is the same."""
    number = np.zeros(len(TEXTS), np.int32)
    payload = Payload(JsonBindings.of(PIECES), {4: b"<urn:s> ."}, ["a"], number, np.array([0xABC], np.uint64))
    rows = Ordered(["p"], ["s"], number, number, np.zeros(len(TEXTS), np.bool_), payload)
    whole, parts = io.StringIO(), io.StringIO()
    write_json_lines(whole, rows)
    monkeypatch.setattr(written, "BYTES", most)
    portions = list(written._portions(rows, (9, 9), once=once))
    assert [portion.stop - portion.start for portion in portions] == lengths
    write_json_lines(parts, rows)
    assert parts.getvalue() == whole.getvalue()


def test_parquet_holds_equal_texts_once(tmp_path: Path) -> None:
    """As a dictionary: plain texts would be several times as long."""
    rows = 6
    number = np.zeros(rows, np.int32)
    contents = np.arange(rows) % 2
    payload = Payload(JsonBindings.of(PIECES), {4: b"<urn:s> ."}, ["a", "b"], contents, np.array([0xABC], np.uint64))
    path = tmp_path / "out.parquet"
    write_parquet(path, Ordered(["p"], ["s"], number, number, np.zeros(rows, np.bool_), payload))
    table = pq.read_table(path)
    assert table.column("construct").to_pylist() == [None, None, None, None, "<urn:s> .", None]
    assert table.column("content").to_pylist() == ["a", "b"] * 3
    assert table.column("revision").to_pylist() == ["0000000000000abc"] * rows
    assert pq.read_table(path).column("bindings").to_pylist() == TEXTS
    assert str(pq.read_schema(path).field("bindings").type) in ("string", "large_string")
    (column,) = (c for c in map(pq.read_metadata(path).row_group(0).column, range(7)) if c.path_in_schema == "bindings")
    assert "RLE_DICTIONARY" in column.encodings
