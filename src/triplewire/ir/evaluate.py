"""The reference meaning: one subscription, one publication, by the SPARQL algebra (SPARQL 1.1, 18.5 and 18.6).

Read it from `evaluate` down. A solution is a dictionary of bindings; a group turns the solutions before it into
solutions behind it, lazily, so that the first match and the cap on bindings end the work. Triple patterns are in
`triplewire.ir.patterns`, conditions in `triplewire.ir.expressions`, operator calls in `triplewire.ir.calls`; what a
query says before any publication is seen is in `triplewire.ir.plan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from triplewire.errors import LimitError, OperatorError
from triplewire.ir import calls, patterns
from triplewire.ir.expressions import holds, value
from triplewire.ir.nodes import Call, Values, Where
from triplewire.ir.numbers import ExpressionError
from triplewire.ir.plan import Difference, Extend, Group, LeftJoin, Names, Nested, Plan, Run, Step, Union, plan_of
from triplewire.ir.state import Evaluation, Solution, UnknownCall, World
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Binding, term_key
from triplewire.model.publication import Publication
from triplewire.model.terms import Term

__all__ = ["Answer", "World", "evaluate"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one publication is to one subscription.

    `bindings` are the distinct assignments of the selected variables: at most `max_bindings`, and `truncated` says that
    there are more; those kept do not depend on the order of the publication's triples. None: no match. An ASK query has
    one empty binding. `failures` are the operator calls that failed.
    """

    bindings: tuple[Binding, ...]
    truncated: bool = False
    failures: tuple[OperatorError, ...] = ()


_MISS = Answer(())


def evaluate(subscription: Subscription, publication: Publication, world: World) -> Answer:
    """Does the publication match, and how? Raises `LimitError` past `max_steps`."""
    try:
        plan = plan_of(subscription)
        graph = publication.graph
        for subject, predicate, object_ in plan.required:
            if not graph.candidates(subject, predicate, object_):
                return _MISS
        return _answer(plan, subscription, publication, world)
    except RecursionError:  # only where max_query_depth was raised past what Python can hold
        raise LimitError(
            "the query is nested too deep to be evaluated", source=subscription.id, remedy="lower max_query_depth"
        ) from None


def _answer(plan: Plan, subscription: Subscription, publication: Publication, world: World) -> Answer:
    state = Evaluation(publication, world, plan.outputs, partial(_exists, plan))
    names = () if subscription.ask else subscription.select
    rows, truncated = _rows(plan, names, state)
    if truncated:
        again = Evaluation(_in_order(publication), world, plan.outputs, state.exists)
        again.calls = state.calls
        with suppress(LimitError):  # in this order it takes more steps: then those found first are as good
            rows, truncated = _rows(plan, names, again)
    bindings = tuple({n: t for n, t in zip(names, row, strict=True) if t is not None} for row in rows)
    return Answer(bindings, truncated, state.failures)


def _rows(plan: Plan, names: tuple[str, ...], state: Evaluation) -> tuple[Iterable[tuple[Term | None, ...]], bool]:
    """The first distinct rows, as many as are kept, and whether there are more."""
    rows: dict[tuple[Term | None, ...], None] = {}
    for solution in _solutions(plan.group, {}, Scope(state, {})):
        row = tuple(solution.get(name) for name in names)
        if row not in rows:
            if len(rows) == state.world.settings.max_bindings:
                return rows, True
            rows[row] = None
        if not names:
            break  # there is but one empty row
    return rows, False


def _in_order(publication: Publication) -> Publication:
    """The publication with its triples in the order of their terms."""
    triples = sorted(publication.triples, key=lambda triple: tuple(map(term_key, triple)))
    return replace(publication, triples=tuple(triples))


class Scope:
    """One evaluation, with the values that EXISTS puts into its group: `given` (SPARQL 1.1, 18.6, substitute)."""

    def __init__(self, state: Evaluation, given: Solution) -> None:
        self.state = state
        self.given = given
        self._tables: dict[int, Table] = {}

    def table(self, group: Group, *, whole: bool = True) -> Table:
        """The solutions of a group by itself, computed once; without its own conditions where not `whole`."""
        key = id(group)
        table = self._tables.get(key)
        if table is None:
            unknown = self.state.unknown_calls
            found = _solutions(group, self.given, self) if whole else _steps(group, self.given, self)
            rows = list(found)
            table = self._tables[key] = Table(rows, group.certain, self.state.unknown_calls > unknown)
        return table


