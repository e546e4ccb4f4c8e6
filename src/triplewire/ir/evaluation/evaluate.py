"""The reference meaning: one subscription, one publication, by the SPARQL algebra and Kleene's logic.

Read it from `evaluate` down. `decide` is the meaning, given the operator calls whose results are known: it has an
answer, or says which calls its answer still depends on. The algebra of groups is in `triplewire.ir.evaluation.groups`,
triple patterns in `triplewire.ir.evaluation.patterns`, conditions in `triplewire.ir.evaluation.expressions`, operator
calls in `triplewire.ir.evaluation.calls`, what is unknown in `triplewire.ir.evaluation.unknown`. What a query says
before any publication is seen is in `triplewire.ir.evaluation.plan`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import TypeAlias

from triplewire.errors import LimitError, OperatorError
from triplewire.ir.evaluation.calls import LOOKED_AT, ask, extensions
from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.groups import Scope, exists, solutions
from triplewire.ir.evaluation.plan import Plan, plan_of, variants
from triplewire.ir.evaluation.state import CallResults, Evaluation, Result, Row, Solution, World
from triplewire.ir.evaluation.unknown import (
    DOUBT,
    CallKey,
    Calls,
    Choice,
    Path,
    covers,
    doubts_of,
    path_of,
    union,
    unknown,
)
from triplewire.ir.nodes import Call, Expression, Variable
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Binding, SharedBinding, row_key, term_key
from triplewire.model.publication import Publication
from triplewire.model.terms import Term

__all__ = ["Answer", "CallKey", "CallResults", "Open", "Result", "World", "decide", "evaluate", "satisfies"]

_WASTE = 16  # one call more is made at once for each so many that a pair has had; see `Open.at_once`

_Row: TypeAlias = tuple[Term | None, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one publication is to one subscription.

    `bindings` are the distinct assignments of the selected variables, at most `most_bindings`, in the order of
    `triplewire.model.match.row_key`; those kept do not depend on the order of the publication's triples. None: no
    match. An ASK query has one empty binding. `failures` are the failed operator calls that the answer depends on:
    without bindings the pair is undecided; with some it matches, and there may be more. `truncated` says that there
    are, or may be, more bindings. `steps` is what it took, with the calls known.
    """

    bindings: tuple[Binding, ...]
    truncated: bool = False
    failures: tuple[OperatorError, ...] = ()
    steps: int = field(default=0, compare=False)

    @property
    def undecided(self) -> bool:
        """Does it depend on failed calls whether there is a match?"""
        return bool(self.failures) and not self.bindings


@dataclass(frozen=True, slots=True)
class Open:
    """The answer depends on calls that have not been made: these, each once, those first that more depends on first."""

    calls: Calls
    whole: bool = False  # nothing can be said before all of them are made

    def at_once(self, made: int) -> int:
        """How many of the calls to make before the pair is looked at again, where it has had so many already.

        One, so that no call is made in vain; but a pair with thousands of calls is not looked at thousands of times.
        """
        return len(self.calls) if self.whole else 1 + made // _WASTE


_MISS = Answer(())


def evaluate(
    subscription: Subscription,
    publication: Publication,
    world: World,
    results: CallResults | None = None,
    *,
    listing: bool = False,
) -> Answer:
    """Does the publication match, and how? Makes the operator calls that the answer depends on.

    `results` are the calls of this publication that have been made; those made now are added. Raises `LimitError` past
    `max_steps`. `listing`: that it matches is known, and its bindings are asked for: past `max_steps`, with the triples
    as stated and in order, those found so far are the answer, truncated, and the error is raised only where none is
    found.
    """
    known: CallResults = {} if results is None else results
    made = 0
    while True:
        outcome = decide(subscription, publication, world, known, listing=listing)
        if isinstance(outcome, Answer):
            return outcome
        for key in outcome.calls[: outcome.at_once(made)]:
            known[key] = ask(key, publication, world)
            made += 1


def decide(
    subscription: Subscription,
    publication: Publication,
    world: World,
    results: Mapping[CallKey, Result],
    *,
    listing: bool = False,
) -> Answer | Open:
    """The answer, or the open calls that it depends on, given the calls that have been made. Raises `LimitError`;
    `listing` as in `evaluate`."""
    try:
        plan = plan_of(subscription)
        graph = publication.graph
        for subject, predicate, object_ in plan.required:
            if not graph.candidates(subject, predicate, object_):
                return _MISS
        state = Evaluation(publication, world, plan.outputs, partial(exists, plan), results)
        try:
            return _decided(plan, () if subscription.ask else subscription.select, state, listing)
        except LimitError:
            if state.open:  # with their results there may be less to look at
                return Open(tuple(state.open), whole=True)
            if (outcome := _of_branches(plan, () if subscription.ask else subscription.select, state)) is None:
                raise
            return outcome
    except RecursionError:  # only where max_query_depth was raised past what Python can hold
        raise LimitError(
            "the query is nested too deep to be evaluated", source=subscription.id, remedy="lower max_query_depth"
        ) from None


