"""Figures 4 to 8 of the operators paper, at its sizes: the points, and of each claim whether it holds.

The paper does not say how likely each predicate is true, so each figure is made for every recipe of
`triplewire.bench.workloads.operators`. An order is told the probabilities, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from triplewire.bench.operators.lines import to_csv, to_svg
from triplewire.bench.operators.simulation import Run, known_chances
from triplewire.bench.report import Figure
from triplewire.bench.workloads.operators import RECIPES, generated
from triplewire.operators.order import ORDERS

SUBSCRIPTIONS, PREDICATES = 80_000, 40_000
EVENTS = 8  # of a point; the paper has 1,000, whose mean differs by less than 2 %
UNIFORM = "uniform"
NAIVE, SEQUENTIAL, SUB_ORDER = "naive", "sequential", "sub-order"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a point of a figure is made with. `alpha`: the exponent of Zipf's distribution, or UNIFORM."""

    subscriptions: int
    predicates: int
    longest: int
    alpha: float | str


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of the paper: what varies, and its settings."""

    name: str
    varies: str
    settings: tuple[Setting, ...]

    def at(self, setting: Setting) -> Any:
        """The place of a setting on the axis."""
        return getattr(setting, self.varies)


_MANY = (2_000, 10_000, 20_000, 40_000, 80_000)
PLOTS = (
    Plot("4", "subscriptions", tuple([Setting(n, PREDICATES, 5, UNIFORM) for n in _MANY])),
    Plot("5", "subscriptions", tuple([Setting(n, PREDICATES, 5, 1.0) for n in _MANY])),
    Plot("6", "predicates", tuple([Setting(20_000, n, 5, 1.0) for n in (2_000, 5_000, 10_000, 20_000, 30_000)])),
    Plot("7", "longest", tuple([Setting(20_000, 5_000, n, 1.0) for n in (5, 7, 9, 11)])),
    Plot("8", "alpha", tuple([Setting(20_000, 5_000, 5, alpha) for alpha in (UNIFORM, 0.8, 1.0, 1.2)])),
)

Point = tuple[str, Any, str]
"""Recipe, place on the axis, order."""
Points = dict[Point, Run]


def shrunk_plot(plot: Plot, times: float) -> Plot:
    """The figure with so many times the paper's subscriptions and predicates."""

    def smaller(setting: Setting) -> Setting:
        subscriptions, predicates = _least(times * setting.subscriptions), _least(times * setting.predicates)
        return replace(setting, subscriptions=subscriptions, predicates=predicates)

    return replace(plot, settings=tuple(map(smaller, plot.settings)))


def _least(size: float) -> int:
    return max(50, int(size))


