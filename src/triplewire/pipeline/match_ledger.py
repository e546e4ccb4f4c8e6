"""Which matches a stream has told: so that an item that comes again, in another file, is told once.

The ledger is a SQLite file in the output folder. Decision 038 says why it is no state of Spark's.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from triplewire.state_file import connected

HORIZON = dt.timedelta(days=30)
"""A match that was not delivered again for so long is told anew when it is."""

_TABLE = """
CREATE TABLE IF NOT EXISTS told (identity BLOB PRIMARY KEY, batch INTEGER NOT NULL, seen REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS told_by_batch ON told (batch);
"""
_DAY = 86_400.0
_FORGET = "DELETE FROM told WHERE seen < ?"
_RECORD = """
INSERT INTO told SELECT identity, ?, ? FROM given WHERE true
ON CONFLICT (identity) DO UPDATE
SET batch = CASE WHEN told.seen < ? THEN excluded.batch ELSE told.batch END, seen = excluded.seen
"""


class MatchLedger:
    """The matches that were told, by their identity (`written.identities`): publication id, content, subscription id
    and revision.

    `horizon` counts from the last time that a match was delivered, told or not.
    """

    def __init__(
        self, file: Path, horizon: dt.timedelta = HORIZON, at: Callable[[str], None] = lambda point: None
    ) -> None:
        self._file = file
        self._at = at  # `output.Output.at`
        self._horizon = horizon.total_seconds()
        self._forgotten = -math.inf  # when it was last rid of what is past the horizon, in seconds since 1970

    def new(self, identities: Sequence[bytes], batch: int) -> tuple[NDArray[np.bool_], int]:
        """Which of the matches of a micro-batch are to be told, and how many the others are. A micro-batch that is
        repeated gets what it got before."""
        distinct = set(identities)
        passed_over = self.record(distinct, batch)
        repeats = len(identities) - len(distinct) + len(passed_over)
        if not repeats:
            return np.ones(len(identities), np.bool_), 0
        is_new = np.zeros(len(identities), np.bool_)
        for place, identity in enumerate(identities):
            if identity not in passed_over:
                is_new[place] = True
                passed_over.add(identity)
        return is_new, repeats

    def record(self, identities: Collection[bytes], batch: int) -> set[bytes]:
        """Write down what a micro-batch delivers. Returns those that earlier ones told, within the horizon."""
        now = dt.datetime.now(dt.UTC).timestamp()
        with connected(self._file, _TABLE) as connection:
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
            if now - self._forgotten >= _DAY:  # a stream may run for years
                connection.execute(_FORGET, (oldest,))
                self._forgotten = now
            self._at("in the ledger")
        self._at("after the ledger")
        return {identity for (identity,) in told}

    def forget(self) -> None:
        """Remove what is past the horizon."""
        oldest = dt.datetime.now(dt.UTC).timestamp() - self._horizon
        with connected(self._file, _TABLE) as connection:
            connection.execute(_FORGET, (oldest,))
