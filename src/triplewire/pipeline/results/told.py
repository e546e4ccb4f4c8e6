"""Which matches a stream has told: so that an item that comes again, in another file, is told once.

The ledger is a SQLite file in the output folder. Decision 033 says why it is no state of Spark's.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HORIZON = dt.timedelta(days=30)
"""A match that was not delivered again for so long is told anew when it is."""

_WAIT = 60  # seconds for another process that looks at the file
_IDENTITY = "substring(unhex(sha2(concat(content, revision, to_json(array(publication, subscription))), 256)), 1, 16)"
_TABLE = """
CREATE TABLE IF NOT EXISTS told (identity BLOB PRIMARY KEY, batch INTEGER NOT NULL, seen REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS told_by_batch ON told (batch);
"""
_RECORD = """
INSERT INTO told SELECT identity, ?, ? FROM given WHERE true
ON CONFLICT (identity) DO UPDATE
SET batch = CASE WHEN told.seen < ? THEN excluded.batch ELSE told.batch END, seen = excluded.seen
"""


class Ledger:
    """The matches that were told, by their identity: publication id, content, subscription id and revision.

    `horizon` counts from the last time that a match was delivered, told or not.
    """

    def __init__(
        self, file: Path, horizon: dt.timedelta = HORIZON, at: Callable[[str], None] = lambda point: None
    ) -> None:
        self._file = file
        self._at = at  # `sinks.Output.at`
        self._horizon = horizon.total_seconds()

    def new(self, matches: DataFrame, batch: int) -> tuple[DataFrame, int]:
        """Those of the matches of a micro-batch that are to be told, and how many the others are. A micro-batch that is
        repeated gets what it got before."""
        # imported here because Spark is an optional dependency
        from pyspark.sql.functions import broadcast, expr

        marked = matches.withColumn("identity", expr(_IDENTITY))
        identities = marked.select("identity").toArrow().column(0).to_pylist()
        distinct = set(identities)
        told = self.record(distinct, batch)
        if len(distinct) < len(identities):
            marked = marked.dropDuplicates(["identity"])
        if told:
            before = matches.sparkSession.createDataFrame(pa.table({"identity": pa.array(sorted(told), pa.binary())}))
            marked = marked.join(broadcast(before), "identity", "left_anti")
        return marked.select(*matches.columns), len(identities) - len(distinct) + len(told)

    def record(self, identities: Collection[bytes], batch: int) -> set[bytes]:
        """Write down what a micro-batch delivers. Returns those that earlier ones told, within the horizon."""
        now = dt.datetime.now(dt.UTC).timestamp()
        with contextlib.closing(sqlite3.connect(self._file, timeout=_WAIT)) as connection, connection:
            connection.executescript(_TABLE)
            connection.execute("CREATE TEMP TABLE given (identity BLOB PRIMARY KEY) WITHOUT ROWID")
            connection.execute("BEGIN IMMEDIATE")
            # what a try of this micro-batch wrote that did not end
            connection.execute("DELETE FROM told WHERE batch >= ?", (batch,))
            connection.executemany("INSERT INTO given VALUES (?)", ((identity,) for identity in identities))
            oldest = now - self._horizon
            told = connection.execute(
                "SELECT identity FROM given JOIN told USING (identity) WHERE seen >= ?", (oldest,)
            ).fetchall()
            connection.execute(_RECORD, (batch, now, oldest))
            self._at("in the ledger")
        self._at("after the ledger")
        return {identity for (identity,) in told}

    def forget(self) -> None:
        """Remove what is past the horizon."""
        oldest = dt.datetime.now(dt.UTC).timestamp() - self._horizon
        with contextlib.closing(sqlite3.connect(self._file, timeout=_WAIT)) as connection, connection:
            connection.executescript(_TABLE)
            connection.execute("DELETE FROM told WHERE seen < ?", (oldest,))
