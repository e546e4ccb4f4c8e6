"""Which subscription ends a process that matches it with a publication: found out in a process made for that.

A fork of this process evaluates one subscription after the other, as the reference does, and says before each which it
is. Where it is ended, or is not ready in time, the last one that it has named is to blame.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import time
from collections.abc import Iterable
from contextlib import suppress

from triplewire.broker.subscriptions.trial import engine_like
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.languages.sources.rows import Row
from triplewire.model.publication import Publication

_SECONDS = 60.0
_NUMBER = struct.Struct("<q")  # a pipe takes and gives it whole
_ALL_DONE = -1


def culprit_of(engine: Engine, rows: Iterable[Row], publication: Publication) -> int | None:
    """The number of the subscription that ends the process; None where none does."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _evaluate(engine, rows, publication, writing)
        finally:
            os._exit(0)
    os.close(writing)
    last = _NUMBER.pack(_ALL_DONE)
    end = time.monotonic() + _SECONDS
    try:
        while (left := end - time.monotonic()) > 0 and select.select([reading], [], [], left)[0]:
            came = os.read(reading, 1 << 16)
            if not came:
                break
            last = came[-_NUMBER.size :]
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    number: int = _NUMBER.unpack(last)[0]
    return None if number == _ALL_DONE else number


def _evaluate(engine: Engine, rows: Iterable[Row], publication: Publication, told: int) -> None:
    """What the fork does."""
    for row in rows:
        os.write(told, _NUMBER.pack(int(row.id)))
        alone = engine_like(engine, engine.settings.max_steps)
        with suppress(TriplewireError):
            alone.subscribe(row.query, row.language, id=row.id, prefixes=row.prefixes or None)
            alone.match([publication])
    os.write(told, _NUMBER.pack(_ALL_DONE))
