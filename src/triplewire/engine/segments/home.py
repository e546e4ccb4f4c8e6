"""What the segments of an engine share: how texts are compiled and indexed, match rows' memory, the operator stage."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from triplewire.engine.compiler import line_of, row_of
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.called import CalledPairs
from triplewire.engine.segments.texts import TextSource
from triplewire.errors import StoreError
from triplewire.forks import new_lock
from triplewire.ir.subscription import Subscription
from triplewire.kernels.pool import Pool
from triplewire.matchers import Meaning
from triplewire.select.index import IndexMaker

KEPT = 1_024  # compiled subscriptions that are kept, those asked for last


class Home:
    """Used by any number of threads."""

    def __init__(self, meaning: Meaning, maker: IndexMaker) -> None:
        self.meaning = meaning
        self.maker = maker
        self._lock = new_lock()
        self._kept: OrderedDict[tuple[int, int], tuple[TextSource, Subscription, Subscription]] = OrderedDict()
        self.arenas: Pool[Arena] = Pool()
        self.operators = CalledPairs(meaning.world, meaning.learned)

    def compiled(self, source: TextSource, start: int, length: int) -> tuple[Subscription, Subscription]:
        """The subscription of a row, as it was registered and as it is evaluated."""
        key = id(source), start
        with self._lock:
            known = self._kept.get(key)
            if known is not None and known[0] is source:
                self._kept.move_to_end(key)
                return known[1], known[2]
        stated = self.meaning.compiled(_row(source.read(start, length)))
        meant = self.meaning.meant(stated)
        with self._lock:
            self._kept[key] = source, stated, meant
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return stated, meant


def _row(text: bytes) -> dict[str, Any]:
    """A text as a row. Raises `StoreError` where it has changed since it was checked."""
    try:
        row: dict[str, Any] = json.loads(text.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise StoreError("the text of a subscription is damaged", remedy="load the engine again") from error
    return row


def text_row(subscription: Subscription) -> bytes:
    """The subscription as a line of a subscription file."""
    return line_of(row_of(subscription))
