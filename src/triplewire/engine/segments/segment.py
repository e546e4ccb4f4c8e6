"""A set of subscriptions that never changes: their clauses, an index over these, ids, texts, and what they select.

Subscriptions have the numbers 0 .. n-1 in the order of their registration. Several segments make a snapshot
(`triplewire.engine.segments.snapshot`). The seam for indexes is `triplewire.select.index`.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import BoundedCache
from triplewire.clauses.builder import ClauseBuilder
from triplewire.clauses.clauses import Clauses, merge
from triplewire.clauses.view import View
from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.engine.chunk import Chunk, Details
from triplewire.engine.compiler import Compiler, row_of
from triplewire.engine.segments.arena import Arena, Columns
from triplewire.engine.segments.narrowing import Narrowing
from triplewire.engine.segments.operator_pairs import OperatorPairs
from triplewire.engine.segments.single_texts import SingleTexts
from triplewire.engine.segments.texts import IdTable, Texts, TextSource, TextWriter
from triplewire.engine.stats import Clock, LookedAt
from triplewire.errors import StoreError, TriplewireError
from triplewire.ir.nodes import Expression
from triplewire.ir.normal_form import NormalForm, normal_form
from triplewire.ir.subscription import Subscription, revision_of
from triplewire.ir.walk import calls_in
from triplewire.languages.sources.tables import is_pointer, line_of
from triplewire.languages.templates import TextForms
from triplewire.languages.templates.template import TemplateText
from triplewire.memory import Pool
from triplewire.model.origins import FROM_SOURCE
from triplewire.select.everything import EVERYTHING
from triplewire.select.index import Index, IndexMaker, Prepared, Selected, can_grow, owners
from triplewire.verify.batch_verifier import BatchVerifier
from triplewire.verify.bindings import json_column, of_few, shared
from triplewire.verify.verifier import NamesClauses, Verified, Verifier, VerifierInput, VerifierMaker

LONG_TEXTS = 16 << 20  # bytes of texts that are left where they are when segments are merged
_TOGETHER = 1 << 18  # triples whose atoms are found together
_FEW = 64  # pairs whose bindings are listed without NumPy
_FEW_TEXTS = 4  # by template, which are added one by one sooner than together
_FORMS = 16  # normal forms that are kept while tests of their subscriptions are asked for
_NO_COLUMNS: Columns = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.bool_)
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

    def __init__(self, compiler: Compiler, maker: IndexMaker) -> None:
        self.compiler = compiler
        self.maker = maker
        self._cache: BoundedCache[tuple[int, int, int], tuple[weakref.ref[TextSource], Forms]] = BoundedCache()
        self.arenas: Pool[Arena] = Pool()
        self.operators = OperatorPairs(compiler.world, compiler.learned)
        self.most_bindings = compiler.world.settings.most_bindings
        self.single_texts = SingleTexts(compiler)

    def with_compiler(self, compiler: Compiler) -> SegmentContext:
        """The same with a compiler of another taxonomy, on which nothing in the cache depends."""
        other = SegmentContext(compiler, self.maker)
        other._cache, other.arenas = self._cache, self.arenas
        return other

    def compiled(self, source: TextSource, start: int, length: int) -> Forms:
        """The subscription whose text lies at this place of the source; its warnings are those of the text alone.
        Raises what `Compiler.compiled` raises, and `StoreError` where the text has changed since it was checked."""
        key = id(source), start, length
        known = self._cache.get(key)
        if known is not None and known[0]() is source:
            return known[1]
        try:
            row: dict[str, Any] = json.loads(source.read(start, length).decode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise StoreError("the text of a subscription is damaged", remedy="load the engine again") from error
        registered = self.compiler.compiled(row, full=False)
        self.compiler.check_calls(registered)
        forms = Forms(registered, self.compiler.meant(registered))
        size = max(length, len(registered.text))  # of a pointer, that of the text
        self._cache.put(key, (weakref.ref(source), forms), size, KEPT_BYTES)  # texts go with their segment
        return forms


Selection: TypeAlias = "tuple[str, ...] | None"
"""The selected variables; None for ASK."""

Removed: TypeAlias = "NDArray[np.bool_] | None"
"""Subscription -> is it removed? None where none is."""


@runtime_checkable
class AsksFeatures(Protocol):
    """An index that asks for the features of every batch (`View.features`). They are looked up before it is asked."""

    asks_features: bool


@dataclass(slots=True)
class SegmentRows:
    """The matches of a chunk in one segment: the accepted ones, of publication p the slice `offset` of `accepted`, and
    those that were verified, as columns. The rest as in `triplewire.engine.chunk.Rows`."""

    offset: Offsets
    accepted: Ids
    columns: Columns  # publication, subscription, truncated
    failures: Sequence[tuple[int, int, TriplewireError]]
    waiting: Sequence[tuple[int, int]]  # publication, subscription: left to the operators
    looked_at: LookedAt


def _without_decided_failures(rows: SegmentRows, selected: Ids) -> SegmentRows:
    """A clause that holds decides, whatever limit another one passed: such a pair matches and is no failure, and it may
    have more bindings. `selected`: subscription -> how many variables it selects."""

    def keys(publication: Ids, subscription: Ids) -> NDArray[np.int64]:
        return publication.astype(np.int64) << 32 | subscription

    failed = np.array([publication << 32 | subscription for publication, subscription, _ in rows.failures], np.int64)
    accepted, verified = keys(owners(rows.offset), rows.accepted), keys(rows.columns[0], rows.columns[1])
    is_decided = np.isin(failed, np.concatenate((accepted, verified)))
    if not is_decided.any():
        return rows
    stays = ~(np.isin(accepted, failed) & (selected[rows.accepted] > 0))
    cut = np.flatnonzero(~stays)
    publication, subscription, truncated = rows.columns
    columns = (
        np.append(publication, owners(rows.offset)[cut]),
        np.append(subscription, rows.accepted[cut]),
        np.append(truncated | (np.isin(verified, failed) & (selected[subscription] > 0)), np.ones(len(cut), np.bool_)),
    )
    offset = np.append(0, np.cumsum(stays))[rows.offset]
    left = [failure for failure, decided in zip(rows.failures, is_decided.tolist(), strict=True) if not decided]
    return replace(rows, offset=offset, accepted=rows.accepted[stays], columns=columns, failures=left)


@dataclass(frozen=True, slots=True)
class CompiledSubscription:
    """A subscription before it is in a segment. `form`: None of one `by_template`; `row`: its line of a subscription
    file, empty where that line alone does not give it; `operators`: name and number of arguments of its calls."""

    subscription: Subscription
    form: NormalForm | None
    row: bytes
    operators: frozenset[tuple[str, int]] = frozenset()
    by_template: TemplateText | None = None

    @classmethod
    def of(cls, subscription: Subscription, compiler: Compiler, plain: bool) -> CompiledSubscription:
        """`plain` says that the subscription is what its text gives by itself."""
        row = line_of(row_of(subscription)) if plain or compiler.is_plain(subscription) else b""
        if plain and isinstance(text := subscription.make_where, TemplateText):
            return cls(subscription, None, row, by_template=text)
        form = normal_form(compiler.meant(subscription), most=compiler.world.settings.max_branches)
        operators = frozenset((call.operator, len(call.arguments)) for call in calls_in(subscription.where))
        return cls(subscription, form, row, operators)

    def add_to(self, builder: ClauseBuilder) -> None:
        """Add it as the next one."""
        form = self.form
        if form is None and self.by_template is not None:
            form = self.by_template.form.normal_form(self.by_template.parameters)
        assert form is not None
        builder.add(form, self.subscription.select, self.subscription.ask)


@dataclass(frozen=True, eq=False)
class Segment:
    """Subscriptions, their clauses and an index over these. `construct` marks CONSTRUCT queries, whose template is in
    the text."""

    context: SegmentContext = field(repr=False)
    clauses: Clauses = field(repr=False)
    index: Index = field(repr=False)
    ids: IdTable = field(repr=False)
    texts: Texts = field(repr=False)
    selections: tuple[Selection, ...] = field(repr=False)  # those that occur
    selection: Ids = field(repr=False)  # subscription -> its place in `selections`
    construct: Bytes = field(repr=False)
    pinned: Mapping[int, Subscription] = field(repr=False)  # those that their text does not give by itself
    operators: frozenset[tuple[str, int]] = frozenset()  # those called, with the number of arguments
    saved_network: Mapping[str, NDArray[Any]] | None = field(repr=False, default=None)  # what `verifier_arrays` gave
    names_clauses: bool = False  # did the verifiers of segments that it was merged of have anything to do?
    # those whose tests were asked for last: their others are mostly asked for next
    _last_forms: dict[int, NormalForm] = field(init=False, repr=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.selection)

    def stated(self, number: int) -> Subscription:
        """A subscription as it was registered, with the warnings of today's taxonomy."""
        pinned = self.pinned.get(number)
        return pinned if pinned is not None else self.context.compiler.checked(self._forms(number).registered)

    def meant(self, number: int) -> Subscription:
        """A subscription as it is evaluated."""
        pinned = self._meant.get(number)
        return pinned if pinned is not None else self._forms(number).evaluated

    @cached_property
    def _meant(self) -> Mapping[int, Subscription]:
        return {number: self.context.compiler.meant(subscription) for number, subscription in self.pinned.items()}

    def _forms(self, number: int) -> Forms:
        texts = self.texts
        source = texts.sources[texts.source[number]]
        return self.context.compiled(source, int(texts.start[number]), int(texts.length[number]))

    def revisions(self, numbers: Ids) -> NDArray[np.uint64]:
        """The revisions of some subscriptions. Each is worked out once, from the text, without compiling it."""
        known = self._revisions
        for number in np.unique(numbers[known[numbers] == 0]).tolist():
            if (pinned := self.pinned.get(number)) is not None:
                revision = pinned.revision
            elif is_pointer(row := json.loads(self.texts.read(number))):
                revision = str(row["revision"])
            else:
                revision = revision_of(row["language"], row["query"], row["prefixes"], row["base"])
            known[number] = int(revision, 16)
        revisions: NDArray[np.uint64] = known[numbers]
        return revisions

    @cached_property
    def _revisions(self) -> NDArray[np.uint64]:
        """The revisions by number; 0 where it is not known yet. Its memory is taken where it is written."""
        return np.zeros(len(self), np.uint64)

    @cached_property
    def call_rows(self) -> NDArray[np.int64]:
        """Call of `clauses.asked` -> its row in the learned statistics."""
        return self.context.operators.learned.held(self.clauses.asked.keys, self)

    # --- matching

    @cached_property
    def _narrowing(self) -> Narrowing | None:
        return Narrowing.of(self.clauses)

    @cached_property
    def _verifier(self) -> Verifier:
        maker, world = self.context.maker, self.context.compiler.world
        what = VerifierInput(self.clauses, self.index, self._expression, self.meant, world, self.saved_network)
        return maker.verifier(what) if isinstance(maker, VerifierMaker) else BatchVerifier(what)

    def verifier_arrays(self) -> Mapping[str, NDArray[Any]]:
        """What is saved of the verifier, which is made ready before where the index names clauses as a rule."""
        return self.ready()._verifier.arrays()

    @property
    def network_rows(self) -> int:
        """The rows of its join network; 0 where it has none, or not yet."""
        return self._verifier.network_rows

    def _expression(self, test: int) -> Expression:
        """A residual predicate, as one of the subscriptions with it states it."""
        subscription, clause, place = self.clauses.place(test)
        form = self._last_forms.get(subscription)
        if form is None:
            form = normal_form(self.meant(subscription), most=self.context.compiler.world.settings.max_branches)
            if len(self._last_forms) >= _FORMS:
                self._last_forms.clear()
            self._last_forms[subscription] = form
        return form.clauses[clause].tests[place][1]

    @cached_property
    def _owner(self) -> Ids:
        """Place in the order of the index -> subscription."""
        order, owner = self.index.order, self.clauses.facts.owner
        return owner if order is None else owner[order]

    def _view(self, chunk: Chunk) -> View:
        """The chunk as this segment sees it. It stays with the chunk, as the bindings need it again."""
        state = chunk.states[self]
        if state.view is None:
            if chunk.part_of is not None:
                whole, first, last = chunk.part_of
                state.view = self._view(whole).part(chunk.batch, first, last)
            else:
                state.view = View(chunk.batch, self.clauses, self.context.compiler.world)
        return state.view

    def _prepared(self, chunk: Chunk) -> Prepared | None:
        """What the index prepared for the chunk that this one is a part of; None where it is no part, or of too large a
        chunk. It is computed for all parts at once, while its tables are in the processor's cache, and dropped with the
        last part."""
        if chunk.part_of is None or len(chunk.part_of.chunk.batch.subject) > _TOGETHER:
            return None
        whole, first, last = chunk.part_of
        state = whole.states[self]
        prepared = state.prepared or self.index.prepare(self._view(whole))
        state.prepared = prepared if last < len(whole) else None
        return prepared.part(first, last) if prepared is not None else None

    @cached_property
    def _asks_features(self) -> bool:
        return isinstance(self.index, AsksFeatures)  # which takes as long as a tenth of a small match

    def rows(self, chunk: Chunk, removed: Removed, stage: Clock, arena: Arena) -> SegmentRows:
        """The matches of a chunk, without those of removed subscriptions: those that the index accepts, and of the
        clauses that it leaves to check those that hold. Accepted subscriptions may lie in the arena. Leaves the clock
        in the stage "verify"."""
        stage.switch("select")
        view, prepared = self._view(chunk), self._prepared(chunk)
        if self._asks_features:  # they are looked up first
            _ = view.features
        selected = self.index.select(view, prepared, self.context.most_bindings, arena)
        if removed is not None:
            selected = selected.without(removed, self._owner)
        if self._narrowing is not None:
            from_source = self.context.compiler.world.operators[FROM_SOURCE]
            selected = self._narrowing.narrowed(selected, self._owner, chunk, from_source)
        stage.switch("verify")
        if not len(selected.check_place):
            looked_at = LookedAt(0, selected.atoms, selected.candidates, 0, 0, *selected.work)
            return SegmentRows(selected.offset, selected.subscription, _NO_COLUMNS, (), (), looked_at)
        verdict = self._verifier.verify(view, owners(selected.check_offset), selected.check_place, chunk)
        return self._joined(selected, verdict)

    def _joined(self, selected: Selected, verdict: Verified) -> SegmentRows:
        """What was accepted, with the matches among the clauses that were checked."""
        publication, subscription, truncated = verdict.publication, verdict.subscription, verdict.truncated
        several = self.clauses.has_alternatives  # of the clauses of an ASK query each may be a match
        checked = np.flatnonzero(several[subscription]) if self.clauses.have_alternatives else np.zeros(0, np.int64)
        if len(checked):
            taken = np.flatnonzero(several[selected.subscription])
            accepted = owners(selected.offset)[taken].astype(np.int64) << 32 | selected.subscription[taken]
            again = np.isin(publication[checked].astype(np.int64) << 32 | subscription[checked], accepted)
            fresh = np.delete(np.arange(len(publication)), checked[again])
            publication, subscription, truncated = publication[fresh], subscription[fresh], truncated[fresh]
        checked_places = len(selected.check_place)
        seen = LookedAt(0, selected.atoms, selected.candidates, checked_places, verdict.join_steps, *selected.work)
        columns = publication, subscription, truncated
        rows = SegmentRows(selected.offset, selected.subscription, columns, verdict.failures, verdict.waiting, seen)
        return _without_decided_failures(rows, self.clauses.table.selected) if verdict.failures else rows

    def details(self, chunk: Chunk, publication: Ids, subscription: Ids) -> Details:
        """The bindings of matches; equal ones are one object, or one text. A CONSTRUCT query whose text can no longer
        be compiled has no graph, and its match counts as truncated."""
        templates, cut = {}, []
        for pair in np.flatnonzero(self.construct[subscription]).tolist():
            try:
                templates[pair] = self.meant(int(subscription[pair])).construct or ()
            except TriplewireError:
                templates[pair] = ()
                cut.append(pair)
        view, selection, selections = self._view(chunk), self.selection[subscription], self._selected
        if not cut and len(subscription) <= _FEW:
            rows = self._verifier.few_rows(view, publication, subscription)
            if rows is not None:
                few = of_few(rows, [selections[place] for place in selection.tolist()], chunk.decoder.terms)
                return Details.of([(bindings, templates.get(place)) for place, bindings in enumerate(few)])
        bindings = self._verifier.bindings(view, publication, subscription, chunk)
        return Details(
            shared(bindings, selection, selections, chunk.decoder.terms),
            int(bindings.count.sum()) + sum(len(answer.bindings) for answer in bindings.answers.values()),
            templates,
            lambda: json_column(bindings, selection, selections, chunk.batch.terms, chunk.decoder.terms),
            np.union1d(bindings.cut, np.array(cut, np.int64)) if cut else bindings.cut,
            lambda: bindings.bytes_of_terms(selection, chunk.batch.terms),
        )

    @cached_property
    def _selected(self) -> tuple[tuple[str, ...], ...]:
        """`selections`, where an ASK query has no variables."""
        return tuple([selection or () for selection in self.selections])

    # --- making

    @classmethod
    def of(
        cls,
        context: SegmentContext,
        subscriptions: Sequence[CompiledSubscription],
        writer: TextWriter | None,
        *,
        is_part: bool = False,
    ) -> Segment:
        """A segment of these subscriptions. Their texts go to `writer`; without one, they stay as objects. With
        `is_part`, it is merged with another one, and until then its index narrows nothing."""
        builder = ClauseBuilder()
        selections: dict[Selection, int] = {}
        stated = [compiled.subscription for compiled in subscriptions]
        texts = [compiled.by_template for compiled in subscriptions]
        columns = builder.batch(TextForms.of(texts)) if len(texts) - texts.count(None) > _FEW_TEXTS else None
        number = 0
        while number < len(subscriptions):
            number = number if columns is None else builder.add_from(columns, number)
            if number < len(subscriptions):
                subscriptions[number].add_to(builder)
                number += 1
        numbers = [selections.setdefault(selection_of(subscription), len(selections)) for subscription in stated]
        clauses = builder.build()
        lines, pinned = texts_of(subscriptions, writer)
        return cls(
            context,
            clauses,
            (EVERYTHING if is_part else context.maker).build(clauses),
            IdTable.of([subscription.id for subscription in stated]),
            lines,
            tuple(selections),
            np.array(numbers, np.int32),
            np.array([subscription.construct is not None for subscription in stated], np.uint8),
            pinned,
            frozenset().union(*(compiled.operators for compiled in subscriptions)),
        )

    @classmethod
    def merged(cls, parts: Sequence[Segment], numbers: Sequence[NDArray[np.int64]]) -> Segment:
        """One segment of some subscriptions (ascending numbers) of several, which have different ids, in the order of
        the segments. The index of the first one grows, where it can and keeps all that it has."""
        selections: dict[Selection, int] = {}
        selection, pinned, start = [], {}, 0
        pairs = list(zip(parts, numbers, strict=True))
        for part, taken in pairs:
            places = [selections.setdefault(variables, len(selections)) for variables in part.selections]
            selection.append(np.array(places or [0], np.int32)[part.selection[taken]])
            for number, subscription in part.pinned.items():
                place = int(np.searchsorted(taken, number))
                if place < len(taken) and taken[place] == number:
                    pinned[start + place] = subscription
            start += len(taken)
        context, clauses = parts[0].context, merge([(part.clauses, taken) for part, taken in pairs])
        index, first = parts[0].index, len(numbers[0])
        if can_grow(index) and first == len(parts[0]):
            index = index.inserted(clauses, first)
        else:
            index = context.maker.build(clauses)
        return cls(
            context,
            clauses,
            index,
            IdTable.joined([part.ids for part in parts], numbers),
            Texts.joined([part.texts.take(taken) for part, taken in pairs]),
            tuple(selections),
            np.concatenate(selection),
            np.concatenate([part.construct[taken] for part, taken in pairs]),
            pinned,
            frozenset().union(*(part.operators for part in parts)),
            names_clauses=any(part.names_clauses or part.network_rows > 0 for part in parts),
        )

    def within(self, context: SegmentContext) -> Segment:
        """The same segment in a context that has another taxonomy. The clauses, the index and the join network do not
        depend on that; which class tests hold of names is found out again for those that the change touches."""
        before, after = self.context.compiler, context.compiler
        if before is after:
            return self
        if (classes := self.clauses.tests.classes) is not None:
            classes.change(before.world.taxonomy, after.world.taxonomy)
        pinned = {number: after.checked_again(subscription, before) for number, subscription in self.pinned.items()}
        network = self._verifier.arrays() or self.saved_network
        other = replace(self, context=context, pinned=pinned, saved_network=network)
        if "_revisions" in vars(self):
            vars(other)["_revisions"] = self._revisions
        return other

    def tidied(self) -> Segment:
        """The same segment for long use: its texts in few files, its ranks of ids computed, and it is `ready`."""
        segment = replace(self, texts=self.texts.tidied(LONG_TEXTS))
        _ = segment.ids.rank
        return segment.ready()

    def prepare(self, names: int, predicates: int) -> None:
        """Compute in advance which class tests hold of this many names of the taxonomy, and the expressions of this
        many residual predicates. Otherwise each is computed when a publication first needs it, in up to a
        millisecond."""
        if (classes := self.clauses.tests.classes) is not None:
            classes.index(self.context.compiler.world.taxonomy).prepare(names)
        self._verifier.prepare(predicates)

    def ready(self) -> Segment:
        """This segment, with its verifier ready if it will have something to do: the index says that it names clauses,
        or those of the segments that this one was merged of did."""
        if self.names_clauses or (isinstance(self.index, NamesClauses) and self.index.names_clauses):
            self._verifier.ready()
        return self


def texts_of(
    subscriptions: Sequence[CompiledSubscription], writer: TextWriter | None
) -> tuple[Texts, dict[int, Subscription]]:
    """The texts, appended to `writer`, and by number those subscriptions that are kept as objects: without a writer
    all."""
    rows = [compiled.row if writer is not None else b"" for compiled in subscriptions]
    pinned = {number: subscriptions[number].subscription for number, row in enumerate(rows) if not row}
    return Texts.of(writer or TextWriter(), rows), pinned


def selection_of(subscription: Subscription) -> Selection:
    """The selected variables, each once."""
    return None if subscription.ask else tuple(dict.fromkeys(subscription.select))
