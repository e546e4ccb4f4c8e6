"""Which matches a stream has told: so that an item that comes again, in another file, is told once.

The ledger is a SQLite file in the output folder. Decision 038 says why it is no state of Spark's.
"""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from triplewire.model.content import FORM
from triplewire.model.same import Same
from triplewire.state_file import connected

HORIZON = dt.timedelta(days=30)
"""A match that was not delivered again for so long is told anew when it is."""

_TABLE = """
CREATE TABLE IF NOT EXISTS told (identity BLOB PRIMARY KEY, batch INTEGER NOT NULL, seen REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS told_by_batch ON told (batch);
CREATE TABLE IF NOT EXISTS clock (looked REAL NOT NULL, age REAL NOT NULL);
CREATE TABLE IF NOT EXISTS rule (same TEXT NOT NULL, form INTEGER NOT NULL);
"""
_DAY = 86_400.0
_FORGET = "DELETE FROM told WHERE seen < ?"
_RECORD = """
INSERT INTO told SELECT identity, ?, ? FROM given WHERE true
ON CONFLICT (identity) DO UPDATE
SET batch = CASE WHEN told.seen < ? THEN excluded.batch ELSE told.batch END, seen = excluded.seen
"""


class MatchLedger:
    """The matches that were told, by what makes them the same (`model.match.told_identities`).

    `horizon` counts from the last time that a match was delivered, told or not, and in the age of the ledger: from one
    look at the clock to the next it grows by a day at most, so that a clock that is ahead for one start, or a stream
    that rests for a month, forgets nothing.
    """

    def __init__(
        self,
        file: Path,
        horizon: dt.timedelta = HORIZON,
        at: Callable[[str], None] = lambda point: None,
        same: Same = Same.ITEM,
    ) -> None:
        self.same = same
        self._file = file
        self._at = at  # `output.Output.at`
        self._horizon = horizon.total_seconds()
        self._forgotten = -math.inf  # the age at which it was last rid of what is past the horizon

    def begin(self) -> str:
        """Begin a start of a stream: remove what is past the horizon. Returns what a user should know, or ""."""
        form = FORM if self.same is Same.ITEM else 1
        with connected(self._file, _TABLE) as connection:
            connection.execute(_FORGET, (_age(connection) - self._horizon,))
            rules = connection.execute("SELECT same, form FROM rule").fetchall()
            if not rules and connection.execute("SELECT 1 FROM told LIMIT 1").fetchone():
                rules = [(Same.ITEM.value, 1)]  # an earlier version began it
            connection.execute("DELETE FROM rule")
            connection.execute("INSERT INTO rule VALUES (?, ?)", (self.same.value, form))
        if not rules or rules == [(self.same.value, form)]:
            return ""
        if rules[0][0] != self.same.value:
            before = f"the matches that this stream has told were known again by --same {rules[0][0]}"
            return f"{before}, and now by {self.same.value}: those that come again are told once more"
        return (
            "an earlier version of Triplewire began this stream, for which the channel was a part of each item: items "
            "that come again are told once more"
        )

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
        with connected(self._file, _TABLE) as connection:
            connection.execute("CREATE TEMP TABLE given (identity BLOB PRIMARY KEY) WITHOUT ROWID")
            connection.execute("BEGIN IMMEDIATE")
            now = _age(connection)
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


def _age(connection: sqlite3.Connection) -> float:
    """The age of the ledger now, in seconds: that of the last look, and what has gone by since, a day at most. It
    begins at the time since 1970, or where the newest entry of an earlier version is."""
    now = dt.datetime.now(dt.UTC).timestamp()
    row = connection.execute("SELECT looked, age FROM clock").fetchone()
    if row is None:
        (newest,) = connection.execute("SELECT max(seen) FROM told").fetchone()
        row = (now, now) if newest is None else (newest, newest)
    looked, age = row
    age += min(max(now - looked, 0.0), _DAY)
    connection.execute("DELETE FROM clock")
    connection.execute("INSERT INTO clock VALUES (?, ?)", (now, age))
    return float(age)
