"""The least that a micro-batch of Spark takes: a stream that does nothing, beside which others are timed.

It reads the same kind of listings, calls Python once a micro-batch and collects what there is. What it takes is Spark's
own: looking for files, its logs, planning, one job of one task.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.errors import TriplewireError
from triplewire.pipeline.session import session_for
from triplewire.pipeline.sources import listed_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TRIGGER, _LOOK, _PATIENCE = 0.05, 0.002, 120.0  # seconds


class EmptyStream:
    """A stream of listings that is running. `done` counts its micro-batches."""

    def __init__(self, listings: Path) -> None:
        self.done = 0
        self._listings = listings
        self._published = 0

    def work(self, rows: DataFrame, _: int) -> None:
        """What a micro-batch does."""
        rows.collect()
        self.done += 1

    def seconds(self) -> float:
        """Seconds from a file that appears to the end of its micro-batch. Raises `TriplewireError` where there is no
        end."""
        before, name = self.done, f"{self._published:010}.json"
        self._published += 1
        aside = self._listings / f".{name}"
        aside.write_text(json.dumps({"path": "file:/none", "length": 1}) + "\n")
        begun = time.perf_counter()
        os.rename(aside, self._listings / name)
        while self.done == before:
            if time.perf_counter() > begun + _PATIENCE:
                raise TriplewireError("an empty micro-batch of Spark took too long")
            time.sleep(_LOOK)
        return time.perf_counter() - begun


@contextmanager
def empty_stream(folder: Path, master: str) -> Iterator[EmptyStream]:
    """An empty stream on a session of its own."""
    listings = folder / "floor-listings"
    listings.mkdir()
    with session_for("floor", master=master, log=folder / "floor.log") as spark:
        running = EmptyStream(listings)
        writer = listed_files(spark, listings).writeStream.trigger(processingTime=f"{_TRIGGER} seconds")
        writer = writer.option("checkpointLocation", f"file://{folder / 'floor-checkpoint'}")
        query = writer.foreachBatch(running.work).start()
        try:
            yield running
        finally:
            query.stop()
