"""`triplewire match`: publications against subscriptions, matches out."""

from __future__ import annotations

import enum
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    Entailment,
    EntailmentOption,
    OperatorFiles,
    PublicationFiles,
    Split,
    SplitOption,
    SubscriptionFiles,
    TaxonomyFile,
    check_files,
    operators_from,
    settings_from_environment,
)
from triplewire.cli.report import Report, say
from triplewire.errors import TriplewireError

if TYPE_CHECKING:
    from triplewire.cli.matches import Collected, Ordered, Show
    from triplewire.config import Settings
    from triplewire.engine import Engine
    from triplewire.engine.stats import Clock, Stats
    from triplewire.model.publication import Publication

CHUNK = 64  # publications held at a time


class Format(enum.StrEnum):
    """The forms on standard output."""

    TABLE = "table"
    JSONL = "jsonl"


MatcherOption = Annotated[str, typer.Option(metavar="NAME", help="How pairs are found; the answers are the same.")]
StatsFile = Annotated[
    Path | None, typer.Option("--stats", metavar="FILE", help="Write counts and the seconds of each stage, as JSON.")
]


def match_command(
    subscriptions: SubscriptionFiles,
    publications: PublicationFiles,
    taxonomy: TaxonomyFile = None,
    operators: OperatorFiles = None,
    matcher: MatcherOption = "trie",
    form: Annotated[
        Format | None, typer.Option("--format", help="Default: a table on a terminal, JSON Lines elsewhere.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to a .jsonl or .parquet file instead.")
    ] = None,
    bindings: Annotated[
        bool, typer.Option("--bindings/--no-bindings", help="Leave the bindings out, for volume.")
    ] = True,
    split: SplitOption = Split.ITEM,
    entailment: EntailmentOption = Entailment.NONE,
    stats: StatsFile = None,
) -> None:
    """
    \b
    triplewire match --subscriptions queries.jsonl --publications feeds/ --format jsonl
    curl -s https://example.org/feed.xml | triplewire match --subscriptions *.rq --publications -

    Match publications against subscriptions. Rows are ordered by publication, then by subscription.
    """
    check_files(subscriptions, publications, [taxonomy] if taxonomy else [])
    output.check_writable(file, (".jsonl", ".parquet"))
    output.check_writable(stats, option="--stats")
    if file is not None and form is Format.TABLE:
        raise typer.BadParameter("a table is for the terminal; leave --format or --output out", param_hint="--format")
    if file is None and form is None:
        form = Format.TABLE if sys.stdout.isatty() else Format.JSONL
    # --help does without Arrow and the engine
    from triplewire.cli.matches import Collected
    from triplewire.engine.stats import Clock

    clock, report = Clock.of_process(), Report()
    with clock("load"):
        engine = new_engine(taxonomy, matcher, settings_from_environment(), entailment, operators or ())
        prepare_kernels(matcher)
        load(engine, subscriptions, report)
    show: Show = None
    if bindings:
        show = output.bindings_short if form is Format.TABLE else "json"
    begun, collected = time.perf_counter(), Collected(show)
    totals = _matched(engine, publications, split, collected, report, clock)
    with clock("write"):
        write(collected.ordered(), form, file)
    if file is not None or sys.stderr.isatty():
        seconds = time.perf_counter() - begun
        cost = f"{totals.publications:,} publications, {len(engine.subscriptions):,} subscriptions, {seconds:.1f} s"
        count = f"{len(collected):,} {'match' if len(collected) == 1 else 'matches'}"
        say(f"{count} ({cost})" + (f" written to {file}" if file else ""))
    if stats is not None:
        with output.text_output(stats) as stream:
            stream.write(json.dumps(totals.to_json(clock.seconds()), indent=1) + "\n")
    raise typer.Exit(report.exit_code)


