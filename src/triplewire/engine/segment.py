"""A set of subscriptions with its index, never changed: the index itself, ids, texts on disk, what is selected.

Subscriptions have the numbers 0 .. n-1 in the order of their registration. Several segments make a snapshot
(`triplewire.engine.snapshot`); the index is `triplewire.select.index`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.encode.names import Names
from triplewire.engine.home import Home, text_row
from triplewire.engine.ids import id_names, id_ranks, id_texts, ids_joined
from triplewire.engine.texts import Texts, TextWriter
from triplewire.errors import LimitError, TriplewireError
from triplewire.ir.evaluate import evaluate
from triplewire.ir.evidence import Evidence, evidence
from triplewire.ir.nodes import Call, Expression
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.matchers import Chunk, Details, Meaning, Stage
from triplewire.select.features import Features, features
from triplewire.select.index import Index, IndexBuilder
from triplewire.select.merge import merge
from triplewire.select.room import Columns, Room
from triplewire.select.settle import settle
from triplewire.select.walk import Selected, SubjectAtoms, each
from triplewire.verify.columnar import Columnar
from triplewire.verify.objects import Made, shared

LONG_TEXTS = 16 << 20  # bytes of texts that are left where they are when segments are merged
_TOGETHER = 1 << 18  # triples whose atoms are found together

Selection: TypeAlias = "tuple[str, ...] | None"
"""The selected variables; None for ASK."""


@dataclass(frozen=True)
class Found:
    """The matches of a chunk in one segment: those accepted, of publication p the slice `offset` of `accepted`, and
    more of them as columns. The rest as in `triplewire.matchers.Rows`."""

    offset: Offsets
    accepted: Ids
    columns: Columns  # publication, subscription, truncated
    failures: Sequence[tuple[int, int, TriplewireError]]
    atoms: int
    candidates: int
    verified: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A subscription on its way into a segment. `row` is its text, empty where that does not give it by itself."""

    subscription: Subscription
    evidence: Evidence
    row: bytes
    operators: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, subscription: Subscription, meaning: Meaning, plain: bool) -> Prepared:
        """`plain` says that the subscription is what its text gives by itself."""
        row = text_row(subscription) if plain or meaning.is_plain(subscription) else b""
        found = evidence(meaning.meant(subscription), most=meaning.world.settings.max_branches)
        calls = (node for node in walk(subscription.where) if isinstance(node, Call))
        return cls(subscription, found, row, frozenset((call.operator, len(call.arguments)) for call in calls))


