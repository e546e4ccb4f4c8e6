"""Outcomes as files that workers write: matches and dead letters as Parquet, and a row a task that says what it wrote.

The rows of matches never pass through Spark: a worker writes them as they are, each distinct text once. A file counts
when the driver has its row, and only then: what a task that failed, or was repeated, has left is never looked at. It
imports no Spark. Who calls it: `triplewire.pipeline.jobs`.
"""

from __future__ import annotations

import datetime as dt
import secrets
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.encode.matches import TEXTS, MatchColumns, parquet_writer, shared
from triplewire.encode.schema import WHY
from triplewire.engine import Engine
from triplewire.engine.explain.why import batches_with_reasons
from triplewire.engine.result import Part
from triplewire.engine.stats import Stats
from triplewire.errors import LimitError, Refusal
from triplewire.model.match import IDENTITY_BYTES, match_identities, told_identities
from triplewire.model.same import Same
from triplewire.pipeline.filter import matched, newly_learned
from triplewire.pipeline.rows import DEAD_LETTERS, INDEX_VERSION, MATCH_ROWS, publication_rows, storable

REPORTS = pa.schema(
    [
        ("file", pa.string()),
        ("matches", pa.int64()),
        ("letters", pa.int64()),
        ("refused", pa.int64()),
        ("publications", pa.int64()),
        ("candidates", pa.int64()),
        ("learned", pa.list_(pa.string())),
    ]
)
"""The row of a task: the name of its files, how many matches and dead letters lie in them (there is no file of none),
how many of the letters are more than warnings, how many publications it took, how many candidates the index gave for
them, and some of its matches."""

IDENTIFYING = ("content", "revision", "publication", "subscription")  # columns: see `match_identities`
MATCHES_IN, LETTERS_IN, IDENTITIES_IN = "matches", "dead-letter", "identities"  # folders of `Target.folder`
_GROUP_ROWS, _GROUP_BYTES = 1 << 17, 64 << 20  # matches of a row group, and bytes of their texts, about
_TEXT_BYTES = "text bytes"  # in the metadata of a file: those of the bindings and graphs of its rows
_SHARED = pa.dictionary(pa.int32(), pa.large_string())  # of texts that rows share
_LETTERS = 4_096  # that are written together


@dataclass(frozen=True)
class Target:
    """Where tasks write, and what. `folder` is a new one that all workers see; `version` is that of the subscriptions;
    `same`: by which rule identities of matches are written as well, if they are."""

    folder: str
    version: str
    same: Same | None = None


@dataclass
class TaskFiles:
    """The files of one task, written as it goes on; `reports` ends them. `why`: have matches their reasons?"""

    target: Target
    why: bool = False
    counts: Counter[str] = field(default_factory=Counter)  # by the names of columns of `REPORTS`, and `_TEXT_BYTES`
    _pending: list[tuple[MatchColumns, dt.datetime]] = field(default_factory=list)
    _letters: list[dict[str, str]] = field(default_factory=list)
    _writers: dict[str, pq.ParquetWriter] = field(default_factory=dict)
    _name: str = field(default_factory=lambda: f"part-{_partition():05}-{secrets.token_hex(8)}")

    def add(self, engine: Engine, part: Part) -> None:
        """Write the matches of a part of a result of the engine."""
        try:
            if self.why:
                for batch in batches_with_reasons(engine, part):
                    self.add_rows(batch)
                return
            columns = list(part.columns())
        except (LimitError, ValueError):  # the texts of one publication are too long, and the others are matched again
            failed: list[Refusal] = []
            publications = publication_rows([part.chunk.given(number) for number in range(len(part.chunk))])
            for _, matches in matched(engine, publications, failed, why=self.why):
                self.add_rows(matches)
            self.refuse(refusal for refusal in failed if refusal.kind == "publication")
            return
        self._pending += [(each, part.matched_at) for each in columns]
        rows = sum(len(each.truncated) for each, _ in self._pending)
        if rows >= _GROUP_ROWS or sum(_bytes_of(each) for each, _ in self._pending) >= _GROUP_BYTES:
            self._write_pending()

    def add_rows(self, matches: pa.RecordBatch) -> None:
        """Write matches that are rows already (`encode.schema.MATCHES`), perhaps with their reasons."""
        if not matches.num_rows:
            return
        held = {name: matches.column(name) for name in matches.schema.names}
        held[INDEX_VERSION] = pa.array([self.target.version] * matches.num_rows, pa.string())
        for name, column in held.items():
            if pa.types.is_string(column.type):
                held[name] = column.cast(pa.large_string()).dictionary_encode()
        self._write_matches(pa.table(held))

    def count(self, stats: Stats) -> None:
        """Count what matching counted."""
        self.counts["candidates"] += stats.candidates

    def refuse(self, refusals: Iterable[Refusal]) -> None:
        """Write dead letters."""
        for refusal in refusals:
            self.counts["refused"] += not refusal.is_warning
            self.counts["letters"] += 1
            self._letters.append(storable(refusal))
            if len(self._letters) >= _LETTERS:
                self._write_letters()

    def reports(self, *engines: Engine) -> Iterator[pa.RecordBatch]:
        """End the files, and give the row of the task, which these engines matched for; no row for a task that had
        nothing to do."""
        self._write_pending()
        self._write_letters()
        for kind, writer in self._writers.items():
            if kind == MATCHES_IN:
                writer.add_key_value_metadata({_TEXT_BYTES: str(self.counts[_TEXT_BYTES])})
            writer.close()
        if any(self.counts[name] for name in ("matches", "letters", "publications")):
            row = dict.fromkeys(REPORTS.names, 0) | {"file": self._name, "learned": newly_learned(engines)}
            row |= {name: count for name, count in self.counts.items() if name in row}
            yield pa.RecordBatch.from_pylist([row], schema=REPORTS)

    def _write_pending(self) -> None:
        if self._pending:
            self._write_matches(shared(self._pending, **{INDEX_VERSION: self.target.version}))
            self._pending.clear()

    def _write_matches(self, table: pa.Table) -> None:
        if WHY.name not in table.column_names:
            table = table.append_column(WHY.name, pa.nulls(table.num_rows, _SHARED))
        table = table.select(MATCH_ROWS.names)
        self.counts["matches"] += table.num_rows
        self.counts[_TEXT_BYTES] += sum(
            _bytes_of_rows(table.column(name)) for name in ("bindings", "construct", WHY.name)
        )
        self._write(MATCHES_IN, table)
        if self.target.same is not None:
            folder = Path(self.target.folder, IDENTITIES_IN)
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / self._name, "ab") as stream:
                stream.write(b"".join(told(table, self.target.same)))

    def _write_letters(self) -> None:
        if self._letters:
            self._write(LETTERS_IN, pa.Table.from_pylist(self._letters, schema=DEAD_LETTERS))
            self._letters.clear()

    def _write(self, kind: str, table: pa.Table) -> None:
        if kind not in self._writers:
            file = parquet_file(self.target.folder, kind, self._name)
            file.parent.mkdir(parents=True, exist_ok=True)
            self._writers[kind] = parquet_writer(file, table.schema)
        self._writers[kind].write_table(table, row_group_size=max(table.num_rows, 1))


