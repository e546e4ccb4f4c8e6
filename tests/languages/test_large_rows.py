"""Rows of subscription files that are far larger than the file: they are refused before they fill the memory."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from triplewire.config import Settings
from triplewire.errors import Refusal, SubscriptionError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.files import read_rows
from triplewire.languages.sources.rows import json_rows

QUERY = "SELECT ?x { ?x dc:title ?y }"


def read(path: Path, settings: Settings | None = None) -> tuple[list[Subscription], list[Refusal]]:
    """The subscriptions and the refusals of a file."""
    refusals: list[Refusal] = []
    return [
        parsed.subscription for parsed in read_rows([path], settings=settings, on_refusal=refusals.append)
    ], refusals


class CountedLines(io.BytesIO):
    """Counts what is read of it."""

    taken = 0

    def readline(self, size: int | None = -1) -> bytes:
        return self._counted(super().readline(size))

    def read1(self, size: int | None = -1) -> bytes:
        return self._counted(super().read1(size))

    def _counted(self, data: bytes) -> bytes:
        self.taken += len(data)
        return data


def test_a_line_that_does_not_end_is_read_no_further_than_a_file_may_be() -> None:
    stream, most = CountedLines(b" " * 40_000_000), 5_000_000
    with pytest.raises(SubscriptionError, match="more than 5,000,000 bytes"):
        list(json_rows(stream, "s.jsonl", Settings(max_input_bytes=most)))
    assert most < stream.taken <= most + 8 * Settings().max_query_bytes + (1 << 20)


LONG = f"{QUERY} #{'x' * 3_000_000}"
MANY = 1_000  # rows
LAYOUTS: dict[str, dict[str, Any]] = {
    "a dictionary": {"dictionary_pagesize_limit": 1 << 30},
    "delta strings": {
        "use_dictionary": False,
        "column_encoding": {"id": "PLAIN", "language": "PLAIN", "query": "DELTA_BYTE_ARRAY"},
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_text_that_many_rows_of_parquet_share_is_in_memory_once(layout: str, tmp_path: Path) -> None:
    """A file of a few KB, 3 GB of texts. The rows beside them are read."""
    queries = pa.array([0] * (MANY - 3) + [1] * 3, pa.int32())
    texts = pa.DictionaryArray.from_arrays(queries, pa.array([LONG, QUERY]))
    columns = {"id": [f"q{number}" for number in range(MANY)], "language": ["sparql"] * MANY, "query": texts}
    file = tmp_path / "s.parquet"
    with pq.ParquetWriter(file, pa.schema([(name, pa.string()) for name in columns]), **LAYOUTS[layout]) as writer:
        table = pa.table(columns)
        for number in range(0, MANY, 50):  # a small part of the texts is in memory here as well
            writer.write_table(table[number : number + 50].cast(writer.schema), MANY)
    before = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counting)
    try:
        found, refusals = read(file)
    finally:
        pa.set_memory_pool(before)
    assert [subscription.id for subscription in found] == [f"q{number}" for number in range(MANY - 3, MANY)]
    assert len(refusals) == MANY - 3
    assert refusals[0].where == f"{file} (record 1)"
    assert refusals[0].reason == "the row is longer than 1,572,864 bytes"
    assert counting.max_memory() < 1 << 30


def test_parquet_that_is_too_large_when_it_is_unpacked(tmp_path: Path) -> None:
    columns = {"id": ["a"], "language": ["sparql"], "query": [f"{QUERY} #{'x' * 3_000_000}"]}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet", compression="zstd")
    assert (tmp_path / "s.parquet").stat().st_size < 10_000
    found, refusals = read(tmp_path, settings=Settings(max_input_bytes=1_000_000))
    assert not found
    assert [refusal.reason for refusal in refusals] == ["it has more than 1,000,000 bytes"]


def test_parquet_may_come_through_a_pipe(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "language": ["sparql"], "query": [QUERY]}), tmp_path / "plain.parquet")
    os.mkfifo(tmp_path / "s.parquet")
    data = (tmp_path / "plain.parquet").read_bytes()
    writer = threading.Thread(target=(tmp_path / "s.parquet").write_bytes, args=[data])
    writer.start()
    found, refusals = read(tmp_path / "s.parquet")
    writer.join()
    assert [subscription.id for subscription in found] == ["a"]
    assert not refusals
