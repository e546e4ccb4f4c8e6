"""Runs figures, tells which claims hold, and writes tables, pictures and the page of all claims."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bench import nodes, partition
from bench import operators_paper as operators
from bench.drawing import Lines, file_of, write
from bench.papers import mdv
from bench.papers.claims import Verdict
from bench.papers.figures import FIGURES, PaperFigure
from bench.papers.points import Points
from bench.workloads.catalogue import SEED, Place
from triplewire.errors import TriplewireError

CLAIMS = "claims.json"
_CALLS = tuple(f"002/{plot.name}" for plot in operators.PLOTS)
_PAPERS = (
    "| paper | title |",
    "|---|---|",
    "| 000 | H. Liu, M. Petrovic, H.-A. Jacobsen: Efficient and Scalable Filtering of Graph-based Metadata (G-ToPSS) |",
    "| 001 | H. Liu, M. Petrovic, H.-A. Jacobsen: Efficient Filtering of RSS Documents on Computer Cluster |",
    "| 002 | Z. Liu, S. Parthasarthy, A. Ranganathan, H. Yang: Scalable Event Matching for Overlapping Subscriptions in"
    " Pub/Sub Systems |",
    "| 003 | M. Keidl, A. Kreutz, A. Kemper, D. Kossmann: A Publish & Subscribe Architecture for Distributed Metadata"
    " Management (MDV) |",
    "| 004 | C. Tryfonopoulos and others: Full-Text Support for Publish/Subscribe Ontology Systems (RTF) |",
)
_MILLIONS = ("7",)  # section 7 of the cluster paper, which has a workload of its own
_CLUSTERS = ("001/9c", "001/9d", "001/9e", "001/9f", "001/9g", "001/9h", "001/9i", "001/10", "001/7")
NAMES = (*(figure.name for figure in (*FIGURES, *mdv.FIGURES)), *_CALLS, *_CLUSTERS)


def judged_again(only: Iterable[str], folder: Path) -> Iterator[Verdict]:
    """The claims of the figures of these names, or of all, by the tables that earlier runs wrote to a folder."""
    wanted, known = set(only) or set(NAMES), _known(folder)
    for figure in (*FIGURES, *mdv.FIGURES):
        if figure.name in wanted and (lines := tabled(folder, figure.name)):
            yield from verdicts(figure, lines, [])
    for plot in operators.PLOTS:
        name = f"002/{plot.name}"
        if name in wanted and (lines := tabled(folder, name)):
            yield from operators.claims(_shrunk(plot, known.get(name, {}).get("subscriptions")), _called(lines))
    for drawing in nodes.DRAWINGS:
        name = _figure_of(drawing)
        if name in wanted and (lines := tabled(folder, f"001/{drawing.name}")):
            yield from _of_nodes(drawing, lines)


def tabled(folder: Path, name: str) -> Lines:
    """The lines of a figure as `write` wrote them; none where it is not there."""
    file, lines = folder / f"{file_of(name)}.csv", Lines()
    if file.exists():
        with file.open(encoding="utf-8", newline="") as table:
            for line, place, value in islice(csv.reader(table), 1, None):
                at = float(place)
                lines.setdefault(line, {})[int(at) if at.is_integer() else at] = float(value)
    return lines


def _called(lines: Lines) -> operators.Points:
    """The calls of a figure of the operators paper. Its place 0 stands for uniform popularity."""
    return {
        (recipe, place or operators.UNIFORM, order): operators.Run(calls, 0.0, 0.0)
        for line, values in lines.items()
        for order, _, recipe in [line.rpartition(", ")]
        for place, calls in values.items()
    }


def run(
    only: Iterable[str], size: int | None, folder: Path | None, progress: Callable[[str], None]
) -> Iterator[Verdict]:
    """The claims of the figures of these names, or of all; their files where a folder is given."""
    wanted = set(only) or set(NAMES)
    with tempfile.TemporaryDirectory(prefix="triplewire-papers-") as work:
        points = Points(Path(work), size, progress)
        for figure in FIGURES:
            if figure.name in wanted:
                try:
                    yield from _figure(figure, points, folder)
                except TriplewireError as error:
                    yield Verdict(figure.name, "the figure is measured", "failed", False, str(error))
        for figure in (each for each in mdv.FIGURES if each.name in wanted):
            yield from _judged(figure, mdv.lines_of(figure, Path(work), size, progress), [], folder)
        yield from _calls(wanted, size, folder, progress)
        yield from _clusters(wanted, Path(work), size, folder, progress)


def _figure(figure: PaperFigure, points: Points, folder: Path | None) -> Iterator[Verdict]:
    lines, left_out = points.lines(figure)
    yield from _judged(figure, lines, left_out, folder)


def _judged(figure: PaperFigure, lines: Lines, left_out: list[str], folder: Path | None) -> Iterator[Verdict]:
    """Write the files of a figure, and judge its claims."""
    if folder is not None:
        counts = [line for line in lines if line.rpartition(": ")[2] in figure.counts]
        write(folder, figure.name, figure.title, figure.varies, figure.up, lines, counts)
    yield from verdicts(figure, lines, left_out)


def verdicts(figure: PaperFigure, lines: Lines, left_out: list[str]) -> Iterator[Verdict]:
    """The claims of a figure, judged by its lines."""
    for claim in figure.claims:
        outcome = claim.check(lines)
        why = "" if outcome.held else claim.reason(lines)
        yield Verdict(figure.name, claim.text, outcome.measured, outcome.held, "; ".join([why, *left_out]).strip("; "))


def _calls(
    wanted: set[str], size: int | None, folder: Path | None, progress: Callable[[str], None]
) -> Iterator[Verdict]:
    """Figures 4 to 8 of the operators paper, each for every recipe of probabilities."""
    for plot in (_shrunk(plot, size) for plot in operators.PLOTS):
        name = f"002/{plot.name}"
        if name not in wanted:
            continue
        progress(f"{name}: {plot.varies} ...")
        made = operators.points(plot, range(SEED, SEED + operators.SEEDS), operators.paper_events)
        if folder is not None:
            lines: Lines = {}
            for (recipe, place, order), run_ in made.items():
                at = 0.0 if place == operators.UNIFORM else float(place)
                lines.setdefault(f"{order}, {recipe}", {})[at] = run_.calls
            write(folder, name, f"Calls by {plot.varies}", plot.varies, "calls an event", lines)
        yield from operators.claims(plot, made)


def _shrunk(plot: operators.Plot, size: int | None) -> operators.Plot:
    """A figure of the operators paper with at most so many subscriptions."""
    return operators.shrunk_plot(plot, 1.0 if size is None else min(1.0, size / operators.SUBSCRIPTIONS))


def _clusters(
    wanted: set[str], work: Path, size: int | None, folder: Path | None, progress: Callable[[str], None]
) -> Iterator[Verdict]:
    """Figures 9c to 9i and 10 of the cluster paper."""
    place = Place(work, size)
    groups = [group for group in partition.GROUPS if wanted.intersection(f"001/{number}" for number in group)]
    cases = partition.cases(place, groups)
    for group in [*groups, *([_MILLIONS] if "001/7" in wanted else [])]:
        points = nodes.Points()
        rows = (
            partition.section_7(place, points)
            if group is _MILLIONS
            else partition.measure(place, cases, "trie", points, [group])
        )
        for row in rows:
            progress(f"001/{group[0]}: {row.name}: {row.value or 0.0:,.4g} {row.unit}")
        for drawing in nodes.DRAWINGS:
            lines = points.lines.get(drawing.name)
            if _figure_of(drawing) in wanted and lines:
                if folder is not None:
                    write(folder, f"001/{drawing.name}", drawing.name, drawing.across, drawing.up, lines)
                yield from _of_nodes(drawing, lines)


def _figure_of(drawing: nodes.Drawing) -> str:
    return f"001/{drawing.name.split(',')[0]}"


def _of_nodes(drawing: nodes.Drawing, lines: Lines) -> Iterator[Verdict]:
    """The claims of a figure of the cluster paper."""
    kind = drawing.name.partition(", ")[2]
    for text, measured, held, why in drawing.claims(lines):
        claim = f"{kind}: {text}" if kind else text
        yield Verdict(_figure_of(drawing), claim, measured, held, "" if held else why)


def update(folder: Path, rows: Sequence[Verdict], size: int | None, again: bool = False) -> None:
    """Put the claims of these figures among those of earlier runs in a folder (`CLAIMS`: figure -> its sizes,
    in words and as the largest number of subscriptions, and rows as `--json` writes them), and write the page of all.
    `again`: their sizes stay as they are."""
    known = _known(folder)
    for name in {row.figure for row in rows}:
        claims = [row.to_json() for row in rows if row.figure == name]
        before = known[name] if again else {"sizes": sizes_of(name, size), "subscriptions": size}
        known[name] = {**before, "claims": claims}
    in_order = {name: known[name] for name in NAMES if name in known}
    (folder / CLAIMS).write_text(json.dumps(in_order, ensure_ascii=False, indent=1) + "\n", "utf-8")
    (folder / "README.md").write_text(page(in_order), "utf-8")


def _known(folder: Path) -> dict[str, dict[str, Any]]:
    """What earlier runs wrote of each figure."""
    file = folder / CLAIMS
    known: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return known


def sizes_of(name: str, size: int | None) -> str:
    """The sizes of a figure in a run, in words."""
    sizes = "the paper's sizes" if size is None else f"at most {size:,} subscriptions"
    if name in _CALLS:
        sizes += (
            f"; a point is the mean of {operators.SEEDS} workloads, with {operators.PAPER_EVENTS:,} events together"
        )
        sizes += f" or {operators.PAIRS:,} / subscriptions, where these are fewer"
    return sizes


def page(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of all claims, from `claims.json`."""
    rows = [Verdict(**row) for figure in figures.values() for row in figure["claims"]]
    held = sum(row.held for row in rows)
    names_of: dict[str, list[str]] = defaultdict(list)
    for name, figure in figures.items():
        names_of[figure["sizes"]].append(name)
    head = (
        "# The papers' experiments again",
        "",
        f"Written by `python -m bench papers --figures docs/experiments`: {held} of {len(rows)} claims hold. Each"
        " figure is a table (`000-9b.csv`) and a picture (`000-9b.svg`), named by its paper; `claims.json` has the rows"
        " below.",
        "",
        *_PAPERS,
        "",
        "To repeat one figure, in the project's root, after `make demo` or `pip install .`:",
        "",
        "```sh",
        "python -m bench papers --only 000/9e --figures out           # at the paper's sizes, a few minutes",
        "python -m bench papers --only 000/9e --figures out --quick   # a look, among 1,000 subscriptions",
        "```",
        "",
        "`out/README.md` is then such a page with this figure. With `--figures docs/experiments` the new one takes the"
        " place of the figure here; `--again` judges the tables that are there, and measures nothing. The matchers:"
        " `docs/matching.md`; how to add one: `CONTRIBUTING.md`; systems of others beside ours: `docs/peers.md`.",
        "",
        *(f"- {', '.join(names)}: {sizes}." for sizes, names in names_of.items()),
        "",
        "`selection` is what a matcher does by itself, `look_up` what is looked up of the terms before, for all"
        " matchers alike (constant tests, classes of the taxonomy, words), and `whole` both with verification. The"
        " papers' matchers of graphs accept by their own joins; RTF and iBroker name what verification then decides."
        " Times are the processor's, but for 003/3.5, whose are the clock's. Memory is that in use; `queries` is what a"
        " matcher of 004 selects with: its structure, and the columns of subscriptions that it reads. Numbers"
        " in a reason were counted or measured at the paper's sizes (of 000, 001/9a and 004 in the run itself, as lines"
        " of the table); the rest of it explains. Parameters that the papers lack:"
        " `bench/papers/workload.py`.",
        "",
        "| figure | claim | measured | holds | why not |",
        "|---|---|---|---|---|",
    )
    cells = ((row.figure, row.claim, row.measured, "yes" if row.held else "no", row.note) for row in rows)
    return "\n".join([*head, *("| " + " | ".join(text.replace("|", "/") for text in row) + " |" for row in cells), ""])
