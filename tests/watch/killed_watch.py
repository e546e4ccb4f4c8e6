"""A watch of files as a process of its own, which kills itself at a point: killed_watch.py SOURCE OUT POINT."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from triplewire.engine import Engine
from triplewire.net.addresses import address
from triplewire.notify import LETTER, MATCH, JsonLinesSink, SqliteSink
from triplewire.watch import FileSource, Watch, WatchFolder


def main(source: str, out: str, point: str) -> None:
    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    folder = WatchFolder(Path(out))
    engine = Engine(matcher="reference")
    engine.subscribe("ASK { ?s <urn:p> ?o }", id="any")
    table = address(f"sqlite:{out}/told.db#matches")
    with folder.alone() as held:
        assert held
        letters = [SqliteSink(address(f"sqlite:{out}/told.db#letters"), LETTER)]
        matches = [JsonLinesSink(folder.folder / "matches.jsonl"), SqliteSink(table, MATCH)]
        watch = Watch(engine, folder, folder.opened_inbox(), matches, letters, at=reached)
        watch.run(FileSource(source, folder.arrivals, watch.inbox, 1 << 20, watch.stop, settle=0), False)


if __name__ == "__main__":
    main(*sys.argv[1:])
