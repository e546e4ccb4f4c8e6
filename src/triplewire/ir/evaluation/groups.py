"""The solutions of a group: the SPARQL algebra (SPARQL 1.1, 18.5 and 18.6), with solutions in doubt.

A solution is a dictionary of bindings; a group turns the solutions before it into solutions behind it, lazily, so that
the first match and the cap on bindings end the work. A solution that depends on unknown operator calls goes on as one
in doubt (`triplewire.ir.evaluation.unknown`). All conditions are looked at, so one that is false for certain ends it.
"""

from __future__ import annotations

from collections.abc import Iterator

from triplewire.ir.evaluation import calls, patterns
from triplewire.ir.evaluation.expressions import truth, value
from triplewire.ir.evaluation.plan import Difference, Extend, Group, LeftJoin, Names, Nested, Plan, Run, Step, Union
from triplewire.ir.evaluation.state import Evaluation, Solution
from triplewire.ir.evaluation.unknown import (
    DOUBT,
    ERROR,
    TRUE,
    Choice,
    Doubts,
    Undecided,
    Unknown,
    assumed,
    chosen,
    doubted,
    doubts_of,
    merged_solution,
    union,
    unknown,
)
from triplewire.ir.nodes import Call, Values, Where
from triplewire.ir.values.numbers import ExpressionError
from triplewire.model.terms import Term


class Scope:
    """One evaluation, with the values that EXISTS puts into its group: `given` (SPARQL 1.1, 18.6, substitute)."""

    def __init__(self, state: Evaluation, given: Solution) -> None:
        self.state = state
        self.given = given
        self._tables: dict[int, SolutionTable] = {}

    def table(self, group: Group, *, whole: bool = True) -> SolutionTable:
        """The solutions of a group by itself, computed once; without its own conditions where not `whole`."""
        key = id(group)
        table = self._tables.get(key)
        if table is None:
            rows = list(solutions(group, self.given, self) if whole else _steps(group, self.given, self))
            table = self._tables[key] = SolutionTable(rows, group.certain)
        return table


class SolutionTable:
    """Solutions that are joined with others."""

    def __init__(self, rows: list[Solution], certain: Names) -> None:
        self._rows = rows
        self._certain = sorted(certain)
        self._indexes: dict[tuple[str, ...], dict[tuple[Term, ...], list[Solution]]] = {}

    def compatible(self, solution: Solution, state: Evaluation) -> Iterator[Solution]:
        """The rows that agree with the solution on every variable that both bind (SPARQL 1.1, 18.3); an unknown value
        may agree with any."""
        key = tuple(name for name in self._certain if name in solution)
        if state.doubtful:
            key = tuple(name for name in key if unknown(solution[name]) is None)
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = {}
            for row in self._rows:
                index.setdefault(tuple(row[name] for name in key), []).append(row)
        for row in index.get(tuple(solution[name] for name in key), ()):
            state.step()
            if all(solution.get(name, term) == term for name, term in row.items()):
                yield row


