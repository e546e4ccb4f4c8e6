"""Outcomes of operator calls from publication to publication and from run to run, on disk: `OutcomeCache`.

What is kept is found by the content of a publication (its graph's hash, and its attachments), the operator's name and
version, and the arguments. Only operators that state a version are kept, and no failures. The file is a database of
SQLite (https://sqlite.org/wal.html), which any number of processes of one machine may share. Each row has a digest of
all that it says, so that damage is never taken for an answer.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sqlite3
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TypeVar

from triplewire.bounded_cache import cached_if_short
from triplewire.errors import OperatorError, ReadError
from triplewire.forks import forget_in_children, new_lock
from triplewire.ir.evaluation.state import CallResults, Result
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.operator import Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import BlankNode
from triplewire.operators.calling.process import verdict_from_json, verdict_to_json
from triplewire.operators.order.learned import key_of, text_of_key

BYTES = 256 << 20
FORM = 1  # of the tables; each has files of its own
_TOGETHER = 4_096  # outcomes that are written at once, at most
_SECONDS = 1.0  # that an outcome waits to be written, at most, where more come
_BUSY = 2.0  # seconds to wait for another process that writes
_PAUSE = 30.0  # seconds without the cache, where that took longer
_NAME = f"outcomes-v{FORM}-"
_FILE = re.compile(rf"{_NAME}([0-9]+)\.sqlite")
T = TypeVar("T")
_TRUTHS = {"true": True, "false": False}  # most outcomes: quicker than to parse them
_key_of = cached_if_short(1 << 17, 512)(key_of)  # the same calls come publication after publication
_FIND = "SELECT id FROM contents WHERE content = ?"
_TABLES = """
CREATE TABLE IF NOT EXISTS contents (id INTEGER PRIMARY KEY, content BLOB NOT NULL UNIQUE, used INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS by_use ON contents (used);
CREATE TABLE IF NOT EXISTS outcomes (content INTEGER, operator BLOB, call TEXT, outcome TEXT, digest BLOB,
  PRIMARY KEY (content, operator, call)) WITHOUT ROWID;
"""


class OutcomeCache:
    """The file in a folder. It holds at most `most_bytes`; what was used least recently goes. Safe with threads.

    A damaged file is begun anew, and `on_note` is told. Where the file cannot be written, there is no cache.
    """

    def __init__(
        self, folder: str | os.PathLike[str], most_bytes: int = BYTES, on_note: Callable[[str], None] | None = None
    ) -> None:
        self.folder, self.most_bytes = Path(folder), most_bytes
        self._note = on_note or (lambda text: warnings.warn(text, RuntimeWarning, stacklevel=2))
        self._lock = new_lock()
        self._connection: sqlite3.Connection | None = None
        self._is_off = False
        self._paused = 0.0  # until then
        self._waiting: list[tuple[bytes, bytes, str, str]] = []  # content, operator, call, outcome
        self._written = time.monotonic()
        _ALL.add(self)
        forget_in_children(self)

    def __reduce__(self) -> tuple[type[OutcomeCache], tuple[str, int]]:
        return OutcomeCache, (str(self.folder), self.most_bytes)

    def read(self, content: bytes) -> list[tuple[bytes, str, str]]:
        """Operator, call and outcome of all that is kept of a publication."""
        with self._lock:
            self._write()
            return self._tried(lambda connection: self._rows(connection, content)) or []

    def add(self, content: bytes, operator: bytes, call: str, outcome: str) -> None:
        """One more outcome. It is written now or soon."""
        with self._lock:
            if not self._waiting:
                self._written = time.monotonic()
            self._waiting.append((content, operator, call, outcome))
            if len(self._waiting) >= _TOGETHER or time.monotonic() - self._written > _SECONDS:
                self._write()

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Write what waits, and close the file. The next call opens it again."""
        with self._lock:
            self._write()
            self._disconnect()

    def forget(self) -> None:
        """In the child of a fork: the connection, and what waits, belong to the parent."""
        if self._connection is not None:
            _OF_PARENT.append(self._connection)  # to close it here would disturb the parent
        self._connection, self._waiting = None, []

    # --- with the lock held

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._tried(lambda connection: self._put(connection, waiting))

    def _tried(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do it; once more with a new file where this one is damaged. None where there is no cache."""
        for _ in range(2):
            if self._is_off or time.monotonic() < self._paused:
                return None
            try:
                if self._connection is None:
                    self._connection = self._opened()
                return work(self._connection)
            except sqlite3.OperationalError as error:
                if "locked" in str(error) or "busy" in str(error):
                    self._paused = time.monotonic() + _PAUSE
                    self._note(f"{self.folder}: the cache of operators is busy, and not used for {_PAUSE:.0f} s")
                    return None
                if "no such" not in str(error):
                    self._off(error)
                    return None
                self._anew(error)
            except (sqlite3.DatabaseError, _Damaged) as error:
                self._anew(error)
            except OSError as error:
                self._off(error)
        return None

    def _off(self, error: Exception) -> None:
        self._is_off = True
        self._note(f"{self.folder}: there is no cache of operators, as it cannot be used: {error}")

    def _anew(self, error: Exception) -> None:
        """Go on with an empty file. It has another name: who has the damaged one open cannot disturb it."""
        self._disconnect()
        try:
            number = self._number()
            (self.folder / f"{_NAME}{number + 1}.sqlite").touch()
        except OSError as refused:
            self._off(refused)
            return
        self._note(f"{self.folder}: the cache of operators is damaged, and begun anew: {error}")
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                (self.folder / f"{_NAME}{number}.sqlite{suffix}").unlink()

    def _number(self) -> int:
        return max([int(known[1]) for entry in os.listdir(self.folder) if (known := _FILE.fullmatch(entry))], default=1)

    def _opened(self) -> sqlite3.Connection:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self.folder / f"{_NAME}{self._number()}.sqlite"
        connection = sqlite3.connect(file, _BUSY, isolation_level=None, check_same_thread=False)
        try:
            if not connection.execute("PRAGMA page_count").fetchone()[0]:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _rows(connection: sqlite3.Connection, content: bytes) -> list[tuple[bytes, str, str]]:
        row = connection.execute(_FIND, (content,)).fetchone()
        if row is None:
            return []
        connection.execute("UPDATE contents SET used = ? WHERE id = ?", (time.time_ns(), row[0]))
        query = "SELECT operator, call, outcome, digest FROM outcomes WHERE content = ?"
        rows = connection.execute(query, row).fetchall()
        if any(digest != _digest(content, *said) for *said, digest in rows):
            raise _Damaged("an outcome is not what was written")
        return [(operator, call, outcome) for operator, call, outcome, _ in rows]

    def _put(self, connection: sqlite3.Connection, waiting: list[tuple[bytes, bytes, str, str]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            numbers: dict[bytes, int] = {}
            now = time.time_ns()
            for content in dict.fromkeys(row[0] for row in waiting):
                connection.execute(
                    "INSERT INTO contents (content, used) VALUES (?, ?) ON CONFLICT (content) DO UPDATE SET used = ?",
                    (content, now, now),
                )
                (numbers[content],) = connection.execute(_FIND, (content,)).fetchone()
            connection.executemany(
                "INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)",
                [(numbers[row[0]], *row[1:], _digest(*row)) for row in waiting],
            )
            self._make_room(connection)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _make_room(self, connection: sqlite3.Connection) -> None:
        """Drop what was used least recently, until the rest has less than nine tenths of the bytes allowed."""
        (size,) = connection.execute("PRAGMA page_size").fetchone()

        def used() -> int:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            return int(size * (pages - free))

        if used() <= self.most_bytes:
            return
        while used() > 0.9 * self.most_bytes:
            (count,) = connection.execute("SELECT count(*) FROM contents").fetchone()
            if not count:
                return
            oldest = connection.execute("SELECT id FROM contents ORDER BY used LIMIT ?", (-(-count // 10),)).fetchall()
            connection.executemany("DELETE FROM outcomes WHERE content = ?", oldest)
            connection.executemany("DELETE FROM contents WHERE id = ?", oldest)


class _Damaged(Exception):
    """What the file holds is not what was written."""


class OperatorCallCache:
    """What an engine with these operators takes from a cache, and gives to it."""

    def __init__(self, cache: OutcomeCache, operators: Mapping[str, Operator], taxonomy: Taxonomy) -> None:
        self._cache = cache
        self._identity = {
            name: identity for name, operator in operators.items() if (identity := _identity(operator, taxonomy))
        }

    def known(self, publication: Publication) -> CallResults:
        """The outcomes of calls about a publication of this content."""
        if not self._identity or (content := _content(publication)) is None:
            return {}
        results, known_operators = CallResults(), set(self._identity.values())
        for operator, call, outcome in self._cache.read(content):
            if operator in known_operators:
                with suppress(ValueError, TypeError):
                    verdict = _TRUTHS[outcome] if outcome in _TRUTHS else verdict_from_json(json.loads(outcome))
                    results[_key_of(call)] = verdict if isinstance(verdict, bool) else tuple(verdict)
        return results

    def keep(self, publication: Publication, key: CallKey, result: Result) -> None:
        """Keep the outcome of a call. Blank nodes have other names in another publication of the same content."""
        operator = self._identity.get(key.operator)
        if operator is None or isinstance(result, OperatorError):
            return
        terms = [*key.arguments, *(term for row in result for term in row)] if isinstance(result, tuple) else key[1]
        if any(isinstance(term, BlankNode) for term in terms):
            return
        outcome = json.dumps(verdict_to_json(result), separators=(",", ":"))
        if (content := _content(publication)) is not None:
            self._cache.add(content, operator, text_of_key(key), outcome)

    def flush(self) -> None:
        """Write what waits."""
        self._cache.flush()

    def of(self, operators: Mapping[str, Operator], taxonomy: Taxonomy) -> OperatorCallCache:
        """The same cache for other operators, or another taxonomy."""
        return OperatorCallCache(self._cache, operators, taxonomy)


def _identity(operator: Operator, taxonomy: Taxonomy) -> bytes:
    """What tells an operator from all others, and from itself with another version or taxonomy; empty where its
    outcomes are not to be kept."""
    inner = getattr(operator, "inner", operator)
    version = getattr(inner, "version", "")
    if not version or not getattr(inner, "cacheable", True):
        return b""
    stated = json.dumps([operator.name, version, [(formal.name, formal.unit) for formal in operator.parameters]])
    classes = json.dumps(taxonomy.to_json(), sort_keys=True) if hasattr(inner, "with_taxonomy") else ""
    return sha256(f"{stated}\0{classes}".encode("utf-8", "surrogatepass")).digest()[:16]


def _content(publication: Publication) -> bytes | None:
    """A hash of what an operator may look at: graph and attachments. None where one of these cannot be read."""
    whole = sha256(publication.graph_hash.encode())
    try:
        for name, data in sorted(publication.attachments.items()):
            whole.update(b"\0".join((name.encode("utf-8", "surrogatepass"), str(len(data)).encode(), data)))
    except ReadError:
        return None
    return whole.digest()


def _digest(content: bytes, operator: bytes, call: str, outcome: str) -> bytes:
    # content and operator have always as many bytes, and no JSON text has a NUL
    said = f"{call}\0{outcome}".encode("utf-8", "surrogatepass")
    return blake2b(content + operator + said, digest_size=8).digest()


_ALL: weakref.WeakSet[OutcomeCache] = weakref.WeakSet()
_OF_PARENT: list[sqlite3.Connection] = []


@atexit.register
def _close() -> None:
    for cache in list(_ALL):
        cache.close()
