"""Subscription files into a segment: rows of a known shape are indexed without being parsed.

The rows and their shapes: `triplewire.languages.bulk`. What is told of a subscription (warnings, refusals) is what
`Engine.subscribe` would tell.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from json.encoder import encode_basestring

import numpy as np

from triplewire.engine.compiler import Compiler, class_warning, id_is_taken
from triplewire.engine.current import Current
from triplewire.engine.home import Home, text_row
from triplewire.engine.ids import SEED, id_key
from triplewire.engine.segment import Segment, Selection, selection_of
from triplewire.engine.snapshot import LARGE, SegmentSnapshot
from triplewire.engine.texts import Texts, TextWriter
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.evidence import evidence
from triplewire.ir.nodes import Call, InstanceOf, Label
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages.bulk import Prepared, read_prepared
from triplewire.languages.masks import Constants
from triplewire.languages.rows import Row
from triplewire.languages.shape import VARIABLE, Composed, Shape, put
from triplewire.languages.shapes import Shapes
from triplewire.model.terms import IRI
from triplewire.select.columns import Strings
from triplewire.select.index import IndexBuilder

Tell = Callable[[str, str], None]
Class = IRI | Label
_KEPT = 1 << 16  # shapes and classes that are remembered


def load_segments(
    files: Sequence[str | os.PathLike[str]],
    compiler: Compiler,
    current: Current,
    refuse: Callable[[Refusal], None],
    warn: Tell | None,
    ids: Collection[str] | None,
) -> Iterator[int]:
    """Register the subscriptions of files, of those with one of the `ids` where they are given, in segments of their
    own. Yields how many more there are, now and then."""
    snapshot = current.snapshot
    assert isinstance(snapshot, SegmentSnapshot)
    size = sum(os.path.getsize(file) for file in files if os.path.isfile(file))
    loader = Loader(snapshot.home, compiler, size)
    for chunk in _chunks(files, compiler, refuse):
        before = len(loader)
        loader.add(chunk if ids is None else [one for one in chunk if one.row.id in ids], refuse, warn)
        yield len(loader) - before
        chunk.clear()  # before the next one is made, or the segment
        if len(loader) >= LARGE:
            yield -_install(loader.segment(), current, refuse)
            loader = Loader(snapshot.home, compiler, size)
    if len(loader):
        yield -_install(loader.segment(), current, refuse)


def _chunks(
    files: Sequence[str | os.PathLike[str]], compiler: Compiler, refuse: Callable[[Refusal], None]
) -> Iterator[list[Prepared]]:
    """The rows of files. The shapes go when there are no more."""
    world = compiler.world
    shapes = Shapes(world.settings, world.operators, None if compiler.entailment == "none" else compiler.meant)
    yield from read_prepared(files, shapes, operators=world.operators, settings=world.settings, on_refusal=refuse)


def _install(segment: Segment, current: Current, refuse: Callable[[Refusal], None]) -> int:
    """Put a segment into the current snapshot; returns how many of its subscriptions have ids that are taken."""
    segment = segment.ready()
    with current.lock:
        snapshot = current.snapshot
        assert isinstance(snapshot, SegmentSnapshot)
        current.snapshot, taken = snapshot.with_segment(segment)
    for id_ in taken:
        refuse(Refusal.of("subscription", id_, id_is_taken(id_)))
    return len(taken)


class Loader:
    """Takes chunks of rows; `segment` is then all of them. For one thread. `size`: bytes of the files, where known."""

    def __init__(self, home: Home, compiler: Compiler, size: int) -> None:
        self._home = home
        self._compiler = compiler
        self._most = compiler.world.settings.max_branches
        self._builder = IndexBuilder()
        self._writer = TextWriter(size)
        self._starts, self._lengths = array("q"), array("i")
        self._ids, self._id_ends = bytearray(), array("q", [0])
        self._selections: dict[Selection, int] = {}
        self._selection = array("i")
        self._construct = bytearray()
        self._pinned: dict[int, Subscription] = {}
        self._operators: set[tuple[str, int]] = set()
        self._known: dict[Shape, _Known] = {}
        self._unknown: dict[object, str] = {}  # class -> its warning, or ""

    def __len__(self) -> int:
        return len(self._construct)

    def add(self, chunk: Sequence[Prepared], refuse: Callable[[Refusal], None], warn: Tell | None) -> None:
        """The next rows; those that are refused are left out."""
        texts: list[bytes] = []
        for one in chunk:
            try:
                texts.append(self._add(one, warn))
            except TriplewireError as error:
                refuse(one.row.refusal(error))
        starts, lengths = self._writer.append(texts)
        self._starts.frombytes(starts.tobytes())
        self._lengths.frombytes(lengths.tobytes())

    def _add(self, one: Prepared, warn: Tell | None) -> bytes:
        row, shape, constants, subscription, is_plain = one
        if shape is not None and self._calls(shape):
            subscription = shape.subscription_of(constants, row.id, row.query, row.prefixes, row.base)
        if subscription is not None:
            return self._add_compiled(subscription, is_plain, warn)
        assert shape is not None
        if warn is not None:
            for warning in self._warnings(shape, constants):
                warn(row.id, warning)
        self._builder.add_shaped(shape, constants)
        self._end(row.id, self._select(shape, constants), False)
        return _text(row)

    def _add_compiled(self, subscription: Subscription, plain: bool, warn: Tell | None) -> bytes:
        subscription = self._compiler.checked(subscription)
        if warn is not None:
            for warning in subscription.warnings:
                warn(subscription.id, warning)
        found = evidence(self._compiler.meant(subscription), most=self._most)
        self._builder.add(found, subscription.select, subscription.ask)
        calls = (node for node in walk(subscription.where) if isinstance(node, Call))
        self._operators.update((call.operator, len(call.arguments)) for call in calls)
        if not plain:
            self._pinned[len(self)] = subscription
        self._end(subscription.id, selection_of(subscription), subscription.construct is not None)
        return text_row(subscription) if plain else b""

    def _end(self, id: str, select: Selection, construct: bool) -> None:
        self._ids += id_key(id)
        self._id_ends.append(len(self._ids))
        self._selection.append(self._selections.setdefault(select, len(self._selections)))
        self._construct.append(construct)

    # --- what is to be known of a shape

    def _parts(self, shape: Shape | Composed, constants: Constants) -> Iterator[tuple[Shape, Constants]]:
        return shape.pairs(constants) if isinstance(shape, Composed) else iter(((shape, constants),))

    def _calls(self, shape: Shape | Composed) -> bool:
        if isinstance(shape, Shape):
            return self._of(shape).calls
        return any(self._of(part).calls for part in shape.parts)

    def _select(self, shape: Shape | Composed, constants: Constants) -> Selection:
        if isinstance(shape, Shape):
            known = self._of(shape)
            if known.is_one_selection:
                return known.selection
        return tuple(dict.fromkeys(shape.select_of(constants)))

    def _of(self, part: Shape) -> _Known:
        found = self._known.get(part)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[part] = _Known(part)
        return found

    def _warnings(self, shape: Shape | Composed, constants: Constants) -> dict[str, None]:
        """The warnings that the text gives, and those of classes that the taxonomy does not know."""
        out = dict.fromkeys(shape.warnings)
        for part, own in self._parts(shape, constants):
            classes = self._of(part).classes
            if classes:
                replacement = part.replacement(own)
                for cls in classes:
                    warning = self._warning(put(cls, replacement))
                    if warning:
                        out[warning] = None
        return out

    def _warning(self, cls: Class) -> str:
        found = self._unknown.get(cls)
        if found is None:
            if len(self._unknown) >= _KEPT:
                self._unknown.clear()
            found = self._unknown[cls] = class_warning(cls, self._compiler.world.taxonomy)
        return found

    def segment(self) -> Segment:
        """All rows, indexed. The loader is spent then: what it holds goes before that is made which stays, and would
        come to lie among it."""
        selections = json.dumps(list(self._selections))
        for kept in (self._selections, self._known, self._unknown):
            kept.clear()
        index, starts = self._builder.build(), np.array(self._starts, np.int64)
        return Segment(
            self._home,
            index,
            Strings(np.array(self._ids, np.uint8), np.array(self._id_ends, np.int64)).names(SEED),
            Texts((self._writer,), np.zeros(len(starts), np.uint8), starts, np.array(self._lengths, np.int32)),
            tuple([None if one is None else tuple(one) for one in json.loads(selections)]),
            np.array(self._selection, np.int32),
            np.array(self._construct, np.uint8),
            self._pinned,
            frozenset(self._operators),
        )


class _Known:
    """What a shape asks and selects, found once."""

    def __init__(self, shape: Shape) -> None:
        nodes = list(walk(shape.stated))
        self.calls = any(isinstance(node, Call) for node in nodes)
        self.classes = [node.cls for node in nodes if isinstance(node, InstanceOf)]
        self.is_one_selection = shape.ask or all(slot.kind != VARIABLE for slot in shape.slots)
        self.selection: Selection = None if shape.ask else tuple(dict.fromkeys(shape.select))


def _text(row: Row) -> bytes:
    """What `triplewire.engine.compiler.line_of` gives, in a fifth of the time."""
    prefixes = json.dumps(dict(sorted(row.prefixes.items())), ensure_ascii=False) if row.prefixes else "{}"
    line = (
        f'{{"id": {encode_basestring(row.id)}, "language": {encode_basestring(row.language)}, '
        f'"query": {encode_basestring(row.query)}, "prefixes": {prefixes}, "base": {encode_basestring(row.base)}}}\n'
    )
    return line.encode("utf-8", "surrogatepass")