def solutions(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """The solutions of a group that extend `solution`."""
    for extended in _steps(group, solution, scope):
        checked = _kept(group, extended, scope)
        if checked is not None:
            yield checked


def _kept(group: Group, solution: Solution, scope: Scope) -> Solution | None:
    """The solution, if no condition of the group is false; in doubt where one may be."""
    checked = solution
    for condition in group.conditions:
        scope.state.step(condition.cost)
        try:
            if not truth(condition.expression, solution, scope.state):
                return None
        except Undecided as doubt:
            if not doubt.possible & TRUE:
                return None
            checked = doubted(checked, doubt.calls)
        except ExpressionError:
            return None
    return checked


def _steps(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """The same before the group's own conditions: each solution goes through the steps, depth first."""
    behind: list[Iterator[Solution]] = [iter((solution,))]  # what came out of each step so far, as far as not used
    while behind:
        for extended in behind[-1]:
            done = len(behind) - 1
            if done == len(group.steps):
                yield extended
            else:
                behind.append(_after(group.steps[done], extended, scope))
                break
        else:
            behind.pop()


def _after(step: Step, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """What a step makes of a solution."""
    match step:
        case Run():
            return _run(step, solution, scope.state)
        case Nested(group):
            return _joined(group, solution, scope)
        case Union(branches):
            return (extended for branch in branches for extended in _branch(branch, solution, scope))
        case Values():
            return _inline(step, solution, scope.state)
        case LeftJoin(group):
            return _left_join(group, solution, scope)
        case Difference(group):
            return _difference(group, solution, scope)
        case Extend():
            return _extended(step, solution, scope.state)
        case Call():
            return calls.extensions(step, solution, scope.state)


def _run(run: Run, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    """Triple patterns. A variable whose value is unknown may have any that they find; that it has is in doubt."""
    if not state.doubtful:
        return patterns.solutions(run, solution, state)
    names = {name for atom in run.atoms for name in atom.variables}
    vague = {name: term for name, term in solution.items() if name in names and unknown(term) is not None}
    if not vague:
        return patterns.solutions(run, solution, state)
    free = {name: term for name, term in solution.items() if name not in vague}
    doubts = union(*(value.calls for value in map(unknown, vague.values()) if value is not None))
    return (doubted(vague | extended, doubts) for extended in patterns.solutions(run, free, state))


def _join(solution: Solution, row: Solution, state: Evaluation) -> Solution:
    """Two compatible solutions as one."""
    return merged_solution(solution, row) if state.doubtful else solution | row


def _joined(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """Join: a nested group is evaluated by itself; where that makes no difference, from the solution on."""
    if _independent(group.sensitive, solution, scope):
        yield from solutions(group, solution, scope)
    else:
        for row in scope.table(group).compatible(solution, scope.state):
            yield _join(solution, row, scope.state)


def _independent(sensitive: Names, solution: Solution, scope: Scope) -> bool:
    """Does the solution bind none of these, but for what EXISTS has put in everywhere?"""
    return sensitive.isdisjoint(solution) or all(n in scope.given for n in sensitive if n in solution)


def _branch(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """A branch of an Or; what only a call binds in it stays in it (semantics, section 3)."""
    outputs = scope.state.outputs
    for extended in _joined(group, solution, scope):
        if outputs.isdisjoint(extended):
            yield extended
        else:
            yield {name: term for name, term in extended.items() if name in solution or name not in outputs}


def _left_join(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """LeftJoin: the conditions of the optional group see both sides. Where all its solutions are in doubt, so is
    whether this one stands alone."""
    state, base = scope.state, assumed(solution)
    choice: Choice | None = None
    if _independent(group.sensitive_steps, solution, scope):
        both = _steps(group, base, scope)
    else:
        both = (_join(base, row, state) for row in scope.table(group, whole=False).compatible(base, state))
    doubts, alone, alternatives = Doubts(), True, 0
    for extended in both:
        checked = _kept(group, extended, scope)
        if checked is None:
            continue
        if DOUBT not in checked:
            alone = False
            yield checked if base is solution else checked | {DOUBT: solution[DOUBT]}
            continue
        doubts.add(checked)
        choice = choice or Choice()
        yield chosen(checked, solution, doubts_of(checked), choice, alternatives)
        alternatives += 1
    if not alone:
        return
    if choice is None:
        yield solution
        return
    if not doubts.covered():
        yield chosen(solution, solution, doubts.calls(), choice, alternatives)
        alternatives += 1
    choice.count = alternatives


def _difference(group: Group, solution: Solution, scope: Scope) -> Iterator[Solution]:
    """Minus: the solution stays if no solution of the group agrees with it on a variable that both bind."""
    state, doubts = scope.state, Doubts()
    for row in scope.table(group).compatible(solution, state):
        shared = (name for name in row if name in solution and name not in scope.given and name != DOUBT)
        if not state.doubtful:
            if any(shared):
                return
            continue
        names = list(shared)
        values = map(unknown, [side[name] for name in names for side in (solution, row)])
        vague = [value.calls for value in values if value is not None]
        agreeing = doubted(row, union(*vague)) if vague else row
        if names and DOUBT not in agreeing:
            return
        if names:
            doubts.add(agreeing)
    if not doubts.covered():
        yield doubted(solution, doubts.calls())


def _inline(values: Values, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    for row in values.rows:
        state.step()
        bound: Solution = {v.name: term for v, term in zip(values.variables, row, strict=True) if term is not None}
        if all(solution.get(name, term) == term for name, term in bound.items()):
            yield _join(solution, bound, state)


def _extended(extend: Extend, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    """Extend. Inside EXISTS the variable may have a value already; then the two must be the same."""
    state.step(extend.cost)
    try:
        term = value(extend.expression, solution, state)
    except Undecided as doubt:
        term = Unknown(doubt.calls, bound=not doubt.possible & ERROR).as_term()
    except ExpressionError:
        yield solution
        return
    if solution.get(extend.name, term) == term:
        yield _join(solution, {extend.name: term}, state)


def exists(plan: Plan, where: Where, solution: Solution, state: Evaluation) -> bool:
    """EXISTS: has the group a solution, with the current solution's values put in? Raises `Undecided`."""
    given = assumed(solution)
    return calls.any_certain(solutions(plan.existential[id(where)], given, Scope(state, given)), state)
