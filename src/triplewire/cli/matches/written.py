"""Rows of matches as JSON Lines and Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.cli.matches.rows import Ordered, Payload, dictionary
from triplewire.encode.buffers import of_bools, of_few, of_numbers, of_strings, of_text
from triplewire.encode.strings import hexadecimal, utf8

ROW_GROUPS = 1 << 20, 1 << 13  # rows of one Parquet row group, without bindings and with them
LINES = 1 << 16, 1 << 12  # lines of JSON put together at once, without bindings and with them

BYTES = 1 << 25
"""Bytes of bindings and graphs that are put together at once, if there are several rows."""

_NAMES = pa.dictionary(pa.int32(), pa.large_string())


def _portions(rows: Ordered, most: tuple[int, int], *, once: bool) -> Iterator[slice]:
    """The rows in portions of so many, without payload and with it; fewer where those have more than `BYTES`. `once`:
    equal texts of a portion are written once."""
    payload = rows.payload if isinstance(rows.payload, Payload) else None
    start = 0
    while start < len(rows):
        end = min(start + most[payload is not None], len(rows))
        if payload is not None:
            lengths = payload.bindings.lengths(slice(start, end), once=once)
            for row, graph in _within(payload.construct, slice(start, end)).items():
                lengths[row] += len(graph)
            end = start + max(1, int(np.searchsorted(np.cumsum(lengths), BYTES, "right")))
        yield slice(start, end)
        start = end


def write_json_lines(stream: IO[str], rows: Ordered) -> None:
    """One JSON object a line, as the README describes it."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    payload = rows.payload if isinstance(rows.payload, Payload) else None
    between = b', "bindings": ' if payload is not None else b""
    publications = _pieces(utf8(f'{{"publication": {dumps(name)}, "subscription": ') for name in rows.publications)
    subscriptions = _pieces(utf8(dumps(name)) + between for name in rows.subscriptions)
    end = b', "construct": ' if payload is not None else b"}\n"
    truncated = _pieces((b', "truncated": false' + end, b', "truncated": true' + end))
    for portion in _portions(rows, LINES, once=False):
        columns = [publications.take(of_numbers(rows.publication[portion]))]
        columns.append(subscriptions.take(of_numbers(rows.subscription[portion])))
        if payload is not None:
            columns.append(payload.bindings.encoded(portion).dictionary_decode().cast(pa.large_binary()))
        columns.append(truncated.take(of_numbers(rows.truncated[portion].astype(np.int8))))
        if payload is not None:
            columns += _json_ends(payload, portion, rows.subscription[portion])
        lines = pc.binary_join_element_wise(*columns, of_strings([b""])[0])
        end = np.frombuffer(lines.buffers()[1], np.int64)[len(lines)]
        stream.write(lines.buffers()[2].slice(0, end).to_pybytes().decode())


def _json_ends(payload: Payload, portion: slice, subscription: NDArray[np.int32]) -> Iterator[pa.Array]:
    """The last values of some lines: the graph, the content hash, and the revision with the end of the line."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    graphs = [b"null", *(utf8(dumps(graph.decode())) for graph in _within(payload.construct, portion).values())]
    place = np.zeros(portion.stop - portion.start, np.int32)
    place[list(_within(payload.construct, portion))] = np.arange(1, len(graphs))
    yield of_strings(graphs).take(of_numbers(place))
    used, number = np.unique(payload.content[portion], return_inverse=True)
    contents = [b', "content": "%s", "revision": "' % utf8(payload.contents[content]) for content in used.tolist()]
    yield of_strings(contents).take(of_numbers(number))
    revisions = hexadecimal(payload.revisions[subscription])
    yield of_text(revisions.text, revisions.offset)
    yield of_strings([b'"}\n']).take(of_numbers(np.zeros(len(subscription), np.int8)))


def _within(graphs: Mapping[int, bytes | memoryview], portion: slice) -> dict[int, bytes]:
    """The graphs of some rows, by their place among these."""
    rows = range(portion.start, portion.stop) if graphs else ()
    return {row - portion.start: bytes(graphs[row]) for row in rows if row in graphs}


def write_parquet(file: Path | IO[bytes], rows: Ordered) -> None:
    """The same columns as JSON Lines; the bindings are JSON text, and `construct` is N-Quads."""
    import pyarrow.parquet as pq  # JSON Lines do without it

    publications, subscriptions = (
        _pieces(map(utf8, names)).cast(pa.large_string()) for names in (rows.publications, rows.subscriptions)
    )
    schema = {"publication": _NAMES, "subscription": _NAMES, "bindings": _NAMES, "truncated": pa.bool_()}
    schema |= {"construct": pa.large_string(), "content": _NAMES, "revision": _NAMES}
    payload = rows.payload if isinstance(rows.payload, Payload) else None
    if payload is None:
        for name in ("bindings", "construct", "content", "revision"):
            del schema[name]
    # without Arrow's own schema in it, the names are read back as plain strings; rows are in the order of publications,
    # so only their least and greatest tell readers which row groups they need
    own = {"store_schema": False, "write_statistics": ["publication"]}
    with pq.ParquetWriter(file, pa.schema(schema), **own) as writer:
        for portion in _portions(rows, ROW_GROUPS, once=True):
            columns = {
                "publication": pa.DictionaryArray.from_arrays(of_numbers(rows.publication[portion]), publications),
                "subscription": pa.DictionaryArray.from_arrays(of_numbers(rows.subscription[portion]), subscriptions),
                "truncated": of_bools(rows.truncated[portion]),
            }
            if payload is not None:
                columns["bindings"] = payload.bindings.encoded(portion)
                columns["construct"] = of_few(_within(payload.construct, portion), portion.stop - portion.start).cast(
                    pa.large_string()
                )
                used, number = np.unique(payload.content[portion], return_inverse=True)
                contents = of_strings([utf8(payload.contents[content]) for content in used.tolist()])
                columns["content"] = dictionary(contents.cast(pa.large_string()), number)
                used, number = np.unique(rows.subscription[portion], return_inverse=True)
                revisions = hexadecimal(payload.revisions[used])
                columns["revision"] = dictionary(
                    of_text(revisions.text, revisions.offset).cast(pa.large_string()), number
                )
            writer.write_batch(pa.record_batch([columns[name] for name in schema], schema=writer.schema), ROW_GROUPS[0])


def _pieces(texts: Iterable[bytes]) -> pa.Array:
    return of_strings(list(texts))
