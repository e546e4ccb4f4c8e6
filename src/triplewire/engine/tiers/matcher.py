"""The first snapshot of an engine: of an index over clauses, interpreted until kernels are loaded."""

from __future__ import annotations

from functools import partial

from triplewire.engine.compiler import Compiler
from triplewire.engine.reference import ReferenceSnapshot
from triplewire.engine.tiers.kernels import KERNELS
from triplewire.engine.tiers.snapshots import InterpretedSnapshot, Successor
from triplewire.errors import TriplewireError
from triplewire.matchers import Reference, Snapshot, SubscriptionCompiler
from triplewire.select.index import IndexMaker


def empty_snapshot(matcher: IndexMaker | Reference, compiler: Compiler) -> Snapshot:
    """A snapshot of no subscriptions. Raises `TriplewireError` for a plug-in that is no matcher."""
    if isinstance(matcher, Reference):
        return ReferenceSnapshot(compiler)
    if not isinstance(matcher, IndexMaker):
        raise TriplewireError(
            f"the plug-in {matcher!r:.80} is no matcher", remedy="give it what triplewire.extend.IndexMaker asks for"
        )
    if KERNELS.are_loaded():
        return _compiled(matcher, compiler)
    pairs = ReferenceSnapshot(compiler)
    return InterpretedSnapshot(pairs, Successor(partial(_compiled, matcher), pairs, set()))


def _compiled(maker: IndexMaker, compiler: SubscriptionCompiler) -> Snapshot:
    # compiled kernels, which the interpreted tier does without
    from triplewire.engine.segments.context import SegmentContext
    from triplewire.engine.segments.snapshot import SegmentSnapshot

    return SegmentSnapshot(SegmentContext(compiler, maker))
