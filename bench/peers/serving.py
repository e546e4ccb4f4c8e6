"""The side of a system that is measured: registers the queries of a folder, and answers lines of its input."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from bench.resident import resident_bytes

Query: TypeAlias = Sequence[Sequence[Any]]
"""The tuples of a query."""
Statement: TypeAlias = tuple[str, str, str, list[str] | None]
"""Subject, predicate, object, and the words of a literal."""


class Peer(Protocol):
    """A system in Python. One that keeps its queries in another process has their `bytes` as an attribute, and
    `processor`, the processor seconds of both processes."""

    def __init__(self, queries: Sequence[Query]) -> None:
        """Register the queries, which are numbered in their order."""

    def matching(self, statements: Sequence[Statement]) -> Collection[int]:
        """The numbers of the queries that a publication satisfies."""


def rows_of(path: Path) -> Iterator[Any]:
    """The values of a file of JSON Lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def serve(system: Callable[[Sequence[Query]], Peer]) -> None:
    """Be a system: register what the folder of the first argument holds, and answer lines until the input ends."""
    folder = Path(sys.argv[1])
    rows = list(rows_of(folder / "queries.jsonl"))
    publications = list(rows_of(folder / "publications.jsonl"))
    before, begun = resident_bytes(), time.process_time()
    peer = system([tuples for _, tuples in rows])
    processor: Callable[[], float] = getattr(peer, "processor", time.process_time)
    seconds = processor() - begun
    registered(seconds, getattr(peer, "bytes", resident_bytes() - before))
    for line in sys.stdin:
        command, _, file = line.strip().partition(" ")
        begun = processor()
        if command == "answers":
            with Path(file).open("w", encoding="utf-8") as out:
                for id, statements in publications:
                    ids = [rows[number][0] for number in peer.matching(statements)]
                    out.write(json.dumps([id, ids]) + "\n")
        else:
            for _, statements in publications:
                peer.matching(statements)
        answer({"seconds": processor() - begun})


def registered(seconds: float, grown: int) -> None:
    """Say that all queries are registered."""
    answer({"seconds": seconds, "bytes": grown})


def answer(said: dict[str, float]) -> None:
    """Say something to the runner."""
    os.write(1, json.dumps(said).encode() + b"\n")