def prepare_kernels(matcher: str, tier: str = "auto") -> None:
    """Have it said when somebody waits for kernels, and when there can be none; wait where the user wants that. `tier`
    is that of this process and those that it starts, unless the user named one."""
    # --help does without the engine
    from triplewire import plugins
    from triplewire.engine.tiers.kernels import KERNELS, TIER
    from triplewire.select.index import IndexMaker

    os.environ.setdefault(TIER, tier)
    KERNELS.tell = _say_compiling
    if not isinstance(plugins.find("matcher", matcher), IndexMaker):
        return
    if KERNELS.tier == "compiled":
        KERNELS.wait()
    elif KERNELS.tier == "auto" and not KERNELS.are_usable():
        say("no folder for compiled code can be written: matching is interpreted; set TRIPLEWIRE_CACHE")


def _say_compiling() -> None:
    if sys.stderr.isatty():
        say("compiling for this processor: about a minute, the first time only (triplewire warm-up does it before)")


def _matched(
    engine: Engine, publications: Iterable[Path], split: Split, collected: Collected, report: Report, clock: Clock
) -> Stats:
    """Match the files and collect the rows; returns what it took."""
    from triplewire.engine.stats import Stats  # as above

    totals = Stats()
    with report.progress("publications") as advance:
        for result in engine.match_files(
            *map(str, publications), split=split.value, on_refusal=report.refuse, clock=clock
        ):
            advance(result.publications)
            for refusal in result.refusals:
                report.refuse(refusal)
            with clock("bindings" if collected.show else "write"):
                collected.add(result)
            totals.add(result.stats)  # only now, as listing bindings may find that some are cut
    return totals


def new_engine(
    taxonomy: Path | None, matcher: str, settings: Settings, entailment: str = "none", operators: Sequence[Path] = ()
) -> Engine:
    """An engine without subscriptions; `operators` are files of them."""
    # --help does without the engine and the parsers behind these
    from triplewire import plugins
    from triplewire.engine import Engine
    from triplewire.operators.files import operators_of
    from triplewire.read.taxonomy import load_taxonomy

    try:
        plugins.find("matcher", matcher)
    except TriplewireError as error:
        raise typer.BadParameter(str(error), param_hint="--matcher") from error
    classes = load_taxonomy(taxonomy, settings) if taxonomy is not None else None
    called = operators_of(operators_from(operators)) if operators else None
    return Engine(taxonomy=classes, matcher=matcher, operators=called, settings=settings, entailment=entailment)


def load(engine: Engine, files: Iterable[Path], report: Report, *, only: str = "") -> None:
    """Register the subscriptions of the files, or the one of id `only`; what is refused is reported."""
    loaded = 0
    with report.progress("subscriptions") as advance:

        def progress(count: int) -> None:
            nonlocal loaded
            advance(count - loaded)
            loaded = count

        engine.load_subscriptions(
            map(str, files),
            on_refusal=report.refuse,
            on_warning=lambda id_, warning: report.warn(id_, [warning]),
            progress=progress,
            ids=[only] if only else None,
        )


def read_chunks(
    files: Iterable[Path], split: Split, report: Report, *, streaming: bool = False
) -> Iterator[list[Publication]]:
    """The publications of the files, a few at a time; what is refused is reported."""
    # --help does without the parsers behind this
    from triplewire.read import read

    publications = read(
        *map(str, files), split=split.value, settings=settings_from_environment(), on_refusal=report.refuse
    )
    with report.counting(publications, "publications", streaming=streaming) as counted:
        while chunk := list(islice(counted, CHUNK)):
            yield chunk


def write(rows: Ordered, form: Format | None, file: Path | None) -> None:
    """The rows where and how the user wants them."""
    # --help does without Arrow
    from triplewire.cli.matches import write_json_lines, write_parquet

    if file is not None and file.suffix == ".parquet":
        with output.whole_file(file) as aside:
            write_parquet(aside, rows)
        return
    with output.text_output(file) as stream:
        if file is None and form is Format.TABLE:
            columns = ("publication", "subscription", "bindings")[: 2 if rows.bindings is None else 3]
            output.print_table(columns, rows.shown(), "no matches")
        else:
            write_json_lines(stream, rows)
