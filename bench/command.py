"""The command `python -m bench`: measures matching on the papers' workloads."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli import Program, output
from triplewire.cli.arguments import OperatorFiles, OperatorOrder, checked_order, operators_from
from triplewire.cli.inputs import found_matcher
from triplewire.cli.match import prepare_kernels
from triplewire.cli.report import say

if TYPE_CHECKING:
    from bench.report import Figure
    from bench.run import BenchPlan

DATA_VARIABLE = "TRIPLEWIRE_BENCH_DATA"
WORKLOADS = ("rtf", "graph", "latency", "handover", "gtopss", "cluster", "mdv", "mixed", "adversarial")
LONG = ("partition", "spark", "operators", "broker", "network", "metadata", "peers", "load")
"""Experiments that `all` leaves out, as they take long."""
PAPERS, PEERS = "papers", "peers"
NAMES = (*WORKLOADS, *LONG)
_SIZES = {False: None, True: 1_000}  # subscriptions, with --quick


_Figures = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write the figures as CSV and SVG (papers)."),
]
_Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="This figure (papers: 000/9b) or round (peers: mixed-10000) alone; repeatable."),
]
_Again = Annotated[
    bool, typer.Option("--again", help="Judge the claims by the tables in --figures, and measure nothing (papers).")
]

BENCH = Program("bench", "bench.command:app")
app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.command()
def bench_command(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help=f"{', '.join(NAMES)}, {PAPERS}, or all.")],
    matcher: Annotated[str, typer.Option(metavar="NAME", help="The matcher to measure.")] = "trie",
    subscriptions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="So many subscriptions instead of the workload's own number.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="As --subscriptions 1000: a look, without targets.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the rows, one JSON object a line.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the rows as SVG.")] = None,
    compare: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Pair two matchers and print their ratios.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar=DATA_VARIABLE, help="Real publications and queries; default: generated."),
    ] = None,
    figures: _Figures = None,
    only: _Only = None,
    again: _Again = False,
    operators: OperatorFiles = None,
    operator_order: OperatorOrder = "greedy",
) -> None:
    """
    \b
    python -m bench rtf --subscriptions 100000
    python -m bench all --json bench.json --plot bench.svg
    python -m bench cluster --compare trie reference --subscriptions 1000
    python -m bench papers --only 000/9b --figures out

    Measure matching on the papers' workloads, drawn with fixed seeds. `all` measures every target but those of
    `partition`, `spark`, `operators`, `broker`, `network`, `metadata`, `peers` and `load`, which take long; `load` goes
    by turns with the checkout that TRIPLEWIRE_BENCH_BEFORE names. A missed target is told, and no failure. Files go to
    the temporary folder. `papers` draws the papers' figures with the papers' matchers, and gives a row a claim; without
    --subscriptions at the papers' sizes.
    """
    # imported here, and below, so that --help does not load NumPy
    from bench.measure import Operators
    from bench.run import ALL, BenchPlan, end_in_order

    if workload not in (*NAMES, PAPERS, ALL):
        raise typer.BadParameter(f"{workload!r}; known: {', '.join((*NAMES, PAPERS, ALL))}", param_hint="WORKLOAD")
    for name, option in ((matcher, "--matcher"), *((name, "--compare") for name in compare or ())):
        found_matcher(name, option)
    _check_paths(data, figures, {"--json": json_file, "--plot": plot})
    operators_from(operators)
    called = Operators(tuple([str(file.absolute()) for file in operators or ()]), checked_order(operator_order))
    if (again or figures) and (workload != PAPERS or figures is None):
        raise typer.BadParameter(f"it needs {PAPERS}, and --figures for their tables", param_hint="--figures, --again")
    _check_only(only or (), workload)
    if not again:
        prepare_kernels(matcher, "compiled")
    end_in_order()
    size = subscriptions or _SIZES[quick]
    if workload == PAPERS:
        _papers(only or (), size, json_file, figures, again)
    else:
        plan = BenchPlan(workload, matcher, compare or (), size, data, called, tuple(only or ()))
        _write(_measured(plan), workload, json_file, plot)


def _measured(plan: BenchPlan) -> list[Figure]:
    """Run experiments, and tell their rows as they come."""
    from bench.report import summary, table_head, table_line
    from bench.run import run

    rows: list[Figure] = []
    with output.text_output(None) as stream:
        print(table_head(), file=stream, flush=True)
        for row in run(plan, say):
            rows.append(row)
            print(table_line(row), file=stream, flush=True)
        for line in summary(rows):
            print(line, file=stream)
    return rows


def _papers(only: Sequence[str], size: int | None, json_file: Path | None, figures: Path | None, again: bool) -> None:
    """The papers' figures: tell each claim, and write the page of all. `again`: by the tables of earlier runs."""
    from bench.papers import runner  # as in `bench_command`

    rows = []
    with output.text_output(None) as stream:
        measured = runner.judged_again(only, figures) if again and figures else runner.run(only, size, figures, say)
        for row in measured:
            rows.append(row)
            held = "held" if row.held else "NOT HELD"
            print(f"{row.figure:10} {held:8} {row.claim}: {row.measured} {row.note}".rstrip(), file=stream, flush=True)
    if json_file is not None:
        with output.text_output(json_file) as stream:
            stream.writelines(json.dumps(row.to_json(), ensure_ascii=False) + "\n" for row in rows)
    if figures is not None:
        runner.update(figures, rows, size, again)


def _check_only(only: Sequence[str], workload: str) -> None:
    """Raises `typer.BadParameter` where a part of the workload is named that there is not."""
    known: list[str] = []
    if only and workload == PAPERS:
        from bench.papers.runner import NAMES as FIGURES  # as in `bench_command`

        known = list(FIGURES)
    elif only and workload == PEERS:
        from bench.peers.runner import ROUNDS  # as in `bench_command`

        known = [each.name for each in ROUNDS]
    for name in only:
        if name not in known:
            said = f"{name!r}; known: {', '.join(known)}" if known else f"it needs {PAPERS} or {PEERS}"
            raise typer.BadParameter(said, param_hint="--only")


def _write(rows: Sequence[Figure], workload: str, json_file: Path | None, plot: Path | None) -> None:
    """Write the rows to the files that the user wants."""
    from bench.report import to_svg  # as in `bench_command`

    if json_file is not None:
        with output.text_output(json_file) as stream:
            stream.writelines(json.dumps(row.to_json(), ensure_ascii=False) + "\n" for row in rows)
    if plot is not None:
        with output.text_output(plot) as stream:
            stream.write(to_svg(rows, f"python -m bench {workload} ({sys.platform})"))


def _check_paths(data: Path | None, figures: Path | None, files: Mapping[str, Path | None]) -> None:
    """Raises `typer.BadParameter` where a folder is not there, or something cannot be written or is named twice."""
    if data is not None and not data.is_dir():
        raise typer.BadParameter(f"{data} is no folder", param_hint="--data")
    output.check_apart(files)
    if figures is not None:
        try:
            figures.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise typer.BadParameter(f"{figures} cannot be written: {error}", param_hint="--figures") from error
