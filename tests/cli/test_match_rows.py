"""What is written of rows depends on the rows alone: not on how many come at once, nor on what they share."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from triplewire.cli import matches
from triplewire.cli.matches import JsonLines, Parquet, rows_in_order

ROWS = [
    {
        "publication": f"urn:p:{number // 3}",
        "subscription": 'a "quoted" é\n' if number % 5 == 4 else f"s{number % 3}",
        "bindings": json.dumps([{"x": {"type": "literal", "value": "v" * (number % 4)}}]),
        "truncated": number % 7 == 0,
        "construct": '<urn:s> <urn:p> "x" .\n' if number % 3 == 1 else None,
        "content": f"{number // 3:064x}",
        "revision": f"{number % 3:016x}",
    }
    for number in range(40)
]
LINES = "".join(
    json.dumps(row, ensure_ascii=False).replace(json.dumps(row["bindings"]), str(row["bindings"])) + "\n"
    for row in ROWS
)
SIZES = {"one": 1, "some": 7, "all": len(ROWS)}


def batches(size: int) -> Iterator[pa.RecordBatch]:
    """The rows, so many at a time; a batch has the texts of all rows, as a slice of a larger one does."""
    table = pa.Table.from_pylist(ROWS)
    texts = {name: table[name].combine_chunks() for name in table.column_names}
    whole = [column if pa.types.is_boolean(column.type) else column.dictionary_encode() for column in texts.values()]
    batch = pa.RecordBatch.from_arrays(whole, names=list(texts))
    return (batch.slice(start, size) for start in range(0, len(ROWS), size))


def parquet(path: Path, size: int) -> bytes:
    """The bytes of a file."""
    writer = Parquet(path, bindings=True)
    for batch in batches(size):
        writer.write_rows(batch)
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize("most", [1, 300, 1 << 25])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_json_lines(monkeypatch: pytest.MonkeyPatch, size: int, most: int) -> None:
    monkeypatch.setattr(matches, "BYTES", most)
    stream = io.StringIO()
    writer = JsonLines(stream, bindings=True)
    for batch in batches(size):
        writer.write_rows(batch)
    assert stream.getvalue() == LINES


@pytest.mark.parametrize(("most_rows", "most_bytes"), [(1 << 13, 1 << 25), (11, 1 << 25), (1 << 13, 600)])
def test_parquet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most_rows: int, most_bytes: int) -> None:
    monkeypatch.setattr(matches, "GROUP_ROWS", (1 << 20, most_rows))
    monkeypatch.setattr(matches, "BYTES", most_bytes)
    path = tmp_path / "out.parquet"
    files = {parquet(path, size) for size in SIZES.values()}
    assert len(files) == 1
    assert pq.read_table(path).to_pylist() == ROWS
    groups = pq.read_metadata(path)
    lengths = [groups.row_group(number).num_rows for number in range(groups.num_row_groups)]
    assert sum(lengths) == len(ROWS)
    assert (len(lengths) == 1) == (most_rows > len(ROWS) and most_bytes > 1 << 20)
    assert max(lengths) <= most_rows
    assert str(pq.read_schema(path).field("bindings").type) in ("string", "large_string")


def test_parquet_holds_equal_texts_once(tmp_path: Path) -> None:
    """As a dictionary: plain texts would be several times as long."""
    path = tmp_path / "out.parquet"
    parquet(path, 7)
    group = pq.read_metadata(path).row_group(0)
    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    assert "RLE_DICTIONARY" in columns["bindings"].encodings
    assert columns["bindings"].total_uncompressed_size < 600


def test_rows_of_workers_in_order() -> None:
    """Runs of files come in any order, each in parts, and parts of several runs in one batch."""
    whole = pa.Table.from_batches(batches(len(ROWS)))
    places = [0] * 10 + [1] * 13 + [2] * 17
    rows = [*range(10), *range(13), *range(17)]
    numbered = whole.append_column("place", pa.array(places)).append_column("row", pa.array(rows))
    parts = [numbered.slice(16, 24), numbered.slice(0, 4), numbered.slice(10, 6), numbered.slice(4, 6)]
    mixed = pa.concat_tables(parts).combine_chunks()
    ordered = pa.Table.from_batches(list(rows_in_order(mixed)))
    assert ordered.to_pylist() == ROWS
    assert pa.Table.from_batches(list(rows_in_order(pa.concat_tables(parts)))).to_pylist() == ROWS
