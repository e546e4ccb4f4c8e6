"""`triplewire match`: publications against subscriptions, matches out."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    Format,
    FormatOption,
    MatcherOption,
    SameOption,
    folder_option,
    grouped,
    refuse_nothing,
)
from triplewire.cli.inputs import Inputs, ResolvedInputs, found_matcher
from triplewire.cli.report import Report, counted, say
from triplewire.plugins import DEFAULT_MATCHER

if TYPE_CHECKING:
    from collections.abc import Callable

    from triplewire.cli.matches import Once, Table, Writer
    from triplewire.engine import Engine
    from triplewire.engine.stats import Clock, Stats


_SHOWN = 10  # sources of a warning


StatsFile = Annotated[
    Path | None, typer.Option("--stats", metavar="FILE", help="Write counts and the seconds of each stage, as JSON.")
]


@dataclass(frozen=True)
class Told:
    """What is told of matches; a group of options."""

    bindings: Annotated[bool, typer.Option("--bindings/--no-bindings", help="Leave the bindings out, for volume.")] = (
        True
    )
    same: SameOption = None
    why: Annotated[bool, typer.Option("--why", help="Say of each match why it is one.")] = False


@dataclass(frozen=True)
class Indexing:
    """How large subscription files are loaded; a group of options."""

    cache: Annotated[
        Path | None, folder_option("--cache", help="Keep the index of large subscription files, for the next command.")
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            show_default="one a core for millions",
            help="So many processes load the subscriptions of .jsonl and .parquet files.",
        ),
    ] = None


@grouped
def match_command(
    inputs: Inputs,
    matcher: MatcherOption = DEFAULT_MATCHER,
    form: FormatOption = None,
    file: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to a .jsonl or .parquet file instead.")
    ] = None,
    *,
    told: Told,
    stats: StatsFile = None,
    refusals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write each refusal, as a JSON object a line.")
    ] = None,
    indexing: Indexing,
) -> None:
    """
    \b
    triplewire match 'SELECT ?t { ?item rss:title ?t }' feeds/
    triplewire match --subscriptions queries.jsonl --publications feeds/ --format jsonl
    curl -s https://example.org/feed.xml | triplewire match --subscriptions queries/ --publications -

    Match publications against subscriptions. Rows come in the order in which publications are read, those of each by
    the ids of subscriptions. N-Quads, N-Triples and JSON Lines in a pipe are matched as they come.
    """
    given = inputs.sorted_out()
    output.check_writable(file, (".jsonl",) if told.why else (".jsonl", ".parquet"))
    outputs = {"--output": file, "--stats": stats, "--refusals": refusals}
    output.check_apart(outputs, (*given.subscriptions, *given.publications))
    form = output.chosen_form(form, file, Format.TABLE, Format.JSONL)
    from triplewire.cli.matches import Once
    from triplewire.engine.stats import Clock
    from triplewire.read.documents import bytes_of

    clock = Clock.of_process()
    with output.text_output(None) as out, ExitStack() as ended:  # before an operator prints
        letters = ended.enter_context(output.text_output(refusals)) if refusals else None
        report = Report(partial(output.write_refusal, letters) if letters else None)
        with clock("load"):
            prepare_kernels(matcher)
            engine = given.indexed(matcher, report, indexing.cache, indexing.workers)
        table, lines = _writers(engine if told.why else None, out, file, told.bindings, ended)
        writer = table if form is Format.TABLE else lines
        once, begun = Once(writer, told.same), time.perf_counter()
        total, is_shown = partial(bytes_of, given.publications), not (writer is table or file) and out.isatty()
        with report.progress("publications", total, in_bytes=True, streaming=is_shown) as advance:
            totals = _matched(engine, given, once, file, report, advance, clock)
        if writer is table:
            with clock("write"):
                output.print_table(out, table.columns, table.rows, "no matches")
        report.finish()
    if file is not None or sys.stderr.isatty():
        _tell(totals, once.repeats, len(engine), time.perf_counter() - begun, file)
    if stats is not None:
        with output.text_output(stats) as stream:
            stream.write(json.dumps(totals.to_json(clock.seconds()), indent=1) + "\n")
    raise typer.Exit(report.exit_code)


def _writers(
    engine: Engine | None, out: IO[str], file: Path | None, bindings: bool, ended: ExitStack
) -> tuple[Table, Writer]:
    """What writes a table, and what writes to the file or the stream, with the reasons that an engine gives."""
    from triplewire.cli.matches import JsonLines, Table, file_writer

    if engine is not None:
        from triplewire.cli.reasoned import ReasonedLines, ReasonedTable  # with what explains

        stream = ended.enter_context(output.text_output(file)) if file is not None else out
        return ReasonedTable(engine, bindings=bindings), ReasonedLines(stream, engine, bindings=bindings)
    lines: Writer = JsonLines(out, bindings=bindings)
    if file is not None:
        lines = ended.enter_context(file_writer(file, bindings=bindings))
    return Table(bindings=bindings), lines


def _tell(totals: Stats, repeats: int, subscriptions: int, seconds: float, file: Path | None) -> None:
    """Say what a run has done, on standard error."""
    counts = f"{counted(totals.publications, 'publication')}, {counted(subscriptions, 'subscription')}, {seconds:.1f} s"
    again = f", {repeats:,} told before" if repeats else ""
    matches = counted(totals.matches - repeats, "match", "matches")
    say(f"{matches}{again} ({counts})" + (f" written to {file}" if file else ""))


def prepare_kernels(matcher: str, tier: str = "auto") -> None:
    """Have it said when somebody waits for kernels, and when there can be none; wait where the user wants that. `tier`
    is that of this process and those that it starts, unless the user named one."""
    from triplewire.engine.tiers.kernels import KERNELS, TIER
    from triplewire.select.index import IndexMaker

    os.environ.setdefault(TIER, tier)
    what = "compiling for this processor: a few minutes, the first time only (triplewire warm-up does it before)"
    KERNELS.tell, KERNELS.warn = lambda: say(what) if sys.stderr.isatty() else None, say
    if isinstance(found_matcher(matcher), IndexMaker) and KERNELS.are_usable() and KERNELS.tier == "compiled":
        KERNELS.wait()


def _matched(
    engine: Engine,
    given: ResolvedInputs,
    once: Once,
    file: Path | None,
    report: Report,
    advance: Callable[[int, int], None],
    clock: Clock,
) -> Stats:
    """Match the publications and write the rows of each result, to `file` where there is one; returns what it took."""
    from triplewire.engine.stats import Stats

    totals = Stats()
    for result in engine.match_files(
        *map(str, given.filled(report)),
        split=given.inputs.reading.split.value,
        as_written=given.inputs.reading.as_written,
        on_refusal=report.refuse,
        clock=clock,
        loader=given.loader,
    ):
        report.refuse(*result.refusals)
        with clock("write"), output.named(file or "standard output"):
            for part in result.parts:
                once.write(part)
        totals.add(result.stats)  # only now, as listing bindings may find that some are cut
        advance(totals.publications, clock.bytes_read)
    if unknown := engine.unknown_sources:
        names = ", ".join(map(repr, unknown[:_SHOWN])) + (", ..." if len(unknown) > _SHOWN else "")
        report.say(f"warning: no publication came from {names}: FROM names an address, a file, or a channel")
    if not given.inputs.allow_empty:
        refuse_nothing(given.publications, totals.triples, report)
    return totals
