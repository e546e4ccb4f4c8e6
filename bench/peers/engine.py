"""Triplewire as one of the systems. It reads its publications as N-Quads in each pass, which the others do not."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.measure import Input, match, warm_up
from bench.peers.serving import answer, registered
from bench.resident import resident_bytes
from triplewire.engine import Engine


def main(folder: Path) -> None:
    """Answer lines as `bench.peers.serving` says."""
    subscriptions, publications = folder / "subscriptions.jsonl", Input(folder / "publications.nq", 0)
    warm_up("trie", subscriptions, publications, folder)
    before, begun = resident_bytes(), time.process_time()
    engine = Engine()
    engine.load_subscriptions(subscriptions)
    engine.settle()
    registered(time.process_time() - begun, resident_bytes() - before)
    for line in sys.stdin:
        command, _, file = line.strip().partition(" ")
        begun = time.process_time()
        if command == "answers":
            with Path(file).open("w", encoding="utf-8") as out:
                for id, ids in _answers(engine, publications.path).items():
                    out.write(json.dumps([id, ids]) + "\n")
        else:
            match(engine, publications)
        answer({"seconds": time.process_time() - begun})


def _answers(engine: Engine, path: Path) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for result in engine.match_files(path):
        for found in result:
            ids.setdefault(found.publication, []).append(found.subscription)
    return ids


if __name__ == "__main__":
    main(Path(sys.argv[1]))