def satisfies(
    key: CallKey,
    result: bool | tuple[Row, ...],
    call: Call,
    conditions: Sequence[Expression],
    publication: Publication,
    world: World,
) -> bool:
    """Has the result of a call a row under which conditions hold? They read no variables but those of the call. True
    where it takes more than `max_steps` to say."""
    pairs = [(a.name, value) for a, value in zip(call.arguments, key.arguments, strict=True) if isinstance(a, Variable)]
    given: Solution = {name: value for name, value in pairs if value is not None}
    outputs = frozenset(name for name, _ in pairs) - given.keys()
    state = Evaluation(publication, world, outputs, lambda where, solution, state: False, {key: result})
    try:
        return any(
            all(holds(condition, row, state) for condition in conditions) for row in extensions(call, given, state)
        )
    except LimitError:
        return True


def _decided(plan: Plan, names: tuple[str, ...], state: Evaluation, listing: bool) -> Answer | Open:
    """The answer, or the open calls."""
    rows, limit = _Rows(), None
    try:
        _collect(rows, plan, names, state)
    except LimitError as error:
        if not listing:
            raise
        limit = error
    if rows.more or limit is not None:
        rows = _first_in_order(plan, names, state, rows, limit)
    rows.take_certain(state.world.settings.most_bindings)
    waiting = [calls for row, calls in rows.waiting if row is None or row not in rows.certain]
    if waiting:
        in_turn = chain.from_iterable(zip_longest(*waiting))
        return Open(tuple(dict.fromkeys(call for call in in_turn if call is not None)))
    doubts = [calls for (row, vague), calls in rows.doubtful.items() if vague or row not in rows.certain]
    doubts += rows.partial.values()
    if not rows.certain and not rows.partial:
        rows.partial |= dict.fromkeys(rows.surely(), ())
    selected = [*rows.certain, *(row for row in rows.partial if row not in rows.certain)]
    bindings = _in_order(names, selected[: state.world.settings.most_bindings])
    failures = [state.results[call] for call in dict.fromkeys(chain.from_iterable(doubts))]
    errors = tuple(failure for failure in failures if isinstance(failure, OperatorError))
    steps = state.world.settings.max_steps - state.steps_left
    return Answer(bindings, bool(bindings) and (rows.more or bool(doubts)), errors, steps)


def _of_branches(plan: Plan, names: tuple[str, ...], state: Evaluation) -> Answer | Open | None:
    """The answer where the whole passes `max_steps`, and a branch of a union holds: the match is certain, whatever the
    other branches are. Or the open calls on which the branches depend. Each of n branches has one n-th of the steps.
    None where no branch holds that ended."""
    branches, together = variants(plan), _Rows()
    settings = state.world.settings
    for branch in branches if len(branches) > 1 else ():
        rows, share = _Rows(), settings.max_steps // len(branches)
        of_branch = Evaluation(state.publication, state.world, plan.outputs, state.exists, state.results, share)
        with suppress(LimitError):
            _collect(rows, branch, names, of_branch)
            together.certain |= rows.certain
            together.waiting += rows.waiting
    if together.waiting:
        return Open(tuple(dict.fromkeys(call for _, calls in together.waiting for call in calls)))
    if not together.certain:
        return None
    bindings = _in_order(names, together.certain)[: settings.most_bindings]
    return Answer(bindings, truncated=bool(names), steps=settings.max_steps)


def _in_order(names: tuple[str, ...], rows: Iterable[_Row]) -> tuple[Binding, ...]:
    return tuple(
        SharedBinding([(name, term) for name, term in zip(names, row, strict=True) if term is not None])
        for row in sorted(rows, key=row_key)
    )


