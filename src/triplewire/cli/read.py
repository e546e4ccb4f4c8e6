"""The command `triplewire read`: shows the publications in files, as N-Quads or as a table."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    AllowEmptyOption,
    ContextFiles,
    Reading,
    check_files,
    choice_option,
    file_argument,
    grouped,
    refuse_hollow,
    refuse_nothing,
)
from triplewire.cli.inputs import read_publications
from triplewire.cli.output import shortened, title
from triplewire.cli.report import Report

if TYPE_CHECKING:
    from triplewire.model.publication import Publication


class Format(enum.StrEnum):
    """Formats of the output."""

    NQUADS = "nquads"
    TABLE = "table"


@grouped
def read_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", parser=file_argument, help="RDF documents, feeds, folders; - is standard input."
        ),
    ],
    form: Annotated[
        Format | None, choice_option(Format, "--format", help="Default: a table on a terminal, N-Quads elsewhere.")
    ] = None,
    *,
    reading: Reading,
    file: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write N-Quads to a file.")] = None,
    context: ContextFiles = None,
    allow_empty: AllowEmptyOption = False,
) -> None:
    """
    \b
    triplewire read feed.xml
    triplewire read documents/ --format nquads --output all.nq

    Show the publications in files of any supported format, recognised by content. As N-Quads, each publication is a
    named graph whose name is its id.
    """
    from triplewire.read.names import to_nquads
    from triplewire.read.rdf.contexts import ContextLoader

    check_files(files)
    output.check_apart({"--output": file}, files)
    form = output.chosen_form(form, file, Format.TABLE, Format.NQUADS)
    report, loader = Report(), ContextLoader(dict(context or ()))
    rows: list[tuple[str, ...]] = []
    written = triples = 0
    filled = files if allow_empty else refuse_hollow(files, "publication", report.refuse)
    with output.text_output(file) as stream:
        is_open = any(str(source) == "-" for source in filled)  # more may come much later
        streaming = form is Format.NQUADS and stream.isatty()
        for publication in read_publications(filled, reading, report, loader=loader, streaming=streaming):
            triples += publication.size
            if form is Format.NQUADS:
                written += 1
                stream.write(to_nquads(publication, written))
                if is_open:
                    stream.flush()
            else:
                rows.append(_row(publication))
        if form is Format.TABLE:
            output.print_table(
                stream,
                ("publication", "title", "source", "published (UTC)", "triples", "notes"),
                rows,
                "no publications",
            )
    if not allow_empty:
        refuse_nothing(files, triples, report)
    raise typer.Exit(report.exit_code)


def _row(publication: Publication) -> tuple[str, ...]:
    """What a table shows of a publication."""
    instant = publication.published
    return (
        publication.id,
        shortened(title(publication)),
        publication.source,
        instant.strftime("%Y-%m-%d %H:%M") if instant else "",
        f"{publication.size:,}",
        "\n".join(publication.notes),
    )
