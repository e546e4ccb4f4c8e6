"""The arrays of tests on nodes (`triplewire.clauses.node_tests.table.Tests`), checked before anything trusts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import under
from triplewire.clauses.node_tests.substrings import CHANGES
from triplewire.clauses.node_tests.table import OPS, RANGE
from triplewire.clauses.schema import Column, Schema, check, check_names, from_json, is_ascending, require

_TESTS: Schema = {
    "kind": Column("u1", ("tests",), below=RANGE + 1),
    "group": Column("i4", ("tests",), below="groups", least=-1),
    "op": Column("u1", ("tests",), below=len(OPS)),
    "rank": Column("i4", ("tests",), least=-1),
    "specs": Column("u1", ("bytes",)),
    "spec_offset": Column("i8", ("tests+1",), offsets="bytes"),
    "meta": Column("u1", ("characters",)),
}
_POSTINGS: Schema = {
    "offset": Column("i8", ("rows+1",), offsets="postings"),
    "test": Column("i4", ("postings",), below="tests"),
}
_LOOKUP: Schema = {**_POSTINGS, "wanted": Column("i4", ("kinds",))}
_SUBSTRINGS: Schema = {
    **_POSTINGS,
    "kinds": Column("i4", ("postings",)),
    "first": Column("i4", ("nodes+1",), below="nodes+1", least=1),
    "label": Column("u1", ("nodes",)),
    "end": Column("i4", ("nodes",), below="rows", least=-1),
    "root": Column("i4", (256,), below="nodes"),
    "fail": Column("i4", ("nodes",), below="nodes"),
    "report": Column("i4", ("nodes",), below="nodes"),
}
_SCALE: Schema = {
    "exact": Column("b1", ("keys",)),
    "lexical": Column("u1", ("bytes",)),
    "lexical_offset": Column("i8", ("constants+1",), offsets="bytes"),
    "datatype": Column("u1", ("more bytes",)),
    "datatype_offset": Column("i8", ("constants+1",), offsets="more bytes"),
    "point_offset": Column("i8", ("constants+1",), offsets="points"),
    "point_test": Column("i4", ("points",), below="tests"),
}


def check_tests(arrays: Mapping[str, NDArray[Any]], part: str) -> int:
    """Check what `Tests.arrays` gave. Returns how many tests there are. Raises `ValueError`, or `KeyError`, `TypeError`
    or `AttributeError` where something is missing or another thing."""
    if "meta" not in arrays:
        raise ValueError(f"the array {part}.meta is missing")
    meta = from_json(arrays["meta"], f"{part}.meta")
    groups = meta["groups"]
    require(type(groups) is int and groups >= 0, f"{part}.meta has no number of groups")
    tests = check(_TESTS, arrays, part, {"groups": groups})["tests"]
    is_range = arrays["kind"] == RANGE
    for name, ranged in (("op", arrays["op"] > 0), ("group", arrays["group"] >= 0), ("rank", arrays["rank"] >= 0)):
        require(np.array_equal(ranged, is_range), f"the array {part}.{name} does not fit to {part}.kind")
    for number in range(len(meta["words"])):
        _check_words(_part(arrays, f"words{number}"), f"{part}.words{number}", tests)
    for number, (key, *of_groups) in enumerate(meta["scales"]):
        is_group = all(type(group) is int and -1 <= group < groups for group in of_groups)
        require(is_group and len(of_groups) == 3, f"{part}.meta has a wrong scale")
        _check_scale(_part(arrays, f"scales{number}"), f"{part}.scales{number}", str(key[0]), tests)
    for change in ("", *CHANGES):
        if substrings := _part(arrays, f"substrings{change}"):
            _check_substrings(substrings, f"{part}.substrings{change}", tests)
    if meta["literals"] is not None:
        _check_lookup(_part(arrays, "literals"), f"{part}.literals", tests, of_kinds=True)
    for name in ("languages", "classes"):
        if meta[name] is not None:
            check(_POSTINGS, _part(arrays, name), f"{part}.{name}", {"tests": tests, "rows": len(meta[name])})
    return tests


def _part(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    return under(name, arrays)


def _check_words(arrays: Mapping[str, NDArray[Any]], part: str, tests: int) -> None:
    if words := _part(arrays, "words"):
        _check_lookup(words, f"{part}.words", tests, of_kinds=False)
    if prefixes := _part(arrays, "prefixes"):
        _check_substrings(prefixes, f"{part}.prefixes", tests)


def _check_lookup(arrays: Mapping[str, NDArray[Any]], part: str, tests: int, *, of_kinds: bool) -> None:
    """`of_kinds`: each posting is meant for some kinds of nodes."""
    rows = check_names(_part(arrays, "names"), f"{part}.names")
    sizes = check(_LOOKUP, arrays, part, {"tests": tests, "rows": rows})
    require(sizes["kinds"] == (sizes["postings"] if of_kinds else 0), f"the array {part}.wanted is of another length")


def _check_substrings(arrays: Mapping[str, NDArray[Any]], part: str, tests: int) -> None:
    """An automaton: children lie behind their parent, and links lead to nodes before. So every walk ends."""
    nodes = check(_SUBSTRINGS, arrays, part, {"tests": tests})["nodes"]
    first, end, fail, report = (arrays[name] for name in ("first", "end", "fail", "report"))
    place = np.arange(nodes)
    require(is_ascending(first) and (first[:-1] > place).all(), f"the children in {part}.first are out of order")
    before = (fail < np.maximum(place, 1)).all() and (report < np.maximum(place, 1)).all()
    require(before, f"a link in {part}.fail or {part}.report does not lead back")
    require((end[report[report > 0]] >= 0).all(), f"a link in {part}.report leads to no end")


def _check_scale(arrays: Mapping[str, NDArray[Any]], part: str, name: str, tests: int) -> None:
    """A lenient scale ("n", "i") has a key for each constant, a strict one has none."""
    keys = Column("f8" if name == "n" else "i8", ("keys",), least=np.iinfo(np.int64).min)
    sizes = check({**_SCALE, "keys": keys}, arrays, part, {"tests": tests})
    require(sizes["keys"] == (sizes["constants"] if name in ("n", "i") else 0), f"{part}.keys is of another length")
    require(is_ascending(arrays["keys"]), f"the keys in {part}.keys are out of order")
