"""Rows of subscription files into segments: those with a template are indexed without being parsed.

The rows and their templates: `triplewire.languages.sources.files`. What is told of a subscription (warnings, refusals)
is what `Engine.subscribe` would tell.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.builder import ClauseBuilder
from triplewire.clauses.node_tests.columns import Strings
from triplewire.engine.chunk import LARGE, Chunk
from triplewire.engine.compiler import Compiler, call_warnings, id_is_taken
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.segments.advice import TemplateAdvice
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.segment import Segment, SegmentContext, Selection, selection_of
from triplewire.engine.segments.selections import Selections
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.engine.segments.texts import SEED, IdTable, TextWriter
from triplewire.engine.segments.texts import Texts as KeptTexts
from triplewire.engine.stats import Clock
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import Call, Variable
from triplewire.ir.normal_form import Clause, NormalForm, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.languages.sources.files import ParsedRow, RowBatch
from triplewire.languages.sources.row_columns import RowColumns
from triplewire.languages.sources.rows import Row
from triplewire.languages.templates import Templates, TextForms
from triplewire.languages.templates.splitting import Texts
from triplewire.languages.templates.template import Template
from triplewire.model.operator import Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

LEAST = 1_000  # subscriptions of a segment that is worth a rehearsal
_SOME = 4  # of its subscriptions, of which publications are made
_NAMES = 1 << 15  # of the taxonomy, of which it is found out which class tests hold of them
_PREDICATES = 1_000  # residual ones, whose subscriptions are compiled
_NODE = "urn:triplewire:rehearsal:"
_MANY = (1 << 10) + 1  # publications, and distinct terms, of a batch that kernels for few do not take
Refuse = Callable[[Refusal], None]
Tell = Callable[[str, str], None]
_MOST_KNOWN = 1 << 16  # calls that are remembered


class SegmentRegistrar:
    """Registers rows in segments of their own. `size`: bytes of the files, about; `ids`: of the rows that are wanted,
    None for all."""

    def __init__(
        self,
        compiler: Compiler,
        current: CurrentSnapshot,
        size: int,
        refuse: Refuse,
        warn: Tell | None,
        ids: frozenset[str] | None = None,
    ) -> None:
        self._compiler, self._current, self._size, self._ids = compiler, current, size, ids
        self._refuse, self._warn = refuse, warn
        meant = None if compiler.entailment == "none" else compiler.meant
        self._templates = Templates(compiler.world.settings, compiler.world.operators, meant)
        self._loader = self._new_loader()
        self._added = 0  # since it was told how many

    def _new_loader(self) -> Loader:
        return Loader(self.context, self._compiler, self._size, self._refuse, self._warn)

    def add(self, batch: RowBatch) -> int:
        """Register the rows of a batch, but for those that are not wanted. Returns how many were registered since the
        last call."""
        rows = batch.rows if isinstance(batch.rows, RowColumns) else RowColumns.of(batch.rows)
        ids = rows.ids.decoded() if len(self._snapshot) or self._ids is not None else ()
        taken = self._snapshot.registered(ids) if len(self._snapshot) and ids else frozenset()
        parse = partial(self._parsed, batch, taken)
        forms = self._templates.find_all(rows.queries)
        forms = forms.without(
            forms.naming(rows.ids, batch.rules) if batch.by_template else np.ones(len(rows), np.bool_)
        )
        is_left_out = np.zeros(len(rows), np.bool_)
        if taken or self._ids is not None:  # they may be good, but their ids are taken, or they are not wanted
            wanted = self._ids
            is_left_out[:] = [id in taken or (wanted is not None and id not in wanted) for id in ids]
        waiting = LoadBatch(rows, dict(rows.refusals), forms, parse, is_left_out)
        while waiting.begin <= len(rows):
            before = len(self._loader)
            self._loader.add(waiting)
            self._added += len(self._loader) - before
            if len(self._loader) >= LARGE or self._loader.is_full:
                self.end_segment()
        added, self._added = self._added, 0
        return added

    def _parsed(self, batch: RowBatch, taken: Collection[str], row: Row, is_good: bool) -> ParsedRow | None:
        """A row, parsed in full unless it `is_good`; None where it is not wanted. Raises `TriplewireError` where it is
        refused, or its id is taken."""
        parsed = None if is_good else batch.parse(row)
        if self._ids is not None and row.id not in self._ids:
            return None
        if row.id in taken:
            raise id_is_taken(row.id)
        return parsed

    def finish(self) -> int:
        """Register the remaining rows. Returns how many were registered since the last call; less than 0 where ids of
        rows that were counted were taken meanwhile."""
        self._templates.let_go()  # before the arrays of the segment are made
        self.end_segment()
        return self._added

    def end_segment(self) -> None:
        """Install the segment of the rows so far, and begin another."""
        if len(self._loader):
            self._install(self._loader.segment().ready())
            self._loader = self._new_loader()

    def take_over(self, segments: Iterable[Segment], told: Iterable[Refusal | tuple[str, str]]) -> None:
        """Register segments that were made elsewhere, and tell what is to be told of their rows."""
        for segment in segments:
            self._added += len(segment)
            self._install(segment)
        for message in told:
            if isinstance(message, Refusal):
                self._refuse(message)
            elif self._warn is not None:
                self._warn(*message)

    @property
    def context(self) -> SegmentContext:
        """What its segments have in common."""
        return self._snapshot.context

    @property
    def _snapshot(self) -> SegmentSnapshot:
        snapshot = self._current.snapshot
        assert isinstance(snapshot, SegmentSnapshot)
        return snapshot

    def _install(self, segment: Segment) -> None:
        """Put a segment into the current snapshot."""
        if len(segment) >= LEAST:
            rehearse(segment)
        with self._current.lock:
            self._current.snapshot, taken = self._snapshot.with_segment(segment)
        self._added -= len(taken)
        for id_ in taken:  # since their rows were read
            self._refuse(Refusal.of("subscription", id_, id_is_taken(id_)))


@dataclass
class LoadBatch:
    """Rows to be registered. `refusals`: those that come before a row, by its number. `parse` parses a row in full, or
    says of one that `is_left_out` whether it is refused. `begin`: how many rows are done; one more at the end."""

    rows: RowColumns
    refusals: dict[int, list[Refusal]]
    forms: TextForms
    parse: Callable[[Row, bool], ParsedRow | None]
    is_left_out: NDArray[np.bool_]
    begin: int = 0


class Loader:
    """Collects the rows of one segment. For one thread. `size`: bytes of the files, about."""

    def __init__(
        self, context: SegmentContext, compiler: Compiler, size: int, refuse: Refuse, warn: Tell | None
    ) -> None:
        self._context, self._compiler, self._refuse, self._warn = context, compiler, refuse, warn
        self._builder = ClauseBuilder()
        self._writer = TextWriter(size)
        self._starts, self._lengths = array("q"), array("i")
        self._ids, self._id_ends = bytearray(), array("q", [0])
        self._selections = Selections()
        self._selection = array("i")
        self._construct = bytearray()
        self._pinned: dict[int, Subscription] = {}
        self._operators: set[tuple[str, int]] = set()
        world = compiler.world
        self._advice = TemplateAdvice(compiler)
        self._is_silent = lru_cache(_MOST_KNOWN)(partial(_is_silent, operators=world.operators))

    def __len__(self) -> int:
        return len(self._construct)

    @property
    def is_full(self) -> bool:
        """Is there no room for a subscription?"""
        return self._builder.is_full

    def add(self, batch: LoadBatch) -> None:
        """The next rows of the batch, as long as there is room; those that are refused are left out."""
        rows, tell = batch.rows, self._warn
        has_form = batch.forms.has_form & batch.is_left_out
        asked, forms = self._asked(batch.forms)
        has_form &= forms.has_form
        forms = forms.without(batch.is_left_out)
        columns = self._builder.batch(forms)
        tells = np.zeros(len(rows), np.bool_) if tell is None else self._advice.tells(forms)
        length = np.full(len(rows), -1, np.int64)  # of the line that is kept, -1 for none
        while batch.begin <= len(rows) and not self.is_full:
            begin = batch.begin
            end = self._builder.add_from(columns, begin, (lambda row: asked.get(row, ())) if asked else None)
            length[begin:end] = rows.lines.lengths[begin:end]
            if end > begin:
                self._selection.frombytes(self._selections.of(forms, begin, *columns.names()).tobytes())
                self._construct += bytes(end - begin)
            for row in (np.flatnonzero(tells[begin:end]) + begin).tolist() if tell is not None else ():
                for warning in self._advice.warnings(*forms.form(row)):
                    tell(rows[row].id, warning)  # type: ignore[misc]  # it is not None
            for refusal in chain.from_iterable(batch.refusals.pop(n, ()) for n in sorted(batch.refusals) if n <= end):
                self._refuse(refusal)
            batch.begin = end
            if end < len(rows) and self.is_full:
                break
            if end < len(rows):
                try:
                    length[end] = self._parsed(batch, end, bool(has_form[end]), asked.get(end))
                except TriplewireError as error:
                    self._refuse(rows[end].refusal(error))
            batch.begin = end + 1
        self._keep(rows, length)

    def _keep(self, rows: RowColumns, length: NDArray[np.int64]) -> None:
        """Keep the ids and lines of rows that were added."""
        added = np.flatnonzero(length >= 0)
        ids, lines = rows.ids.take(added), rows.lines.take(added)
        self._id_ends.frombytes((len(self._ids) + np.cumsum(ids.lengths)).tobytes())
        self._ids += ids.joined()
        lines = Texts(lines.text, lines.start, lines.start + length[added])
        starts, lengths = self._writer.append_joined(lines.joined(), length[added].astype(np.int32))
        self._starts.frombytes(starts.tobytes())
        self._lengths.frombytes(lengths.tobytes())

    def _parsed(self, batch: LoadBatch, number: int, is_good: bool, calls: tuple[CallKey, ...] | None) -> int:
        """Add a row that is not added by template. Returns the length of the line that is kept of it, -1 where it is
        not added."""
        row = batch.rows[number]
        length = int(batch.rows.lines.lengths[number])
        calls = calls if number in batch.forms.calls else None
        parsed = batch.parse(row, is_good or calls is not None)
        if calls is not None and not batch.is_left_out[number]:
            form = NormalForm((), exact=False, calls=True, asked=tuple(dict.fromkeys(calls)))
            self._builder.add(form, (), False)
            self._end((), False)
            return length
        if parsed is None:
            return -1
        self._add_compiled(parsed.subscription, parsed.is_plain)
        return length if parsed.is_plain else 0

    def _add_compiled(self, subscription: Subscription, plain: bool) -> None:
        if self._warn is None and plain:  # then it is made anew from its text, with its warnings, when it is asked for
            self._compiler.check_calls(subscription)
        else:
            subscription = self._compiler.checked(subscription)
        if self._warn is not None:
            for warning in subscription.warnings:
                self._warn(subscription.id, warning)
        form = normal_form(self._compiler.meant(subscription), most=self._compiler.world.settings.max_branches)
        self._builder.add(form, subscription.select, subscription.ask)
        self._operators.update((call.operator, len(call.arguments)) for call in calls_in(subscription.where))
        if not plain:
            self._pinned[len(self)] = subscription
        self._end(selection_of(subscription), subscription.construct is not None)

    def _end(self, select: Selection, construct: bool) -> None:
        self._selection.append(self._selections.number(select))
        self._construct.append(construct)

    def _asked(self, forms: TextForms) -> tuple[dict[int, tuple[CallKey, ...]], TextForms]:
        """The calls that must hold, of texts that have some; and the forms, but for those with other calls, or with one
        of which an operator warns or which it refuses."""
        asked = dict(forms.calls)
        alone = np.flatnonzero(forms.has_form & ~forms.is_joined)
        used, which = np.unique(forms.template[forms.first[alone]], return_inverse=True)
        is_calling = np.array([self._advice.of(forms.templates[number]).calls for number in used.tolist()], np.bool_)
        others: list[int] = []
        for row in alone[is_calling[which]].tolist():
            template, parameters = forms.form(row)
            if isinstance(template, Template) and template.example_form.asked:
                asked[row] = template.asked(parameters)
            else:
                others.append(row)
        good = {row: calls for row, calls in asked.items() if all(map(self._is_silent, calls))}
        others += asked.keys() - good.keys()
        for calls in good.values():
            self._operators.update([(call.operator, len(call.arguments)) for call in calls])
        is_other = np.zeros(len(forms.first), np.bool_)
        is_other[others] = True
        return good, forms.without(is_other)

    def segment(self) -> Segment:
        """The segment of all rows. The loader cannot be used afterwards: it drops its small objects before the arrays
        of the segment are made, so that their memory can be given back (decision 025)."""
        selections = json.dumps(self._selections.stated)
        del self._selections, self._advice
        self._is_silent.cache_clear()
        clauses, starts = self._builder.build(), np.array(self._starts, np.int64)
        return Segment(
            self._context,
            clauses,
            self._context.maker.build(clauses),
            IdTable(Strings(np.frombuffer(self._ids, np.uint8).copy(), np.array(self._id_ends, np.int64)).names(SEED)),
            KeptTexts((self._writer,), np.zeros(len(starts), np.uint8), starts, np.array(self._lengths, np.int32)),
            tuple([None if names is None else tuple(names) for names in json.loads(selections)]),
            np.array(self._selection, np.int32),
            np.array(self._construct, np.uint8),
            self._pinned,
            frozenset(self._operators),
        )


def _is_silent(call: CallKey, operators: Mapping[str, Operator]) -> bool:
    """Does its operator neither warn of the constants of a call nor refuse them?"""
    try:
        stated = Call(call.operator, call.arguments)  # type: ignore[arg-type]  # constants, no outputs
        return not call_warnings(stated, "", operators)
    except SubscriptionError:
        return False


def rehearse(segment: Segment) -> None:
    """Match publications that are instances of some clauses of a new segment, before the first real one comes: alone,
    and in a large batch, as other kernels take that. No operator is called."""
    most = segment.context.compiler.world.settings.max_branches
    numbers = range(0, len(segment), max(len(segment) // _SOME, 1))
    clauses = (clause for n in numbers for clause in normal_form(segment.meant(n), most=most).clauses[:1])
    publications = [publication for clause in clauses if (publication := instance_of(clause)).triples]
    segment.prepare(_NAMES, _PREDICATES)
    if publications:
        # triples that no subscription asks for, with nodes of their own
        unasked = (Triple(IRI(_NODE), IRI(_NODE), Literal(f"{_NODE}{number}")) for number in range(_MANY))
        others = [Publication(_NODE, (triple,)) for triple in unasked]
        for chunk in (publications[:1], [*publications, *others]):
            segment.rows(Chunk(chunk), None, Clock(), Arena())


def instance_of(clause: Clause) -> Publication:
    """A publication in which the patterns of a clause have a solution: each variable is a node of its own. The tests
    need not hold."""
    triples = []
    for pattern in clause.patterns:
        subject, predicate, object_ = (IRI(_NODE + str(t.name)) if isinstance(t, Variable) else t for t in pattern)
        if isinstance(subject, IRI) and isinstance(predicate, IRI):
            triples.append(Triple(subject, predicate, object_))
    return Publication(_NODE, tuple(triples))
