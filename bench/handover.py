"""Handing over what was found: what a caller takes from a result, beside counting its matches.

That is the result of one publication, by turns in one process, and what Arrow without bindings adds to matching a
batch.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice

from bench.measure import load_case
from bench.report import Figure
from bench.workloads.catalogue import RTF_SUBSCRIPTIONS, Case, Place, rtf_case
from triplewire.cli.matches import rows_of
from triplewire.encode.matches import json_lines
from triplewire.engine import MatchResult
from triplewire.read import read

OVER_COUNTING = {"ids as a list": 2.0, "for match in result: match.subscription": 7.0}
OVER_MATCHING = 0.1
_PUBLICATIONS = 300  # and of one batch
_TURNS = 5


def _subscriptions(result: MatchResult) -> None:
    for match in result:
        _ = match.subscription


def _bindings(result: MatchResult) -> None:
    for match in result:
        _ = match.bindings


def _json_lines(result: MatchResult) -> None:
    for part in result.parts:
        for rows in rows_of(part, bindings=True):
            json_lines(rows)


_TAKEN: dict[str, Callable[[MatchResult], object]] = {
    "len(result)": len,
    "ids as a list": lambda result: result.subscription_ids,
    "plain columns": MatchResult.rows,
    "for match in result: match.subscription": _subscriptions,
    "for match in result: match.bindings": _bindings,
    "Arrow with bindings": MatchResult.to_arrow,
    "JSON Lines with bindings": _json_lines,
}


def handover_cases(place: Place) -> list[Case]:
    """RTF with half text."""
    return [rtf_case(place, 50, place.sized(RTF_SUBSCRIPTIONS))]


def handover_figures(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """The least times of several turns, each publication by itself; as ratios, in which other load of the machine
    counts on both sides."""
    (case,) = cases
    engine = load_case(place, case, matcher).engine
    engine.settle()
    publications = list(islice(read(case.publications), _PUBLICATIONS))
    full = place.size is None
    least: dict[str, list[float]] = defaultdict(lambda: [float("inf")] * len(publications))
    for _ in range(_TURNS):
        for number, publication in enumerate(publications):
            for name, take in _TAKEN.items():
                begun = time.perf_counter()
                take(engine.match(publication))
                least[name][number] = min(least[name][number], time.perf_counter() - begun)
    found = len(engine.match(publications))
    yield Figure("handover", "matches a publication", found / len(publications))
    counting = sum(least["len(result)"])
    for name, seconds in least.items():
        yield Figure("handover", f"{name}", sum(seconds) / max(found, 1) * 1e9, "ns/match")
        target = OVER_COUNTING.get(name) if full else None
        if name != "len(result)":
            yield Figure("handover", f"{name} / len(result)", sum(seconds) / counting, "x", target)
    matching = arrow = float("inf")
    for _ in range(_TURNS):
        begun = time.perf_counter()
        result = engine.match(publications)
        matched = time.perf_counter()
        result.to_arrow(bindings=False)
        matching, arrow = min(matching, matched - begun), min(arrow, time.perf_counter() - matched)
    name = f"Arrow without bindings / matching {len(publications)} publications"
    yield Figure("handover", name, arrow / matching, "x", OVER_MATCHING if full else None)
