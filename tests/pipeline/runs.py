"""One run of the pipeline, and what its output folder holds, for the tests of this folder."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from triplewire.engine import Engine
from triplewire.errors import Refusal
from triplewire.model.match import bindings_text
from triplewire.operators.files import OperatorFile
from triplewire.pipeline.committed import committed_files
from triplewire.pipeline.index.build import saved_once
from triplewire.pipeline.index.pins import IndexSource
from triplewire.pipeline.output import Output, Totals
from triplewire.pipeline.rows import MATCH_ROWS
from triplewire.pipeline.run import PipelineRun
from triplewire.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

Row = tuple[str, str, str, bool, str, str, str]


def row_of(row: Mapping[str, Any]) -> Row:
    """A match as it can be compared: without the time, and with "(none)" for no graph."""
    graph = "(none)" if row["construct"] is None else row["construct"]
    names = "publication", "subscription", "bindings", "truncated"
    return (*(row[name] for name in names), graph, row["content"], row["revision"])


def committed(folder: Path) -> Counter[str]:
    """The ids of publications in all rows of matches that were committed, each as often as it is there."""
    files = committed_files(Output(folder))
    return Counter(name for file in files for name in pq.read_table(file)["publication"].to_pylist())


def index_of(engine: Engine, output: Output, operators: Sequence[OperatorFile] = ()) -> IndexSource:
    """The subscriptions of an engine, as an index of the run with this output. `operators`: the files that give its
    own."""
    version = saved_once(output.index, engine, operators)
    return IndexSource(output.index, output.folder, operators, source=version.content.source)


def run(
    spark: SparkSession,
    source: Path | str,
    engine: Engine,
    folder: Path,
    operators: Sequence[OperatorFile] = (),
    *,
    streaming: bool = False,
    of_stream: dict[str, object] | None = None,
    **more: object,
) -> tuple[Totals, list[Refusal]]:
    """One run, and what it reported. Files count at once, unless `of_stream` says otherwise."""
    of_stream = {"settle": 0.0, **(of_stream or {})}
    output, said = Output(folder), list[Refusal]()
    output.prepare(Path(source), streaming)
    job = PipelineRun(str(source), index_of(engine, output, operators), output, on_refusal=said.append, **more)  # type: ignore[arg-type]  # tests' own options
    try:
        summary = job.stream(spark, **of_stream) if streaming else job.batch(spark)  # type: ignore[arg-type]  # as above
    finally:
        output.release()
    return summary, said


def rows_in(folder: Path) -> list[Row]:
    """All rows of all Parquet files below a folder, as any program would read them."""
    found: list[Row] = []
    for file in sorted(folder.rglob("*.parquet")):
        table = ds.dataset(file).to_table()
        if "subscription" in table.schema.names:
            assert table.schema.names == MATCH_ROWS.names
            assert all(row["matched_at"].tzinfo is not None for row in table.to_pylist())
            found += map(row_of, table.to_pylist())
    return sorted(found)


def dead_letters_in(folder: Path) -> list[Refusal]:
    files = sorted((folder / "dead-letter").rglob("*.parquet"))
    return sorted((Refusal(**row) for file in files for row in ds.dataset(file).to_table().to_pylist()), key=str)


def embedded(source: Path, engine: Engine) -> tuple[list[Row], list[Refusal]]:
    refused: list[Refusal] = []
    result = engine.match(read(str(source), on_refusal=refused.append))
    rows = [row_of({**m.to_json(), "bindings": bindings_text(m.bindings)}) for m in result]
    return sorted(rows), sorted([*refused, *result.refusals], key=str)


def copied(source: Path, names: Iterable[str], target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in names:
        shutil.copy(source / name, target)
