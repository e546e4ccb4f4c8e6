"""`triplewire match`: publications against subscriptions, matches out."""

from __future__ import annotations

import enum
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    Entailment,
    EntailmentOption,
    PublicationFiles,
    Split,
    SplitOption,
    SubscriptionFiles,
    TaxonomyFile,
    check_files,
    settings_from_environment,
)
from triplewire.cli.report import Report, say
from triplewire.errors import Refusal, TriplewireError

if TYPE_CHECKING:
    from triplewire.config import Settings
    from triplewire.engine import Engine
    from triplewire.model.publication import Publication

CHUNK = 64  # publications held at a time


class Format(enum.StrEnum):
    """The forms on standard output."""

    TABLE = "table"
    JSONL = "jsonl"


def match_command(
    subscriptions: SubscriptionFiles,
    publications: PublicationFiles,
    taxonomy: TaxonomyFile = None,
    matcher: Annotated[
        str, typer.Option(metavar="NAME", help="How pairs are found; the answers are the same.")
    ] = "reference",
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
) -> None:
    """
    \b
    triplewire match --subscriptions queries.jsonl --publications feeds/ --format jsonl
    curl -s https://example.org/feed.xml | triplewire match --subscriptions *.rq --publications -

    Match publications against subscriptions. Rows are ordered by publication, then by subscription.
    """
    check_files(subscriptions, publications, [taxonomy] if taxonomy else [])
    output.check_writable(file, (".jsonl", ".parquet"))
    if file is not None and form is Format.TABLE:
        raise typer.BadParameter("a table is for the terminal; leave --format or --output out", param_hint="--format")
    if file is None and form is None:
        form = Format.TABLE if sys.stdout.isatty() else Format.JSONL
    report = Report()
    engine = build_engine(subscriptions, taxonomy, matcher, settings_from_environment(), report, entailment=entailment)
    show = output.no_bindings
    if bindings:
        show = output.bindings_short if form is Format.TABLE else output.bindings_json
    begun, rows, seen = time.perf_counter(), [], 0
    for chunk in read_chunks(publications, split, report):
        result = engine.match(chunk)
        seen += result.publications
        for refusal in result.refusals:
            report.refuse(refusal)
        rows += [output.Row(m.publication, m.subscription, show(m), m.truncated) for m in result]
    write(output.in_order(rows), form, file, bindings)
    if file is not None or sys.stderr.isatty():
        cost = (
            f"{seen:,} publications, {len(engine.subscriptions):,} subscriptions, {time.perf_counter() - begun:.1f} s"
        )
        say(
            f"{len(rows):,} {'match' if len(rows) == 1 else 'matches'} ({cost})"
            + (f" written to {file}" if file else "")
        )
    raise typer.Exit(report.exit_code)


def build_engine(
    files: Iterable[Path],
    taxonomy: Path | None,
    matcher: str,
    settings: Settings,
    report: Report,
    *,
    only: str = "",
    entailment: str = "none",
) -> Engine:
    """An engine with the subscriptions of the files, or with the one of id `only`; what is refused is reported."""
    # --help does without the engine and the parsers behind these
    from triplewire import plugins
    from triplewire.engine import Engine
    from triplewire.languages.files import read_subscriptions
    from triplewire.read.taxonomy import load_taxonomy

    try:
        plugins.find("matcher", matcher)
    except TriplewireError as error:
        raise typer.BadParameter(str(error), param_hint="--matcher") from error
    classes = load_taxonomy(taxonomy, settings) if taxonomy is not None else None
    engine = Engine(taxonomy=classes, matcher=matcher, settings=settings, entailment=entailment)
    for subscription in read_subscriptions([str(f) for f in files], settings=settings, on_refusal=report.refuse):
        if only and subscription.id != only:
            continue
        try:
            registered = engine.subscribe(subscription)
        except TriplewireError as error:
            report.refuse(Refusal.of("subscription", subscription.id, error))
        else:
            report.warn(registered.id, registered.warnings)
    return engine


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


def write(rows: list[output.Row], form: Format | None, file: Path | None, bindings: bool) -> None:
    """The rows where and how the user wants them."""
    if file is not None and file.suffix == ".parquet":
        with output.whole_file(file) as aside:
            output.write_parquet(aside, rows, bindings)
        return
    with output.text_output(file) as stream:
        if file is None and form is Format.TABLE:
            columns = ("publication", "subscription", "bindings")[: 3 if bindings else 2]
            shown = ((row.publication, row.subscription, row.bindings)[: len(columns)] for row in rows)
            output.print_table(columns, shown, "no matches")
        else:
            output.write_json_lines(stream, rows, bindings)
