"""`triplewire pipeline matches`: the committed matches of a run as one file. See `triplewire.pipeline.results`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli.inputs.files import folder_argument
from triplewire.cli.output import check_writable, whole_file
from triplewire.cli.report import counted, one_line, say
from triplewire.errors import TriplewireError


def matches_command(
    output: Annotated[
        Path, typer.Option(parser=folder_argument, metavar="DIR", help="The output folder of a run or a stream.")
    ],
    file: Annotated[Path, typer.Option("--export", metavar="FILE", help="A .parquet, .jsonl or .csv file to write.")],
) -> None:
    """
    \b
    triplewire pipeline matches --output found-live --export matches.parquet

    Write the committed matches of a run or a stream to one file: each exactly once, however the run ended, and also
    while it runs. Rows are ordered by micro-batch. A folder in which nothing was committed yet gives a file without
    rows.
    """
    # --help does without Arrow
    from triplewire.pipeline.results.export import SUFFIXES, export
    from triplewire.pipeline.sinks import Output

    check_writable(file, SUFFIXES, "--export")
    try:
        with whole_file(file) as aside:
            rows = export(Output(output), aside, file.suffix)
    except TriplewireError as error:
        raise typer.BadParameter(one_line(str(error)), param_hint="--output") from error
    say(f"{counted(rows, 'match', 'matches')} written to {file}")