def parquet_file(folder: str | Path, kind: str, name: str) -> Path:
    """The file of a task's matches (`MATCHES_IN`) or dead letters (`LETTERS_IN`)."""
    return Path(folder, kind, f"{name}.parquet")


def text_bytes(file: Path) -> int:
    """How many bytes the bindings and graphs of all rows of a file of matches have: far more than the file, where many
    rows share them. 0 for another file."""
    return int((pq.read_metadata(file).metadata or {}).get(_TEXT_BYTES.encode(), 0))


def identities(matches: pa.Table) -> Iterator[bytes]:
    """The identities of matches with dictionary-encoded columns, in their order."""
    return match_identities(*(_texts(matches, name) for name in IDENTIFYING))


def told(matches: pa.Table, same: Same) -> Iterator[bytes]:
    """By which matches of such columns are known to have been told."""
    return told_identities(same, *(_texts(matches, name) for name in (*IDENTIFYING, "bindings")))


def _texts(matches: pa.Table, name: str) -> tuple[list[str], list[int]]:
    column = matches.column(name).combine_chunks()
    return column.dictionary.to_pylist(), column.indices.to_pylist()


def _bytes_of_rows(column: pa.ChunkedArray) -> int:
    """The bytes of all rows of a dictionary-encoded column of texts."""
    whole = column.combine_chunks()
    lengths = pc.binary_length(whole.dictionary).to_numpy()
    return int(lengths[whole.indices.drop_null().to_numpy()].sum())


def _bytes_of(columns: MatchColumns) -> int:
    return sum(len(getattr(columns, name).text) for name in TEXTS)


def _partition() -> int:
    """The number of this task among those of its stage; 0 where Spark has not called."""
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)
    own = None if context is None else context.get()
    return 0 if own is None else int(own.partitionId())


# --- on the driver ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """A row of `REPORTS`."""

    file: str
    matches: int
    letters: int
    refused: int
    publications: int
    candidates: int
    learned: Sequence[str] = ()


@dataclass(frozen=True)
class Written:
    """What the tasks of a batch have written to a folder."""

    folder: Path
    reports: Sequence[Report] = ()

    def total(self, count: str) -> int:
        """The sum of a count over all tasks: "publications", "candidates", "refused" and others of `Report`."""
        return sum(getattr(report, count) for report in self.reports)

    @property
    def learned(self) -> list[str]:
        """What the tasks have learned of operators."""
        return [text for report in self.reports for text in report.learned]

    def files(self, kind: str) -> list[Path]:
        """The files that count, of matches or of dead letters."""
        count = "matches" if kind == MATCHES_IN else "letters"
        names = [report.file for report in self.reports if getattr(report, count)]
        return [parquet_file(self.folder, kind, name) for name in names]

    def identities(self) -> list[bytes]:
        """The identities of all matches, file by file."""
        out: list[bytes] = []
        for report in self.reports:
            if report.matches:
                data = (self.folder / IDENTITIES_IN / report.file).read_bytes()
                out += [data[at : at + IDENTITY_BYTES] for at in range(0, len(data), IDENTITY_BYTES)]
        return out

    def retain(self, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        """Leave of the matches only those that are true in `rows`, which go on as `identities` do."""
        first = 0
        for report in self.reports:
            own = rows[first : first + report.matches]
            first += report.matches
            if not own.all():
                _retain(parquet_file(self.folder, MATCHES_IN, report.file), own)


def _retain(file: Path, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
    """Write a file anew with some of its rows, a row group at a time."""
    aside = file.with_name(f".{file.name}")
    with pq.ParquetFile(file) as before, pq.ParquetWriter(aside, before.schema_arrow, store_schema=False) as writer:
        first = 0
        for number in range(before.num_row_groups):
            group = before.read_row_group(number)
            writer.write_table(group.filter(pa.array(rows[first : first + group.num_rows])))
            first += group.num_rows
    aside.replace(file)
