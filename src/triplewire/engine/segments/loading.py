"""Rows of subscription files into segments: those with a template are indexed without being parsed.

The rows and their templates: `triplewire.languages.sources.files`. What is told of a subscription (warnings, refusals)
is what `Engine.subscribe` would tell.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from triplewire.clauses.builder import ClauseBuilder
from triplewire.clauses.node_tests.columns import Strings, to_bytes
from triplewire.engine.chunk import Chunk
from triplewire.engine.compiler import Compiler, call_warnings, class_warning, id_is_taken, line_of
from triplewire.engine.current_snapshot import CurrentSnapshot
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.segment import Segment, SegmentContext, Selection, selection_of
from triplewire.engine.segments.snapshot import LARGE, SegmentSnapshot
from triplewire.engine.segments.texts import SEED, IdTable, Texts, TextWriter
from triplewire.engine.stats import Clock
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.ir.advice.conditions import contradictions
from triplewire.ir.advice.places import may_be_misplaced, misplaced, placed_conditions
from triplewire.ir.advice.questions import (
    CONDITIONS,
    Questions,
    conditions_of,
    questions_of,
    schema_of,
    schema_warning,
    term_warning,
)
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import Call, Expression, In, InstanceOf, Variable
from triplewire.ir.normal_form import Clause, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in, walk
from triplewire.languages.sources.files import ParsedRow
from triplewire.languages.sources.rows import Row
from triplewire.languages.sources.tables import pointer_to
from triplewire.languages.templates import AnyTemplate
from triplewire.languages.templates.conjunctions import CallList
from triplewire.languages.templates.template import Parameters, Template, content, replaced
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
_MOST_KNOWN = 1 << 16  # entries of each cache (of templates, classes, calls)


class SegmentRegistrar:
    """Registers rows in segments of their own. `size`: bytes of the files, about."""

    def __init__(
        self, compiler: Compiler, current: CurrentSnapshot, size: int, refuse: Refuse, warn: Tell | None
    ) -> None:
        self._compiler, self._current, self._size = compiler, current, size
        self._refuse, self._warn = refuse, warn
        self._loader = Loader(self._snapshot.context, compiler, size)

    def add(self, rows: list[ParsedRow]) -> int:
        """Take rows out of the list. Returns how many were registered."""
        added = 0
        self._refuse_taken(rows)
        while rows:
            before = len(self._loader)
            taken = self._loader.add(rows, self._refuse, self._warn)
            del rows[:taken]  # before the next ones are made, or the segment
            added += len(self._loader) - before
            if len(self._loader) >= LARGE or self._loader.is_full:
                added -= self._install()
                self._loader = Loader(self._snapshot.context, self._compiler, self._size)
        return added

    def _refuse_taken(self, rows: list[ParsedRow]) -> None:
        """Refuse the rows whose ids are taken, before anything is said of them, and take them out of the list."""
        if not rows or not len(self._snapshot):
            return
        taken = self._snapshot.registered([parsed.row.id for parsed in rows])
        for parsed in rows:
            if parsed.row.id in taken:
                self._refuse(parsed.row.refusal(id_is_taken(parsed.row.id)))
        rows[:] = [parsed for parsed in rows if parsed.row.id not in taken]

    def finish(self) -> int:
        """Register the remaining rows. Returns 0, or minus the number of counted rows whose ids were taken
        meanwhile."""
        return -self._install() if len(self._loader) else 0

    @property
    def _snapshot(self) -> SegmentSnapshot:
        snapshot = self._current.snapshot
        assert isinstance(snapshot, SegmentSnapshot)
        return snapshot

    def _install(self) -> int:
        """Put the segment into the current snapshot. Returns how many of its subscriptions have ids that are taken."""
        segment = self._loader.segment().ready()
        if len(segment) >= LEAST:
            rehearse(segment)
        with self._current.lock:
            self._current.snapshot, taken = self._snapshot.with_segment(segment)
        for id_ in taken:  # since their rows were read
            self._refuse(Refusal.of("subscription", id_, id_is_taken(id_)))
        return len(taken)


class Loader:
    """Collects the rows of one segment. For one thread. `size`: bytes of the files, about."""

    def __init__(self, context: SegmentContext, compiler: Compiler, size: int) -> None:
        self._context = context
        self._compiler = compiler
        self._most = compiler.world.settings.max_branches
        self._builder = ClauseBuilder()
        self._writer = TextWriter(size)
        self._starts, self._lengths = array("q"), array("i")
        self._ids, self._id_ends = bytearray(), array("q", [0])
        self._selections: dict[Selection, int] = {}
        self._selection = array("i")
        self._construct = bytearray()
        self._pinned: dict[int, Subscription] = {}
        self._operators: set[tuple[str, int]] = set()
        world = compiler.world
        self._facts = lru_cache(_MOST_KNOWN)(_TemplateFacts)
        self._class_warning = lru_cache(_MOST_KNOWN)(partial(class_warning, taxonomy=world.taxonomy))
        self._is_silent = lru_cache(_MOST_KNOWN)(partial(_is_silent, operators=world.operators))

    def __len__(self) -> int:
        return len(self._construct)

    @property
    def is_full(self) -> bool:
        """Is there no room for a subscription?"""
        return self._builder.is_full

    def add(self, rows: Sequence[ParsedRow], refuse: Refuse, warn: Tell | None) -> int:
        """The next rows, as long as there is room; those that are refused are left out. Returns how many are done."""
        texts: list[bytes] = []
        done = 0
        for parsed in rows:
            if self.is_full:
                break
            done += 1
            try:
                texts.append(self._add(parsed, warn))
            except TriplewireError as error:
                refuse(parsed.row.refusal(error))
        starts, lengths = self._writer.append(texts)
        self._starts.frombytes(starts.tobytes())
        self._lengths.frombytes(lengths.tobytes())
        return done

    def _add(self, parsed: ParsedRow, warn: Tell | None) -> bytes:
        row, template, parameters, subscription, is_plain = parsed
        calls = () if template is None else self._asked(template, parameters)
        if template is not None and calls is None:
            subscription = template.subscription(parameters, row.id, row.query, row.prefixes, row.base)
        if subscription is not None:
            return self._add_compiled(row, subscription, is_plain, warn)
        assert template is not None
        assert calls is not None
        self._operators.update([(call.operator, len(call.arguments)) for call in calls])
        if warn is not None:
            for warning in self._warnings(template, parameters):
                warn(row.id, warning)
        self._builder.add_from_template(template, parameters, calls)
        self._end(row.id, self._select(template, parameters), False)
        return _line(row)

    def _add_compiled(self, row: Row, subscription: Subscription, plain: bool, warn: Tell | None) -> bytes:
        if warn is None and plain:  # then it is made anew from its text, with its warnings, when somebody asks for it
            self._compiler.check_calls(subscription)
        else:
            subscription = self._compiler.checked(subscription)
        if warn is not None:
            for warning in subscription.warnings:
                warn(subscription.id, warning)
        form = normal_form(self._compiler.meant(subscription), most=self._most)
        self._builder.add(form, subscription.select, subscription.ask)
        self._operators.update((call.operator, len(call.arguments)) for call in calls_in(subscription.where))
        if not plain:
            self._pinned[len(self)] = subscription
        self._end(subscription.id, selection_of(subscription), subscription.construct is not None)
        return _line(row) if plain else b""

    def _end(self, id: str, select: Selection, construct: bool) -> None:
        self._ids += to_bytes(id)
        self._id_ends.append(len(self._ids))
        self._selection.append(self._selections.setdefault(select, len(self._selections)))
        self._construct.append(construct)

    def _asked(self, template: AnyTemplate, parameters: Parameters) -> tuple[CallKey, ...] | None:
        """The calls that must hold; None where the text has other calls, or an operator warns of one or refuses it."""
        if isinstance(template, CallList):
            calls = template.calls
        else:
            facts = [self._facts(part) for part, _ in template.parts(parameters)]
            if not any(of.calls for of in facts):
                return ()
            if not isinstance(template, Template) or not template.example_form.asked:
                return None
            calls = template.asked(parameters)
        return calls if all(map(self._is_silent, calls)) else None

    def _select(self, template: AnyTemplate, parameters: Parameters) -> Selection:
        if isinstance(template, Template) and (facts := self._facts(template)).is_one_selection:
            return facts.selection
        return tuple(dict.fromkeys(template.selected(parameters)))

    def _warnings(self, template: AnyTemplate, parameters: Parameters) -> dict[str, None]:
        """The warnings that `Compiler.checked` gives the subscription of this text."""
        warnings = dict.fromkeys(template.warnings)
        schemas: set[int] = set()
        together: list[Expression] = []  # conditions of all parts of a conjunction
        parts, asks_places = list(template.parts(parameters)), False
        for part, values in parts:
            facts = self._facts(part)
            schemas |= facts.schemas
            warnings |= facts.fixed
            for number in facts.iris:
                iri = content(values[number])
                schemas.add(schema_of(iri))
                if warning := term_warning(iri):
                    warnings[warning] = None
            if facts.classes or facts.asks or facts.conditions:
                replacement = part.replacement(values)
                for cls in facts.classes:
                    if warning := self._class_warning(replaced(cls, replacement)):
                        warnings[warning] = None
                if facts.asks:
                    warnings |= dict.fromkeys(replaced(facts.asked, replacement).of_conditions())
                if len(parts) > 1:
                    together += replaced(facts.conditions, replacement)
            asks_places |= facts.asks_places
        if asks_places and len(parts) > 1:
            warnings |= dict.fromkeys(filter(None, map(misplaced, placed_conditions(template.where(parameters)))))
        warnings |= dict.fromkeys(contradictions(together))
        if warning := schema_warning(schemas):
            warnings[warning] = None
        return warnings

    def segment(self) -> Segment:
        """The segment of all rows. The loader cannot be used afterwards: it drops its small objects before the arrays
        of the segment are made, so that their memory can be given back (decision 025)."""
        selections = json.dumps(list(self._selections))
        self._selections.clear()
        for cached in (self._facts, self._class_warning, self._is_silent):
            cached.cache_clear()
        clauses, starts = self._builder.build(), np.array(self._starts, np.int64)
        return Segment(
            self._context,
            clauses,
            self._context.maker.build(clauses),
            IdTable(Strings(np.array(self._ids, np.uint8), np.array(self._id_ends, np.int64)).names(SEED)),
            Texts((self._writer,), np.zeros(len(starts), np.uint8), starts, np.array(self._lengths, np.int32)),
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


def _line(row: Row) -> bytes:
    """What a segment keeps of a row: all of it, or where its text stays."""
    if row.table:
        return line_of(pointer_to(row))
    prefixes = dict(sorted(row.prefixes.items())) if row.prefixes else {}
    stated = {"id": row.id, "language": row.language, "query": row.query, "prefixes": prefixes, "base": row.base}
    return line_of(stated)


class _TemplateFacts:
    """What a template calls, asks and selects, looked up once."""

    def __init__(self, template: Template) -> None:
        nodes = list(walk(template.stated))
        questions = questions_of(template.stated, nodes)
        varying = {content(template.placeholders[number].example): number for number in template.varying}
        fixed = [iri for iri in questions.iris if iri.value not in varying]
        self.iris = [varying[iri.value] for iri in questions.iris if iri.value in varying]
        self.schemas = {schema_of(iri.value) for iri in fixed}
        self.fixed = dict.fromkeys(filter(None, (term_warning(iri.value) for iri in fixed)))
        self.fixed |= dict.fromkeys(Questions(questions.unbound, (), (), (), questions.empty).warnings())
        placed = tuple([condition for condition in questions.placed if may_be_misplaced(condition, varying)])
        self.asked = replace(questions, unbound=(), iris=(), empty=(), placed=placed)
        self.asks = bool(questions.comparisons or questions.scopes or placed or questions.texts_for_classes)
        self.asks_places = any(type(node) in CONDITIONS or isinstance(node, In) for node in nodes)
        self.conditions = conditions_of(template.stated)
        self.calls = any(isinstance(node, Call) for node in nodes)
        self.classes = [node.cls for node in nodes if isinstance(node, InstanceOf)]
        self.is_one_selection = template.ask or not template.has_variables
        self.selection: Selection = None if template.ask else tuple(dict.fromkeys(template.select))


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
