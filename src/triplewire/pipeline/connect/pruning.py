"""Removes from the inbox what a stream has read and will not read again, once it is old."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import unquote


def prune(inbox: Path, checkpoint: Path, seconds: float) -> int:
    """Remove the files of an inbox that are in a committed micro-batch and older than so many seconds; returns how many
    these were. The last file stays, because names go on from it, and a name that was read is never read again."""
    files = sorted(inbox.glob("[0-9]*.parquet"))[:-1]
    oldest, count = time.time() - seconds, 0
    old = [file for file in files if file.stat().st_mtime < oldest]
    read = read_files(checkpoint) if old else set()
    for file in old:
        if file.name in read:
            file.unlink()
            count += 1
    return count


def read_files(checkpoint: Path) -> set[str]:
    """The names of the files that committed micro-batches have read, by the logs of Spark's file source; none where
    these do not say."""
    try:
        last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal())
        offset = json.loads((checkpoint / "offsets" / str(last)).read_text(encoding="utf-8").splitlines()[-1])
        until = int(offset["logOffset"])
        names: set[str] = set()
        for log in (checkpoint / "sources" / "0").iterdir():
            if not log.name.removesuffix(".compact").isdecimal():
                continue
            for line in log.read_text(encoding="utf-8").splitlines()[1:]:  # the first is the version of the log
                entry = json.loads(line)
                if int(entry["batchId"]) <= until:
                    names.add(unquote(entry["path"].rpartition("/")[2]))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return set()
    return names
