"""What the segments of an engine share: how texts are compiled and indexed, match rows' memory, the operator stage."""

from __future__ import annotations

import json
import weakref
from typing import Any, NamedTuple

from triplewire.bounded_cache import BoundedCache
from triplewire.engine.chunk import SubscriptionCompiler
from triplewire.engine.compiler import line_of, row_of
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.operator_pairs import OperatorPairs
from triplewire.engine.segments.texts import TextSource
from triplewire.errors import StoreError
from triplewire.ir.subscription import Subscription
from triplewire.kernels.pool import Pool
from triplewire.select.index import IndexMaker

KEPT_BYTES = 4 << 20
"""The bound of the cache of compiled subscriptions, in bytes of their texts. A subscription that is compiled and was
evaluated once takes some 50 times the memory of its text (`docs/decisions/027-texts-and-caches.md`)."""


class Forms(NamedTuple):
    """A subscription as it was registered, and as it is evaluated."""

    registered: Subscription
    evaluated: Subscription


class SegmentContext:
    """The compiler, index maker, cache of compiled subscriptions, arenas and operator stage of an engine's segments.

    Any number of threads may use it.
    """

    def __init__(self, compiler: SubscriptionCompiler, maker: IndexMaker) -> None:
        self.compiler = compiler
        self.maker = maker
        self._cache: BoundedCache[tuple[int, int, int], tuple[weakref.ref[TextSource], Forms]] = BoundedCache()
        self.arenas: Pool[Arena] = Pool()
        self.operators = OperatorPairs(compiler.world, compiler.learned)

    def with_compiler(self, compiler: SubscriptionCompiler) -> SegmentContext:
        """The same with a compiler of another taxonomy, on which nothing in the cache depends."""
        other = SegmentContext(compiler, self.maker)
        other._cache, other.arenas = self._cache, self.arenas
        return other

    def compiled(self, source: TextSource, start: int, length: int) -> Forms:
        """The subscription whose text lies at this place of the source; its warnings are those of the text alone."""
        key = id(source), start, length
        known = self._cache.get(key)
        if known is not None and known[0]() is source:
            return known[1]
        registered = self.compiler.compiled(_row(source.read(start, length)), full=False)
        self.compiler.check_calls(registered)
        forms = Forms(registered, self.compiler.meant(registered))
        size = max(length, len(registered.text))  # of a pointer, that of the text
        self._cache.put(key, (weakref.ref(source), forms), size, KEPT_BYTES)  # texts go with their segment
        return forms


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
