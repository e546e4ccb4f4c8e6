"""`triplewire pipeline matches`: the committed matches of a run as one file. See `triplewire.pipeline.results`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli.arguments import wrong_usage
from triplewire.cli.inputs.files import folder_argument
from triplewire.cli.output import check_writable, whole_file
from triplewire.cli.report import counted, say


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
    from triplewire.encode.match_files import SUFFIXES
    from triplewire.pipeline.output import Output
    from triplewire.pipeline.results.export import export

    check_writable(file, SUFFIXES, "--export")
    with wrong_usage("--output"), whole_file(file) as aside:
        rows = export(Output(output), aside, file.suffix)
    say(f"{counted(rows, 'match', 'matches')} written to {file}")
