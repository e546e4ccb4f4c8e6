"""Figures 9(c) to 9(i) and 10 of the cluster paper (001, section 5): their points, and of each claim whether it holds.

What is measured: `triplewire.bench.partition` and, where there are nodes, `triplewire.bench.nodes`. The paper gives the
shapes in pictures, which the text at hand lacks: a claim is what its text says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from triplewire.bench.operators.lines import to_csv, to_svg
from triplewire.bench.report import Figure

NONE, CONTAINMENT, MERGING = "no indexing", "containment", "merging"
ON_EACH_NODE = ", server's index on each node"
AGAIN, MATCHING = ", encoded again by nodes", ", matching alone"
SLOWEST = "publications a second (slowest node's work, each node a machine)"

Line = dict[Any, float]
Lines = dict[str, Line]
"""Line -> place on the axis -> value."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, what was measured, and whether it holds."""

    figure: str
    claim: str
    measured: str
    held: bool


Said = Iterator[tuple[str, str, bool]]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: what is along its axes, and what the paper says of it."""

    name: str
    across: str
    up: str
    claims: Callable[[Lines], Said]

    @property
    def file(self) -> str:
        """The name of its files, without a suffix."""
        return f"cluster-figure-{self.name.replace(', ', '-').replace(' ', '-')}"


@dataclass
class Points:
    """The points of all figures, as they are measured."""

    lines: dict[str, Lines] = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))

    def add(self, figure: str, line: str, place: float, value: float) -> None:
        """Note a point."""
        self.lines[figure][line][place] = value


def _sizes(lines: Lines) -> Said:
    """9(c)."""
    last = max(lines[CONTAINMENT])
    share = lines[CONTAINMENT][last] / last
    yield "indexing reduces the server's index to 50 %", f"{share:.1%} of {last:,} (containment)", share <= 0.505
    if MERGING in lines:
        share = lines[MERGING][last] / last
        yield "merging reduces it to 50 % or less", f"{share:.1%} of {last:,}", share <= 0.505


def _overlaps(lines: Lines) -> Said:
    """9(d)."""
    line = lines[CONTAINMENT]
    whole = line[min(line)] / (1 - min(line) / 100)
    off = {percent: size / (whole * (1 - percent / 100)) - 1 for percent, size in line.items()}
    worst = max(off.values(), key=abs)
    yield "the index has about subscriptions * (1 - overlap) entries", f"{worst:+.1%} at most", abs(worst) <= 0.1
    yield "the larger the overlap, the smaller the index", _told(line), _falls(line)


def _false(lines: Lines) -> Said:
    """9(e)."""
    line = lines[MERGING]
    if 90 in line:
        yield "0.13 % false positives at 90 %", f"{line[90]:.2f} %", line[90] <= 0.13
    yield "false positives do not fall as more is merged", _told(line, ".2f"), _rises(line, strictly=False)


def _insertion(lines: Lines) -> Said:
    """9(f)."""
    line, plain = lines[CONTAINMENT], lines[NONE]
    ratio = min(line[size] / plain[size] for size in line)
    yield "insertion takes longer with containment than without indexing", f"{ratio:.1f} times at least", ratio > 1
    yield "it takes longer the more subscriptions there are", _told(line, ".1f"), _rises(line)


def _merged(lines: Lines) -> Said:
    """9(g)."""
    line, whole = lines[MERGING], next(iter(lines[NONE].values()))
    yield "the index shrinks as more is to be merged", _told(line), _falls(line)
    least = min(100 * size / (whole * (100 - percent)) for percent, size in line.items())
    name = "the index stays larger than subscriptions * (1 - percentage), or as large"
    yield name, f"{least:.2f} times at least", least >= 1
    if 99 in line and whole == 10_000:
        yield "629 entries at 99 %", f"{line[99]:,.0f}", line[99] <= 1.1 * 629


def _merging_time(lines: Lines) -> Said:
    """9(h)."""
    yield "merging takes longer as more is to be merged", _told(lines[MERGING], ".1f"), _rises(lines[MERGING])


def _nodes(lines: Lines) -> Said:
    """9(i)."""
    last = max(lines[CONTAINMENT])
    asked_of = {CONTAINMENT: 2.0, MERGING: 4.0}
    for name, asked in ((way + end, asked) for way, asked in asked_of.items() for end in ("", ON_EACH_NODE)):
        if name not in lines:
            continue
        line = lines[name]
        if name.endswith(ON_EACH_NODE):  # one such node is one machine, as one engine is
            more = {nodes: rate for nodes, rate in line.items() if nodes}
            yield f"{name}: the throughput grows with the nodes, from one on", _told(line, ",.0f"), _rises(more)
        else:
            yield f"{name}: the throughput grows with the nodes", _told(line, ",.0f"), _rises(line)
        if last == 6:
            times = line[last] / line[0]
            yield f"{name}: {asked * 100:.0f} % with 6 nodes", f"{times:.0%}", times >= asked
    least = min(lines[MERGING][nodes] / lines[CONTAINMENT][nodes] for nodes in lines[MERGING] if nodes)
    yield "merging is faster than containment", f"{least:.2f} times at least", least > 1


def _percentages(lines: Lines) -> Said:
    """10."""
    single = next(iter(lines["one engine"].values()))
    for name, line in lines.items():
        if name != "one engine":
            yield f"{name}: the throughput grows as more is merged", _told(line, ",.0f"), _rises(line)
    best = max(line[90] / single for line in lines.values() if 90 in line)
    yield "4 times one engine's throughput at 90 %", f"{best:.1f} times at most", best >= 4


DRAWINGS = (
    Drawing("9c", "subscriptions", "entries of the server's index", _sizes),
    Drawing("9d", "percent of overlap", "entries of the server's index", _overlaps),
    Drawing("9e", "percent to be merged", "percent of publications sent in vain", _false),
    Drawing("9f", "subscriptions", "microseconds a subscription", _insertion),
    Drawing("9g", "percent to be merged", "entries of the server's index", _merged),
    Drawing("9h", "percent to be merged", "seconds", _merging_time),
    Drawing("9i", "back-end nodes", SLOWEST, _nodes),
    Drawing("10", "percent to be merged", SLOWEST, _percentages),
    *(Drawing("9i" + kind, "back-end nodes", SLOWEST, _nodes) for kind in (AGAIN, MATCHING)),
    *(Drawing("10" + kind, "percent to be merged", SLOWEST, _percentages) for kind in (AGAIN, MATCHING)),
)


def figures(points: Points, folder: Path | None) -> Iterator[Figure]:
    """The claims as rows. With a folder, tables and pictures are written to it."""
    claims = []
    for drawing in DRAWINGS:
        lines = points.lines.get(drawing.name)
        if not lines:
            continue
        if folder is not None:
            write(folder, drawing, lines)
        for claim, measured, held in drawing.claims(lines):
            claims.append(Claim(drawing.name, claim, measured, held))
            told = f"{'held' if held else 'NOT HELD'}: {measured}"
            yield Figure("cluster", f"figure {drawing.name}: {claim}", float(held), "held", note=told)
    if folder is not None:
        head = ("figure", "claim", "measured", "held")
        rows = [(claim.figure, claim.claim, claim.measured, "yes" if claim.held else "no") for claim in claims]
        to_csv(folder / "cluster-claims.csv", head, rows)


def write(folder: Path, drawing: Drawing, lines: Lines) -> None:
    """Write a figure as a table and as a picture."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [(name, place, f"{value:.6g}") for name, line in lines.items() for place, value in line.items()]
    to_csv(folder / f"{drawing.file}.csv", ("line", drawing.across, drawing.up), rows)
    places = sorted({place for line in lines.values() for place in line})
    drawn = {name: [_at(line, place) for place in places] for name, line in lines.items()}
    picture = to_svg(f"Figure {drawing.name}", drawing.across, drawing.up, places, drawn)
    (folder / f"{drawing.file}.svg").write_text(picture, "utf-8")


def _at(line: Line, place: float) -> float | None:
    """The value at a place, if it was measured there; that of a line with one point is for all places."""
    return next(iter(line.values())) if len(line) == 1 else line.get(place)


def _told(line: Line, form: str = ",.0f") -> str:
    return ", ".join(f"{value:{form}}" for _, value in sorted(line.items()))


def _rises(line: Line, *, strictly: bool = True) -> bool:
    values = [value for _, value in sorted(line.items())]
    steps = pairwise(values)
    return all(a < b if strictly else a <= b for a, b in steps)


def _falls(line: Line) -> bool:
    return _rises({place: -value for place, value in line.items()})
