"""`triplewire match`: publications against subscriptions, matches out."""

from __future__ import annotations

import enum
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import MatcherOption
from triplewire.cli.inputs.engines import found_matcher
from triplewire.cli.inputs.files import refuse_nothing
from triplewire.cli.inputs.groups import grouped
from triplewire.cli.inputs.resolve import Inputs, ResolvedInputs
from triplewire.cli.report import Report, counted, say
from triplewire.plugins import DEFAULT_MATCHER

if TYPE_CHECKING:
    from triplewire.cli.matches.collected import Collected, Show
    from triplewire.cli.matches.rows import Ordered
    from triplewire.engine import Engine
    from triplewire.engine.stats import Clock, Stats


class Format(enum.StrEnum):
    """The forms on standard output."""

    TABLE = "table"
    JSONL = "jsonl"


StatsFile = Annotated[
    Path | None, typer.Option("--stats", metavar="FILE", help="Write counts and the seconds of each stage, as JSON.")
]


@grouped
def match_command(
    inputs: Inputs,
    matcher: MatcherOption = DEFAULT_MATCHER,
    form: Annotated[
        Format | None, typer.Option("--format", help="Default: a table on a terminal, JSON Lines elsewhere.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to a .jsonl or .parquet file instead.")
    ] = None,
    bindings: Annotated[
        bool, typer.Option("--bindings/--no-bindings", help="Leave the bindings out, for volume.")
    ] = True,
    stats: StatsFile = None,
    refusals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write each refusal, as a JSON object a line.")
    ] = None,
) -> None:
    """
    \b
    triplewire match 'SELECT ?t { ?item rss:title ?t }' feeds/
    triplewire match --subscriptions queries.jsonl --publications feeds/ --format jsonl
    curl -s https://example.org/feed.xml | triplewire match --subscriptions *.rq --publications -

    Match publications against subscriptions. Rows are ordered by publication, then by subscription.
    """
    given = inputs.sorted_out()
    output.check_writable(file, (".jsonl", ".parquet"))
    named = {"--output": file, "--stats": stats, "--refusals": refusals}
    output.check_apart(named, (*given.subscriptions, *given.publications))
    if file is not None and form is Format.TABLE:
        raise typer.BadParameter("a table is for the terminal; leave --format or --output out", param_hint="--format")
    if file is None and form is None:
        form = Format.TABLE if sys.stdout.isatty() else Format.JSONL
    # --help does without Arrow and the engine
    from triplewire.cli.matches.collected import Collected
    from triplewire.engine.stats import Clock

    clock = Clock.of_process()
    with output.text_output(None) as out, ExitStack() as ended:  # before an operator prints
        report = Report(output.recorder(ended.enter_context(output.text_output(refusals))) if refusals else None)
        with clock("load"):
            prepare_kernels(matcher)
            engine = given.engine(matcher)
            given.subscribe(engine, report)
        show: Show = None
        if bindings:
            show = output.bindings_short if form is Format.TABLE else "json"
        begun, collected = time.perf_counter(), Collected(show, file)
        totals = _matched(engine, given, collected, report, clock)
        with clock("write"):
            _put(collected.ordered(), file, out, form)
        report.finish()
    if file is not None or sys.stderr.isatty():
        counts = (counted(totals.publications, "publication"), counted(len(engine.subscriptions), "subscription"))
        cost = f"{', '.join(counts)}, {time.perf_counter() - begun:.1f} s"
        say(f"{counted(len(collected), 'match', 'matches')} ({cost})" + (f" written to {file}" if file else ""))
    if stats is not None:
        with output.text_output(stats) as stream:
            stream.write(json.dumps(totals.to_json(clock.seconds()), indent=1) + "\n")
    raise typer.Exit(report.exit_code)


def prepare_kernels(matcher: str, tier: str = "auto") -> None:
    """Have it said when somebody waits for kernels, and when there can be none; wait where the user wants that. `tier`
    is that of this process and those that it starts, unless the user named one."""
    # --help does without the engine
    from triplewire.engine.tiers.kernels import KERNELS, TIER
    from triplewire.select.index import IndexMaker

    os.environ.setdefault(TIER, tier)
    KERNELS.tell, KERNELS.warn = _say_compiling, say
    if isinstance(found_matcher(matcher), IndexMaker) and KERNELS.are_usable() and KERNELS.tier == "compiled":
        KERNELS.wait()


def _say_compiling() -> None:
    if sys.stderr.isatty():
        say("compiling for this processor: a few minutes, the first time only (triplewire warm-up does it before)")


def _matched(engine: Engine, given: ResolvedInputs, collected: Collected, report: Report, clock: Clock) -> Stats:
    """Match the publications and collect the rows; returns what it took."""
    from triplewire.engine.stats import Stats  # as above

    totals = Stats()
    with report.progress("publications") as advance:
        for result in engine.match_files(
            *map(str, given.filled(report)),
            split=given.inputs.split.value,
            as_written=given.inputs.as_written,
            on_refusal=report.refuse,
            clock=clock,
            loader=given.loader,
        ):
            advance(result.publications)
            for refusal in result.refusals:
                report.refuse(refusal)
            with clock("bindings" if collected.show else "write"):
                collected.add(result)
            totals.add(result.stats)  # only now, as listing bindings may find that some are cut
    if not given.inputs.allow_empty:
        refuse_nothing(given.publications, totals.triples, report)
    return totals


def _put(rows: Ordered, file: Path | None, out: IO[str], form: Format | None) -> None:
    """The rows where the user wants them: in a file, or on standard output in this form."""
    from triplewire.cli.matches.written import write_json_lines  # --help does without Arrow

    if file is not None:
        write(rows, file)
    elif form is Format.TABLE:
        columns = ("publication", "subscription", "bindings")[: 2 if rows.payload is None else 3]
        output.print_table(out, columns, rows.shown(), "no matches")
    else:
        write_json_lines(out, rows)


def write(rows: Ordered, file: Path) -> None:
    """The rows in a file of the kind that its name says."""
    # --help does without Arrow
    from triplewire.cli.matches.written import write_json_lines, write_parquet

    with output.named(file):
        if file.suffix == ".parquet":
            with output.seekable_file(file) as aside:
                write_parquet(aside, rows)
            return
        with output.text_output(file) as stream:
            write_json_lines(stream, rows)