class Table:
    """Solutions that are joined with others. `unknown`: a failed operator call may have kept some away."""

    def __init__(self, rows: list[Solution], certain: Names, unknown: bool) -> None:
        self._rows = rows
        self._certain = sorted(certain)
        self._indexes: dict[tuple[str, ...], dict[tuple[Term, ...], list[Solution]]] = {}
        self.unknown = unknown

    def compatible(self, solution: Solution, state: Evaluation) -> Iterator[Solution]:
        """The rows that agree with the solution on every variable that both bind (SPARQL 1.1, 18.3)."""
        key = tuple(name for name in self._certain if name in solution)
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = {}
            for row in self._rows:
                index.setdefault(tuple(row[name] for name in key), []).append(row)
        for row in index.get(tuple(solution[name] for name in key), ()):
            state.step()
            if all(solution.get(name, term) == term for name, term in row.items()):
                yield row


def _solutions(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """The solutions of a group that extend `solution`."""
    for found in _steps(group, solution, scope):
        if _kept(group, found, scope):
            yield found


def _kept(group: Group, solution: Solution, scope: Scope) -> bool:
    for condition in group.conditions:
        scope.state.step(condition.cost)
        if not holds(condition.expression, solution, scope.state):
            return False
    return True


def _steps(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """The same before the group's own conditions: each solution goes through the steps, depth first."""
    behind: list[Iterator[Solution]] = [iter((solution,))]  # what came out of each step so far, as far as not used
    while behind:
        for found in behind[-1]:
            done = len(behind) - 1
            if done == len(group.steps):
                yield found
            else:
                behind.append(_after(group.steps[done], found, scope))
                break
        else:
            behind.pop()


def _after(step: Step, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """What a step makes of a solution."""
    match step:
        case Run():
            return patterns.solutions(step, solution, scope.state)
        case Nested(group):
            return _joined(group, solution, scope)
        case Union(branches):
            return (found for branch in branches for found in _branch(branch, solution, scope))
        case Values():
            return _inline(step, solution, scope.state)
        case LeftJoin(group):
            return _left_join(group, solution, scope)
        case Difference(group):
            return iter((solution,) if _stays(group, solution, scope) else ())
        case Extend():
            return _extended(step, solution, scope.state)
        case Call():
            return _call(step, solution, scope.state)


def _joined(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """Join: a nested group is evaluated by itself; where that makes no difference, from the solution on."""
    if _independent(group.sensitive, solution, scope):
        yield from _solutions(group, solution, scope)
    else:
        for row in scope.table(group).compatible(solution, scope.state):
            yield solution | row


def _independent(sensitive: Names, solution: Solution, scope: Scope) -> bool:
    """Does the solution bind none of these, but for what EXISTS has put in everywhere?"""
    return sensitive.isdisjoint(solution) or all(n in scope.given for n in sensitive if n in solution)


def _branch(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """A branch of an Or; what only a call binds in it stays in it (semantics, section 3)."""
    outputs = scope.state.outputs
    for found in _joined(group, solution, scope):
        if outputs.isdisjoint(found):
            yield found
        else:
            yield {name: term for name, term in found.items() if name in solution or name not in outputs}


def _left_join(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """LeftJoin: the conditions of the optional group see both sides."""
    alone, unknown, failed = True, scope.state.unknown_calls, False
    if _independent(group.sensitive_steps, solution, scope):
        merged = _steps(group, solution, scope)
    else:
        table = scope.table(group, whole=False)
        failed = table.unknown
        merged = (solution | row for row in table.compatible(solution, scope.state))
    for found in merged:
        if _kept(group, found, scope):
            alone = False
            yield found
    if (
        alone and not failed and scope.state.unknown_calls == unknown
    ):  # after a failed call nobody knows whether it stands alone
        yield solution


def _stays(group: Group, solution: Solution, scope: Scope) -> bool:
    """Minus: no solution of the group agrees with this one on a variable that both bind."""
    table = scope.table(group)
    if table.unknown:
        return False  # neither a failed call nor its negation holds
    return not any(
        name in solution and name not in scope.given for row in table.compatible(solution, scope.state) for name in row
    )


def _inline(values: Values, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    for row in values.rows:
        state.step()
        bound: Solution = {v.name: term for v, term in zip(values.variables, row, strict=True) if term is not None}
        if all(solution.get(name, term) == term for name, term in bound.items()):
            yield solution | bound


def _extended(extend: Extend, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    """Extend. Inside EXISTS the variable may have a value already; then the two must be the same."""
    state.step(extend.cost)
    try:
        term = value(extend.expression, solution, state)
    except ExpressionError:
        yield solution
        return
    if solution.get(extend.name, term) == term:
        yield solution | {extend.name: term}


def _call(call: Call, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    try:
        yield from calls.extensions(call, solution, state)
    except UnknownCall:
        return


def _exists(plan: Plan, where: Where, solution: Solution, state: Evaluation) -> bool:
    """EXISTS: has the group a solution, with the current solution's values put in?"""
    unknown = state.unknown_calls
    if next(_solutions(plan.existential[id(where)], solution, Scope(state, solution)), None) is not None:
        return True
    if state.unknown_calls > unknown:
        raise UnknownCall("an operator call inside EXISTS failed")
    return False
