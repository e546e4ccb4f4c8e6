"""The committed matches of an output folder, without Spark, also while a run writes to it.

A micro-batch is committed by one rename, of `matches/batch=N`, and is never replaced after that. A batch run replaces
`matches` as a whole; the one before lies in `_replaced` for the moment in which neither is in place. How they are
written: `triplewire.pipeline.output`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.errors import TriplewireError
from triplewire.pipeline.output import MATCHES, Output
from triplewire.pipeline.results.counts import number_of
from triplewire.pipeline.rows import MATCH_ROWS

COLUMNS = MATCH_ROWS
"""The columns that a folder without a committed row has, and that come first in any other."""


def check_output(output: Output) -> None:
    """Raises `TriplewireError` where the folder is none that a run or a stream writes to."""
    begins = output.folder.is_dir() and (output.folder / "_lock").exists() and not (output.folder / MATCHES).exists()
    if not begins and output.last_record() is None:
        what = "it is no output folder of a run" if output.folder.is_dir() else "there is no such folder"
        raise TriplewireError(
            what, source=str(output.folder), remedy="give the folder that `pipeline run --output` named"
        )


def committed_files(output: Output) -> list[Path]:
    """The Parquet files of the committed matches: by number of their micro-batch, then by name."""
    while True:
        folders = _present(output)
        if folders or not _present(output):  # a run may have put it in place between two looks
            break
    files: list[Path] = []
    for folder in folders:
        # a folder that is replaced at this moment holds nothing here; reading its files tells (`columns_of`)
        names = sorted(name for name in os.listdir(folder) if name.endswith(".parquet") and name[0] not in "._")
        files += [folder / name for name in names]
    return files


def _present(output: Output) -> list[Path]:
    """The folders with committed matches; those that are in place come before those that they replace."""
    where: dict[str, Path] = {}
    for place in (output.replaced / MATCHES, output.folder / MATCHES):
        try:
            names = os.listdir(place)
        except FileNotFoundError:
            continue
        parts = [name for name in names if number_of(name) is not None]
        where |= {name: place / name for name in parts}
        if not parts and names:
            where[""] = place
    return [where[name] for name in sorted(where, key=lambda name: number_of(name) or 0)]


def columns_of(files: list[Path]) -> pa.Schema:
    """`COLUMNS`, and what more the files have: rows of earlier versions of this program have fewer columns."""
    schemas = [COLUMNS]
    for file in files:
        schema = pq.read_schema(file).remove_metadata()
        if schema not in schemas:
            schemas.append(schema)
    return pa.unify_schemas(schemas, promote_options="permissive")


def rows_of(files: list[Path], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the files in their order, with null for a column that a file does not have."""
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches():
                held = {name: batch.column(name) for name in batch.schema.names}
                arrays = [
                    held[field.name].cast(field.type) if field.name in held else pa.nulls(batch.num_rows, field.type)
                    for field in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=columns)
