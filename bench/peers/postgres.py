"""PostgreSQL's full-text search: a row a query with its `tsquery` and its rarest word, which has an index.

No index answers which queries a text satisfies, so the words of a literal choose the rows, and `@@` is asked of these.
A literal is a `tsvector`, so that all words of a query stand in one literal.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.serving import Query, Statement, serve

_MATCHING = "SELECT id FROM queries WHERE rarest = ANY(%s) AND wanted @@ array_to_tsvector(%s)"


def server() -> str:
    """The address of a server that is started for this process. Raises `FileNotFoundError` without one."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (str(installed[-1]) if installed else None)
    if initdb is None:
        raise FileNotFoundError("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="triplewire-bench-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:  # it refuses to run as root
        as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        shutil.chown(folder, "nobody", "nogroup")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, quiet = folder / "data", {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    made = [*as_user, initdb, "-D", str(data), "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run(made, check=True, **quiet)  # type: ignore[call-overload]  # both are files
    control = [*as_user, initdb.replace("initdb", "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c shared_buffers=512MB"
    subprocess.run([*control, "-o", options, "start"], check=True, **quiet)  # type: ignore[call-overload]  # as above

    def stop() -> None:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, **quiet)  # type: ignore[call-overload]  # as above
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return f"host=127.0.0.1 port={port} user=bench dbname=postgres"


class Table:
    """Queries of one tuple with words as rows, numbered in their order. A word is asked for as `PREDICATE word`."""

    def __init__(self, queries: Sequence[Query]) -> None:
        import psycopg

        self._connection: Any = psycopg.connect(server(), autocommit=True)
        asked: list[list[str]] = []
        for query in queries:
            ((_, predicate, _, words),) = query
            field = "" if predicate[0] in "?*" else predicate
            asked.append([_lexeme(field, word) for word in words])
        often = Counter(lexeme for lexemes in asked for lexeme in lexemes)
        execute = self._connection.execute
        execute("SET plan_cache_mode = force_custom_plan")
        execute("CREATE TABLE queries (id int, rarest text, wanted tsquery)")
        with self._connection.cursor().copy("COPY queries FROM STDIN") as rows:
            for number, lexemes in enumerate(asked):
                rarest = min(lexemes, key=lambda lexeme: (often[lexeme], lexeme))
                rows.write_row((number, rarest, " & ".join(f"'{lexeme}'" for lexeme in lexemes)))
        execute("CREATE INDEX ON queries (rarest)")
        execute("ANALYZE queries")
        self.bytes: int = execute("SELECT pg_total_relation_size('queries')").fetchall()[0][0]

    def processor(self) -> float:
        """The processor seconds of this process and of the server's for its connection."""
        clock = ~self._connection.info.backend_pid << 3 | 2  # Linux: clock_getcpuclockid(3) of another process
        return time.process_time() + time.clock_gettime(clock)

    def matching(self, statements: Sequence[Statement]) -> set[int]:
        """The numbers of the queries whose words are in one literal of a publication."""
        numbers: set[int] = set()
        for _, predicate, _, words in statements:
            if words:
                distinct = set(words)
                lexemes = [_lexeme(field, word) for field in ("", predicate) for word in distinct]
                rows = self._connection.execute(_MATCHING, (lexemes, lexemes), prepare=True).fetchall()
                numbers.update(number for (number,) in rows)
        return numbers


def _lexeme(field: str, word: str) -> str:
    return f"{field} {word}".replace("\\", "\\\\").replace("'", "''")


if __name__ == "__main__":
    serve(Table)