def points(plot: Plot, seed: int) -> Points:
    """The means of all points of a figure."""
    made: Points = {}
    for setting in plot.settings:
        for recipe in RECIPES:
            chance = np.random.default_rng((seed, setting.longest))
            alpha = None if isinstance(setting.alpha, str) else setting.alpha
            workload = generated(setting.subscriptions, setting.predicates, setting.longest, alpha, recipe, chance)
            events = [workload.event(chance) for _ in range(EVENTS)]
            for order in ORDERS:
                made[recipe, plot.at(setting), order] = known_chances(workload, order, events)
    return made


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, what was measured, and whether it holds."""

    plot: str
    recipe: str
    claim: str
    measured: str
    held: bool


def claims(plot: Plot, made: Points) -> Iterator[Claim]:
    """What the paper says of a figure."""
    places = [plot.at(setting) for setting in plot.settings]
    for recipe in RECIPES:
        line = {order: [made[recipe, place, order].calls for place in places] for order in ORDERS}
        for claim, measured, held in _CLAIMS[plot.name](places, line):
            yield Claim(plot.name, recipe, claim, measured, held)


Line = dict[str, list[float]]
Said = Iterator[tuple[str, str, bool]]


def _growing(places: list[int], line: Line) -> Said:
    """Figures 4 and 5."""
    times = places[-1] / places[0]
    grown = {order: calls[-1] / calls[0] for order, calls in line.items()}
    both = max(grown[SEQUENTIAL], grown[SUB_ORDER])
    yield (
        "sequential and sub-order grow less than the subscriptions do",
        f"{both:.1f} in {times:.0f} times",
        both < times,
    )
    yield "naive grows as the subscriptions do", f"{grown[NAIVE]:.1f} in {times:.0f} times", grown[NAIVE] > 0.8 * times
    yield from _never_more(line)
    below = [1 - line[order][-1] / line[NAIVE][-1] for order in (SEQUENTIAL, SUB_ORDER)]
    yield "both are almost 80 % below naive at the end", f"{below[0]:.1%}, {below[1]:.1%}", min(below) > 0.75


def _never_more(line: Line) -> Said:
    worst = max(a / b for a, b in zip(line[SUB_ORDER], line[SEQUENTIAL], strict=True))
    yield "sub-order makes no more calls than sequential", f"{worst:.3f} of them at most", worst <= 1


def _predicates(places: list[int], line: Line) -> Said:
    """Figure 6."""
    more = {order: calls[-1] - calls[0] for order, calls in line.items()}
    both = max(more[SEQUENTIAL], more[SUB_ORDER]) / more[NAIVE]
    yield "sequential and sub-order grow much slower than naive", f"{both:.2f} of its growth", both < 0.5
    yield from _never_more(line)
    told = ", ".join(f"{line[order][-1]:,.0f}" for order in (NAIVE, SEQUENTIAL, SUB_ORDER))
    near = all(abs(line[o][-1] / n - 1) < 0.2 for o, n in ((NAIVE, 16_251), (SEQUENTIAL, 3_267), (SUB_ORDER, 1_977)))
    yield "16,251, 3,267 and 1,977 calls (naive, sequential, sub-order) at the end", told, near


def _lengths(places: list[int], line: Line) -> Said:
    """Figure 7."""
    grown = line[SEQUENTIAL][-1] / line[SEQUENTIAL][0]
    yield "sequential hardly depends on the length (1,784 / 1,593 = 1.12)", f"{grown:.2f}", abs(grown - 1) < 0.25
    span = max(line[NAIVE]) / min(line[NAIVE])
    yield "naive hardly depends on the length", f"{span:.2f}", span < 1.25
    first, last = (1 - line[SUB_ORDER][at] / line[SEQUENTIAL][at] for at in (0, -1))
    yield "sub-order's gain over sequential shrinks with the length", f"{first:.1%} to {last:.1%}", last < first


def _popularity(places: list[Any], line: Line) -> Said:
    """Figure 8."""
    for order in (SEQUENTIAL, SUB_ORDER):
        told = ", ".join(f"{calls:,.0f}" for calls in line[order])
        yield f"{order} makes fewer calls as alpha grows", told, sorted(line[order], reverse=True) == line[order]
    yield from _never_more(line)


_CLAIMS = {"4": _growing, "5": _growing, "6": _predicates, "7": _lengths, "8": _popularity}


def figures(folder: Path | None, seed: int, shrunk: float = 1.0) -> Iterator[Figure]:
    """The rows of all figures, and their files where a folder is given. `shrunk`: so many times the paper's sizes."""
    said: list[Claim] = []
    for plot in [shrunk_plot(plot, shrunk) for plot in PLOTS]:
        made = points(plot, seed)
        for (recipe, place, order), run in made.items():
            if place == plot.at(plot.settings[-1]):
                yield Figure(
                    "operators",
                    f"figure {plot.name}, {recipe}, {plot.varies} {place}: {order}",
                    run.calls,
                    "calls/event",
                )
        for claim in claims(plot, made):
            said.append(claim)
            name = f"figure {claim.plot}, {claim.recipe}: {claim.claim}"
            told = f"{'held' if claim.held else 'NOT HELD'}: {claim.measured}"
            yield Figure("operators", name, float(claim.held), "held", note=told)
        if folder is not None:
            write(folder, plot, made)
    if folder is not None:
        to_csv(folder / "operators-claims.csv", ("figure", "recipe", "claim", "measured", "held"), [
            (claim.plot, claim.recipe, claim.claim, claim.measured, "yes" if claim.held else "no") for claim in said
        ])  # fmt: skip


def write(folder: Path, plot: Plot, made: Points) -> None:
    """Write a figure as a table and as a picture for each recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    head = ("recipe", plot.varies, "order", "calls", "planning_seconds")
    rows = [(*point, f"{run.calls:.1f}", f"{run.planning:.6f}") for point, run in made.items()]
    to_csv(folder / f"operators-figure-{plot.name}.csv", head, rows)
    places = [plot.at(setting) for setting in plot.settings]
    for number, recipe in enumerate(RECIPES, 1):
        lines = {order: [made[recipe, place, order].calls for place in places] for order in ORDERS}
        picture = to_svg(f"Figure {plot.name}, {recipe}", plot.varies, "calls an event", places, lines)
        (folder / f"operators-figure-{plot.name}-{number}.svg").write_text(picture, "utf-8")
