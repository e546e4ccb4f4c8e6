"""The command `triplewire read`: shows the publications in files, as N-Quads or as a table."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import Split, SplitOption, check_files
from triplewire.cli.match import read_chunks
from triplewire.cli.report import Report


class Format(enum.StrEnum):
    """Formats of the output."""

    NQUADS = "nquads"
    TABLE = "table"


def read_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="RDF documents, feeds, folders; - is standard input.")
    ],
    form: Annotated[
        Format | None, typer.Option("--format", help="Default: a table on a terminal, N-Quads elsewhere.")
    ] = None,
    split: SplitOption = Split.ITEM,
    file: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write N-Quads to a file.")] = None,
) -> None:
    """
    \b
    triplewire read feed.xml
    triplewire read documents/ --format nquads --output all.nq

    Show the publications in files of any supported format, recognised by content. As N-Quads, each publication is a
    named graph whose name is its id.
    """
    # imported here so that --help does not load the model
    from triplewire.read.write import to_nquads

    check_files(files)
    output.check_writable(file)
    if file is not None and form is Format.TABLE:
        raise typer.BadParameter("a table is for the terminal; leave --format or --output out", param_hint="--format")
    if form is None:
        form = Format.TABLE if file is None and sys.stdout.isatty() else Format.NQUADS
    report = Report()
    rows: list[tuple[str, ...]] = []
    written = 0
    with output.text_output(file) as stream:
        for chunk in read_chunks(files, split, report, streaming=file is None and form is Format.NQUADS):
            for publication in chunk:
                if form is Format.NQUADS:
                    written += 1
                    stream.write(to_nquads(publication, written))
                    continue
                instant = publication.published
                rows.append(
                    (
                        publication.id,
                        publication.source,
                        instant.strftime("%Y-%m-%d %H:%M") if instant else "",
                        f"{len(publication.triples):,}",
                        "\n".join(publication.notes),
                    )
                )
        if form is Format.TABLE:
            output.print_table(
                ("publication", "source", "published (UTC)", "triples", "notes"), rows, "no publications"
            )
    raise typer.Exit(report.exit_code)
