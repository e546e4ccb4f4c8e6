"""A snapshot of segments as the files of a saved engine, and back: texts, and index and join network as arrays.

The directory they lie in: `triplewire.engine.store.directory`. Rules that name other rules are compiled when they are
opened; nothing else is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import VERSION, Clauses
from triplewire.clauses.node_tests.columns import flat, prefixed, to_bytes, under, unflat
from triplewire.encode.names import Names
from triplewire.engine.chunk import Snapshot
from triplewire.engine.compiler import Compiler
from triplewire.engine.segments.segment import Segment, SegmentContext
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.engine.segments.texts import IdTable, TextFile, Texts
from triplewire.engine.store.directory import Part, SavedEngine, damaged, write_arrays
from triplewire.engine.store.rows import UNITS, checked, compiled_rows, named_by, parsed_row, proved_row, units_of
from triplewire.engine.subscriptions import Rules
from triplewire.errors import StoreError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.tables import line_of
from triplewire.memory import give_back
from triplewire.model.operator import parameters_of, takes
from triplewire.select.index import IndexMaker
from triplewire.verify import network


class StoredSegment:
    """A snapshot of segments, which is not empty, on its way to the files of a saved engine, as one segment. Raises
    `StoreError` where a subscription would not come back as it is."""

    def __init__(self, snapshot: Snapshot, compiler: Compiler) -> None:
        assert isinstance(snapshot, SegmentSnapshot)
        segment = snapshot.whole()
        assert segment is not None
        self._segment = segment
        rules = _rules_of(segment, len(segment))
        self._rows = {
            number: line_of(proved_row(subscription, rules, (rules, _rules_of(segment, number)), compiler))
            for number, subscription in sorted(segment.pinned.items())
        }
        self._units = units_of((name for name, _ in segment.operators), compiler.world.operators)
        self._directory: dict[str, list[Any]] = {}

    def parts(self) -> dict[str, Part]:
        """The data files."""
        return {"subscriptions": ("jsonl", self._write_texts), "index": ("bin", self._write_index)}

    def manifest(self) -> dict[str, Any]:
        """The entry of the manifest, once the parts are written."""
        made_by = _made_by(self._segment.context.maker)
        entry = {"version": VERSION, "made_by": made_by, "network": network.VERSION, UNITS: self._units}
        return {"index": {**entry, "arrays": self._directory}}

    def _write_texts(self, stream: IO[bytes]) -> None:
        texts, start = self._segment.texts, 0
        for number, row in [*self._rows.items(), (len(texts), b"")]:
            for block in texts.take(np.arange(start, number)).blocks():
                stream.write(block)
            stream.write(row)
            start = number + 1

    def _write_index(self, stream: IO[bytes]) -> None:
        segment = self._segment
        length = segment.texts.length.copy()
        for number, row in self._rows.items():
            length[number] = len(row)
        start = np.cumsum(length, dtype=np.int64) - length
        columns = {
            "start": start,
            "length": length,
            "rank": segment.ids.rank,
            "selection": segment.selection,
            "construct": segment.construct,
            "pinned": np.array(list(self._rows), np.int32),
            "selections": _to_array(segment.selections),
            "operators": _to_array(sorted(segment.operators)),
        }
        arrays = prefixed("clauses", segment.clauses.arrays()) | prefixed("index", segment.index.arrays())
        arrays |= prefixed("ids", flat(segment.ids.names)) | prefixed("network", segment.verifier_arrays())
        self._directory = write_arrays(stream, arrays | columns)


def opened(saved: SavedEngine, context: SegmentContext, source: str) -> Segment | None:
    """The segment of a saved engine; None where its clauses are of another version, or were made of texts that mean
    something else now.

    An index that another maker, or another version of this one, has saved is made anew from the clauses. So is a
    network of another version, when it is first needed.

    Raises `StoreError` where an operator is missing, or something does not fit together.
    """
    entry, arrays, compiler = saved.manifest.get("index"), saved.index, context.compiler
    if arrays is None or not isinstance(entry, Mapping) or entry.get("version") != VERSION:
        return None
    try:
        if not _means_the_same(saved, entry, compiler):
            return None
        segment = _segment(saved, arrays, context, entry)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"its index does not fit together ({type(error).__name__}: {error})"
        raise damaged(Path(source), what) from error
    for name, count in sorted(segment.operators):
        operator = compiler.world.operators.get(name)
        if operator is None:
            raise StoreError(f"its subscriptions call the operator {name!r}, which is not there", source=source)
        if parameters_of(operator, count) is None:
            what = f"its subscriptions call {name} with {count} arguments, and it takes {takes(operator)}"
            raise StoreError(what, source=source)
    segment = _pinned(segment, arrays["pinned"].tolist(), compiler, source)
    give_back()
    return segment


def _segment(
    saved: SavedEngine, arrays: Mapping[str, NDArray[Any]], context: SegmentContext, entry: Mapping[str, Any]
) -> Segment:
    """The segment of the arrays. `entry` says in the manifest who made the index and the network. Raises an error of
    Python where something is missing."""
    texts, maker = TextFile(saved.subscriptions), context.maker
    clauses, joins = Clauses.from_arrays(under("clauses", arrays)), None
    if entry.get("made_by") != _made_by(maker):
        index = maker.build(clauses)
    else:
        index = maker.open(clauses, under("index", arrays))
        if entry.get("network") == network.VERSION and (saved_network := under("network", arrays)):
            # it goes by what the index proves, and its order
            joins = network.opened_network(saved_network)._asdict()
    start = arrays["start"]
    selections = [None if names is None else tuple(names) for names in _from_array(arrays["selections"])]
    return Segment(
        context,
        clauses,
        index,
        IdTable(unflat(under("ids", arrays), (Names,)), arrays["rank"]),
        Texts((texts,), np.zeros(len(start), np.uint8), start, arrays["length"]),
        tuple(selections),
        arrays["selection"],
        arrays["construct"],
        {},
        frozenset((name, count) for name, count in _from_array(arrays["operators"])),
        joins,
    )


def _pinned(segment: Segment, numbers: list[int], compiler: Compiler, source: str) -> Segment:
    """The segment with the rules that name other rules, compiled."""
    rows: dict[str, dict[str, Any]] = {}
    waiting = list(numbers)
    while waiting:  # with those that they name
        number = waiting.pop()
        row = parsed_row(segment.texts.read(number), source)
        if row["id"] in rows:
            continue
        rows[row["id"]] = row
        named = (segment.ids.names.find(to_bytes(name)) for name in named_by(row))
        waiting += [number for number in named if number >= 0]
    compiled = {segment.ids.names.find(to_bytes(rule.id)): rule for rule in compiled_rows(rows, compiler, source)}
    return replace(segment, pinned={number: checked(compiled[number], compiler, source) for number in numbers})


def _means_the_same(saved: SavedEngine, entry: Mapping[str, Any], compiler: Compiler) -> bool:
    """Were the clauses made with these limits of their number, and with the units of these operators?"""
    units, world = entry[UNITS], compiler.world
    now = units_of(units, world.operators)
    # of an operator with more or fewer parameters, `opened` tells
    same = all(len(now[name]) != len(units[name]) or now[name] == units[name] for name in now)
    return same and saved.manifest["settings"]["max_branches"] == world.settings.max_branches


def _rules_of(segment: Segment, end: int) -> Rules:
    """The MDV rules among the first subscriptions of a segment."""

    def get(id: str) -> Subscription | None:
        number = segment.ids.names.find(to_bytes(id))
        return segment.stated(number) if 0 <= number < end else None

    return Rules(get, lambda: map(segment.stated, range(end)))


def _made_by(maker: IndexMaker) -> str:
    """What tells whether a maker can open the arrays of an index."""
    return f"{maker.name} {maker.version}"


def _to_array(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode("ascii"), np.uint8)


def _from_array(array: NDArray[Any]) -> Any:
    return json.loads(array.tobytes())
