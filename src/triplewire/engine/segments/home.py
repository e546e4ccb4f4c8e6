"""What the segments of an engine share: how texts are compiled and indexed, match rows' memory, the operator stage."""

from __future__ import annotations

import json
import random
import weakref
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

KEPT_BYTES = 4 << 20
"""Of the texts of compiled subscriptions that are kept: compiled, and evaluated once, they take some 50 times as much
memory (`docs/decisions/104-compiled-by-bytes.md`)."""

_Key = tuple[int, int, int]  # the source of a text, its start and its length


class Home:
    """Used by any number of threads."""

    def __init__(self, meaning: Meaning, maker: IndexMaker) -> None:
        self.meaning = meaning
        self.maker = maker
        self._lock = new_lock()
        self._kept: dict[_Key, tuple[weakref.ref[TextSource], Subscription, Subscription]] = {}
        self._keys: list[_Key] = []  # of those that are kept, in any order
        self._kept_bytes = 0
        self.arenas: Pool[Arena] = Pool()
        self.operators = CalledPairs(meaning.world, meaning.learned)

    def compiled(self, source: TextSource, start: int, length: int) -> tuple[Subscription, Subscription]:
        """The subscription of a row, as it was registered and as it is evaluated."""
        key = id(source), start, length
        known = self._kept.get(key)
        if known is not None and known[0]() is source:
            return known[1], known[2]
        stated = self.meaning.compiled(_row(source.read(start, length)))
        meant = self.meaning.meant(stated)
        with self._lock:
            if key not in self._kept:
                self._keys.append(key)
                self._kept_bytes += length
            self._kept[key] = weakref.ref(source), stated, meant  # texts go with their segment
            while self._kept_bytes > KEPT_BYTES and len(self._keys) > 1:
                self._drop_any()
        return stated, meant

    def _drop_any(self) -> None:
        """Drop one by chance: of more than there is room for, which come in turn, the oldest would be the next one."""
        place = random.randrange(len(self._keys))
        key, self._keys[place] = self._keys[place], self._keys[-1]
        self._keys.pop()
        self._kept.pop(key, None)  # a fork may have been in between
        self._kept_bytes -= key[2]


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