@dataclass(frozen=True)
class Segment:
    """Subscriptions and their index. `construct` marks CONSTRUCT queries, whose template is in the text."""

    home: Home = field(repr=False)
    index: Index = field(repr=False)
    ids: Names = field(repr=False)
    texts: Texts = field(repr=False)
    selections: tuple[Selection, ...] = field(repr=False)  # those that occur
    selection: Ids = field(repr=False)  # subscription -> its place in `selections`
    construct: Bytes = field(repr=False)
    pinned: Mapping[int, Subscription] = field(repr=False)  # those that their text does not give by itself
    operators: frozenset[tuple[str, int]] = frozenset()  # those called, with the number of arguments

    def __len__(self) -> int:
        return len(self.selection)

    @cached_property
    def rank(self) -> Ids:
        """Subscription -> how many ids come before its own."""
        return id_ranks(self.ids)

    def id_bytes(self, number: int) -> bytes:
        """The id of a subscription, as it is looked up."""
        return self.ids[number]

    def id_texts(self, numbers: Ids) -> list[str]:
        """The ids of some subscriptions."""
        return id_texts(self.ids, numbers)

    def stated(self, number: int) -> Subscription:
        """A subscription as it was registered."""
        pinned = self.pinned.get(number)
        return pinned if pinned is not None else self._compiled(number)[0]

    def meant(self, number: int) -> Subscription:
        """A subscription as it is evaluated."""
        pinned = self._meant.get(number)
        return pinned if pinned is not None else self._compiled(number)[1]

    @cached_property
    def _meant(self) -> Mapping[int, Subscription]:
        return {number: self.home.meaning.meant(one) for number, one in self.pinned.items()}

    def _compiled(self, number: int) -> tuple[Subscription, Subscription]:
        texts = self.texts
        source = texts.sources[texts.source[number]]
        return self.home.compiled(source, int(texts.start[number]), int(texts.length[number]))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; what is mapped from a file is counted as well."""
        own: list[NDArray[Any]] = [
            self.selection,
            self.construct,
            self.texts.source,
            self.texts.start,
            self.texts.length,
            self.rank,
        ]
        return self.index.nbytes + sum(array.nbytes for array in [*own, *self.ids.arrays().values()])

    # --- matching

    @cached_property
    def _columnar(self) -> Columnar:
        index = self.index
        return Columnar(index.programs, index.tests, self._expression, self.meant, self.home.meaning.world)

    def _expression(self, test: int) -> Expression:
        """A lazy test, as one of the subscriptions with it states it."""
        subscription, clause, place = self.index.place(test)
        settings = self.home.meaning.world.settings
        return evidence(self.meant(subscription), most=settings.max_branches).clauses[clause].tests[place][1]

    def _features(self, chunk: Chunk) -> Features:
        """The chunk in the eyes of this segment; kept with the chunk, as the bindings need it again."""
        owner, found = chunk.kept.get(id(self), (None, None))
        if owner is not self or found is None:
            if chunk.whole is not None:
                whole, first, last = chunk.whole
                found = self._features(whole).part(first, last)
            else:
                found = features(chunk.batch, self.index.terms, self.index.tests, self.home.meaning.world)
            chunk.kept[id(self)] = self, found
        assert isinstance(found, Features)
        return found

    def _atoms(self, chunk: Chunk) -> SubjectAtoms | None:
        """The atoms of a part of a larger chunk, if that is not too large: those of all of it are found at once, while
        the tables they need are near the processor, and kept up to the last part."""
        if chunk.whole is None or len(chunk.whole[0].batch.subject) > _TOGETHER:
            return None
        (whole, first, last), index = chunk.whole, self.index
        owner, found = whole.kept.pop(id(index), (None, None))
        if owner is not index or found is None:
            found = index.atoms(whole.batch, self._features(whole))
        assert isinstance(found, SubjectAtoms)
        if last < len(whole):
            whole.kept[id(index)] = index, found
        return found.part(first, last)

    def match(self, chunk: Chunk, gone: NDArray[np.bool_] | None, stage: Stage, room: Room) -> Found:
        """The matches of a chunk, but for the subscriptions that are `gone`. Those accepted lie in the room."""
        batch = chunk.batch
        settings = self.home.meaning.world.settings
        with stage("select"):
            seen = self._features(chunk)
            selected = self.index.select(batch, seen, settings.max_bindings, room, self._atoms(chunk))
            if gone is not None:
                selected = selected.without(gone, self.index.trie.owner)
        with stage("verify"):
            return self._decided(chunk, selected)

    def _decided(self, chunk: Chunk, selected: Selected) -> Found:
        """What was accepted, with the matches among the clauses to check."""
        batch, seen = chunk.batch, self._features(chunk)
        left, clause = each(selected.check_offset), selected.check_clause
        settled = settle(self.index, batch, seen, left, clause, self.home.meaning.world.settings.max_bindings)
        verdict = self._columnar.verify(batch, seen, settled.left_publication, settled.left_clause, chunk.publication)
        publication = np.concatenate((settled.publication, verdict.publication))
        subscription = np.concatenate((settled.subscription, verdict.subscription))
        truncated = np.concatenate((settled.truncated, verdict.truncated))
        if self.index.trie.may_repeat and len(publication):  # of the clauses of an ASK query each may be a match
            accepted = each(selected.offset).astype(np.int64) << 32 | selected.subscription
            pairs, first = np.unique(publication.astype(np.int64) << 32 | subscription, return_index=True)
            fresh = first[np.isin(pairs, accepted, invert=True)]
            publication, subscription, truncated = publication[fresh], subscription[fresh], truncated[fresh]
        return Found(
            selected.offset,
            selected.subscription,
            (publication, subscription, truncated),
            verdict.failures,
            selected.atoms,
            selected.candidates,
            len(clause),
        )

    def details(self, chunk: Chunk, publication: Ids, subscription: Ids) -> Details:
        """The bindings of matches."""
        constructed = np.flatnonzero(self.construct[subscription]).tolist()
        templates = {pair: self.stated(int(subscription[pair])).construct or () for pair in constructed}
        try:
            return Details(*self._bindings(chunk, publication, subscription), templates)
        except LimitError:
            pairs = (slice(pair, pair + 1) for pair in range(len(publication)))  # the others keep all theirs
            some = [self._bindings_at_least(chunk, publication[pair], subscription[pair]) for pair in pairs]
            return Details(some, sum(map(len, some)), templates)

    def _bindings(self, chunk: Chunk, publication: Ids, subscription: Ids) -> tuple[Iterator[Made], int]:
        """The bindings of matches, and how many they are. Those that are the same are one object."""
        found = self._columnar.bindings(
            chunk.batch, self._features(chunk), publication, subscription, chunk.publication
        )
        selections = [selection or () for selection in self.selections]
        made = shared(found, self.selection[subscription], selections, chunk.decoder.term)
        return made, int(found.count.sum()) + sum(len(answer.bindings) for answer in found.answers.values())

    def _bindings_at_least(self, chunk: Chunk, publication: Ids, subscription: Ids) -> Made:
        """The bindings of a match; where looking for as many as are allowed passes a limit, fewer, and at worst none:
        they are cut, and the other matches keep theirs."""
        try:
            return next(self._bindings(chunk, publication, subscription)[0])
        except LimitError:
            one, whole = self.meant(int(subscription[0])), chunk.publication(int(publication[0]))
            world = self.home.meaning.world
            most = world.settings.max_bindings
            while most > 1:
                most //= 2
                fewer = replace(world, settings=replace(world.settings, max_bindings=most))
                with suppress(LimitError):
                    return evaluate(one, whole, fewer).bindings
            return ()

    # --- making

    @classmethod
    def of(cls, home: Home, some: Sequence[Prepared], writer: TextWriter | None) -> Segment:
        """A segment of these subscriptions. Their texts go to `writer`; without one, they stay as objects."""
        builder = IndexBuilder()
        selections: dict[Selection, int] = {}
        for one in some:
            builder.add(one.evidence, one.subscription.select, one.subscription.ask)
        numbers = [selections.setdefault(selection_of(one.subscription), len(selections)) for one in some]
        selection = np.array(numbers, np.int32)
        kept = writer is None
        return cls(
            home,
            builder.build(),
            id_names([one.subscription.id for one in some]),
            Texts.of(writer or TextWriter(), [b"" if kept else one.row for one in some]),
            tuple(selections),
            selection,
            np.array([one.subscription.construct is not None for one in some], np.uint8),
            {number: one.subscription for number, one in enumerate(some) if kept or not one.row},
            frozenset().union(*(one.operators for one in some)),
        )

    @classmethod
    def merged(cls, parts: Sequence[Segment], kept: Sequence[NDArray[np.int64]]) -> Segment:
        """One segment of some subscriptions of several, which have different ids, in the order of the segments."""
        selections: dict[Selection, int] = {}
        selection, pinned, start = [], {}, 0
        for part, some in zip(parts, kept, strict=True):
            place = np.array([selections.setdefault(one, len(selections)) for one in part.selections] or [0], np.int32)
            selection.append(place[part.selection[some]])
            for number, one in part.pinned.items():
                at = int(np.searchsorted(some, number))
                if at < len(some) and some[at] == number:
                    pinned[start + at] = one
            start += len(some)
        pairs = list(zip(parts, kept, strict=True))
        return cls(
            parts[0].home,
            merge([(part.index, some) for part, some in pairs]),
            ids_joined([part.ids for part in parts], kept),
            Texts.joined([part.texts.taken(some) for part, some in pairs]),
            tuple(selections),
            np.concatenate(selection),
            np.concatenate([part.construct[some] for part, some in pairs]),
            pinned,
            frozenset().union(*(part.operators for part in parts)),
        )

    def settled(self) -> Segment:
        """The same, ready to stay for long: texts in few files, ids in order."""
        segment = replace(self, texts=self.texts.tidied(LONG_TEXTS))
        _ = segment.rank
        return segment.ready()

    def ready(self) -> Segment:
        """The same, with what else the first match would have to work out."""
        _ = self._columnar, self.index.marks  # they are kept
        return self


def selection_of(subscription: Subscription) -> Selection:
    """The selected variables, each once."""
    return None if subscription.ask else tuple(dict.fromkeys(subscription.select))
