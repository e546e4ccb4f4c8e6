"""Writes the committed matches to one file: Parquet, JSON Lines or CSV, by the ending of its name."""

from __future__ import annotations

import time
from pathlib import Path

from triplewire.encode.match_files import match_file
from triplewire.errors import TriplewireError
from triplewire.pipeline.output import Output
from triplewire.pipeline.results.committed import check_output, columns_of, committed_files, rows_of

_TRIES, _PAUSE = 20, 0.1  # while a batch run replaces the files; seconds


def export(output: Output, file: Path, suffix: str) -> int:
    """Write all committed matches of the output folder to `file`, in the form of this one of
    `match_files.SUFFIXES`; returns how many they are.

    Where a batch run replaces the rows meanwhile, the file is begun anew, so that it has all of one run or all of the
    other. Raises `TriplewireError` where the folder is no output of a run.
    """
    check_output(output)
    for _ in range(_TRIES):
        try:
            files = committed_files(output)
            columns, count = columns_of(files), 0
            with match_file(file, columns, suffix) as write:
                for rows in rows_of(files, columns):
                    write(rows)
                    count += rows.num_rows
            return count
        except FileNotFoundError as error:
            gone = error
            time.sleep(_PAUSE)
    raise TriplewireError(
        f"its files go away while they are read: {gone}", source=str(output.folder), remedy="try it again"
    ) from gone