@dataclass(slots=True)
class _Rows:
    """What the solutions of a subscription select, as far as is kept: distinct rows, the first ones."""

    certain: dict[_Row, None] = field(default_factory=dict)
    more: bool = False  # there are more of these
    waiting: list[tuple[_Row | None, Calls]] = field(default_factory=list)
    """Rows that depend on open calls, with these. None is a row with unknown values."""
    partial: dict[_Row, Calls] = field(default_factory=dict)
    """Rows that exist for certain, without the values that depend on failed calls."""
    doubtful: dict[tuple[_Row, bool], Calls] = field(default_factory=dict)
    """Rows of which it depends on failed calls whether they exist; True where values do as well."""
    paths: list[tuple[_Row, bool, Path]] = field(default_factory=list)
    """Rows that are alternatives of choices; True where they have unknown values."""

    def take_certain(self, most: int) -> None:
        """Take those rows as certain that are all alternatives of a choice."""
        same: dict[_Row, list[Path]] = {}
        for row, vague, path in self.paths:
            if not vague and row not in self.certain:
                same.setdefault(row, []).append(path)
        for row, paths in same.items():
            if not self.more and covers(paths):
                if len(self.certain) == most:
                    self.more = True
                else:
                    self.certain[row] = None

    def surely(self) -> Iterator[_Row]:
        """For each choice that is left, what all its alternatives have in common."""
        choices: dict[Choice, list[tuple[_Row, Path]]] = {}
        for row, _, path in self.paths:
            choices.setdefault(path[0][0], []).append((row, path))
        for alternatives in choices.values():
            if covers(path for _, path in alternatives):
                columns = zip(*(row for row, _ in alternatives), strict=True)
                yield tuple([column[0] if len(set(column)) == 1 else None for column in columns])

    def doubt(self, row: _Row, solution: Solution, state: Evaluation) -> None:
        """A row that exists only if some calls hold, or has unknown values."""
        existence = doubts_of(solution)
        values = [value.calls for value in map(unknown, row) if value is not None]
        if not values and row in self.certain:
            return
        calls = union(existence, *values)
        known = tuple([None if unknown(term) else term for term in row])
        path = path_of(solution)
        if path is not None:
            self.paths.append((known, bool(values), path))
        open_calls = tuple([call for call in calls if call not in state.results])
        if open_calls:
            self.waiting.append((None if values else row, open_calls))
            return
        most = state.world.settings.most_bindings
        if not existence and len(self.partial) <= most:
            self.partial.setdefault(known, calls)
        elif existence and len(self.doubtful) <= most:
            self.doubtful.setdefault((known, bool(values)), calls)


def _collect(rows: _Rows, plan: Plan, names: tuple[str, ...], state: Evaluation) -> None:
    """Add the first distinct rows, as many as are kept. Raises `LimitError`; those found before that stay added."""
    certain = rows.certain
    for solution in solutions(plan.group, {}, Scope(state, {})):
        row = tuple(solution.get(name) for name in names)
        if state.doubtful and (DOUBT in solution or any(unknown(term) is not None for term in row)):
            rows.doubt(row, solution, state)
            if len(rows.waiting) >= LOOKED_AT:
                break
            continue
        if row not in certain:
            if len(certain) == state.world.settings.most_bindings:
                rows.more = True
                break
            certain[row] = None
        if not names:
            break  # there is but one empty row


class _Last(threading.local):
    """The publication that a thread has ordered last: its pairs with subscriptions come one after the other."""

    as_stated: weakref.ref[Publication] | None = None
    ordered: Publication | None = None


_LAST = _Last()


def _first_in_order(
    plan: Plan, names: tuple[str, ...], state: Evaluation, as_stated: _Rows, limit: LimitError | None
) -> _Rows:
    """The first distinct rows, the triples in the order of their terms. Past `max_steps` these are the rows
    `as_stated`, found in that order. Where that passed the `limit`, too, they are those found so far, and where there
    are none, the error is raised."""
    publication = state.publication
    if _LAST.ordered is None or _LAST.as_stated is None or _LAST.as_stated() is not publication:
        triples = sorted(publication.triples, key=lambda triple: tuple(map(term_key, triple)))
        _LAST.as_stated, _LAST.ordered = weakref.ref(publication), replace(publication, triples=tuple(triples))
    ordered = Evaluation(_LAST.ordered, state.world, plan.outputs, state.exists, state.results)
    rows = _Rows()
    try:
        _collect(rows, plan, names, ordered)
    except LimitError:
        if limit is None:
            return as_stated
        rows = rows if rows.certain else as_stated
        state.open.update(ordered.open)
        if state.open or not rows.certain:
            raise limit from None
        rows.more = True
    finally:
        state.steps_left -= state.world.settings.max_steps - ordered.steps_left
    return rows
