"""Solutions of triple patterns: one pattern after the other, backtracking, without recursion.

This is the basic graph pattern matching of SPARQL 1.1, section 18.3, over one publication. What else a group may hold:
`triplewire.ir.evaluation.evaluate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.plan import Atom, Condition, Run, components
from triplewire.ir.evaluation.state import Evaluation, Solution
from triplewire.ir.nodes import Label
from triplewire.model.terms import IRI, Literal, Term, Triple


def solutions(run: Run, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    """The solutions of a run of patterns that agree with `solution`, each extending it.

    A variable that does not matter outside the run (`Atom.needed`) may stay unbound, and two solutions may be equal:
    what counts are the distinct assignments of the others.
    """
    if run.components:
        # patterns that share no variable: each part must have a solution, and only parts that matter are multiplied
        if not all(_satisfiable(part.atoms, part.conditions, solution, state) for part in run.components):
            return
        mattering = [part for part in run.components if any(not atom.needed <= solution.keys() for atom in part.atoms)]
        atoms = tuple(atom for part in mattering for atom in part.atoms)
        conditions = tuple(condition for part in mattering for condition in part.conditions)
    else:
        atoms, conditions = run.atoms, run.conditions
    waiting = _tested(conditions, solution, state)
    if waiting is not None:
        yield from _search(atoms, waiting, solution, state)


def _satisfiable(
    atoms: Sequence[Atom], conditions: tuple[Condition, ...], solution: Solution, state: Evaluation
) -> bool:
    """Is there any solution? Patterns that share no unbound variable are looked at apart from each other."""
    state.step(len(atoms) + len(conditions))
    parts = components(atoms, conditions, solution.keys()) if len(atoms) > 1 else [(tuple(atoms), conditions)]
    for some_atoms, some_conditions in parts:
        waiting = _tested(some_conditions, solution, state)
        if waiting is None or next(_search(some_atoms, waiting, solution, state, first=True), None) is None:
            return False
    return True


_MANY = 16  # candidates of a pattern from which on those that fit are remembered


class Fitting:
    """The triples that fit a pattern and the conditions on its variables alone: in order, found as far as they are
    asked for, and once for all solutions under which the pattern has the same candidates. So a filter comes before the
    product of what it filters with other patterns."""

    __slots__ = ("_found", "_more")

    def __init__(self, more: Iterator[Triple]) -> None:
        self._more = more
        self._found: list[Triple] = []

    def __iter__(self) -> Iterator[Triple]:
        for place in count():
            if place == len(self._found):
                triple = next(self._more, None)
                if triple is None:
                    return
                self._found.append(triple)
            yield self._found[place]


class _Frame(NamedTuple):
    """A pattern being matched: its triples (an iterator that goes on where it stopped), and what comes after it."""

    atom: Atom
    triples: Iterator[Triple]
    rest: tuple[Atom, ...]
    conditions: tuple[Condition, ...]
    solution: Solution


def _search(
    atoms: tuple[Atom, ...],
    conditions: tuple[Condition, ...],
    solution: Solution,
    state: Evaluation,
    *,
    first: bool = False,
) -> Iterator[Solution]:
    """Solutions by backtracking. `first`: the caller wants one only, whatever it binds."""
    if not atoms:
        yield solution
        return
    if not first and _is_decided(atoms, solution):
        if _satisfiable(atoms, conditions, solution, state):
            yield solution
        return
    stack = [frame] if (frame := _frame(atoms, conditions, solution, state)) else []
    while stack:
        atom, triples, rest, conditions, current = stack[-1]
        for triple in triples:
            state.step()
            extended = extend(atom, triple, current)
            if extended is None:
                continue
            waiting = _tested(conditions, extended, state) if conditions else conditions
            if waiting is None:
                continue
            if not rest:
                yield extended
            elif not first and _is_decided(rest, extended):
                if _satisfiable(rest, waiting, extended, state):
                    yield extended
            elif (frame := _frame(rest, waiting, extended, state)) is not None:
                stack.append(frame)
                break
        else:
            stack.pop()


def _is_decided(atoms: tuple[Atom, ...], solution: Solution) -> bool:
    """Is everything bound that matters outside? Then it only matters whether the rest can be satisfied."""
    return all(name in solution for atom in atoms for name in atom.needed)


def _tested(conditions: tuple[Condition, ...], solution: Solution, state: Evaluation) -> tuple[Condition, ...] | None:
    """The conditions that wait for a variable; None where one that does not wait fails."""
    waiting = []
    for condition in conditions:
        if not condition.variables <= solution.keys():
            waiting.append(condition)
            continue
        state.step(condition.cost)
        if not holds(condition.expression, solution, state):
            return None
    return tuple(waiting)


def _frame(
    atoms: tuple[Atom, ...], conditions: tuple[Condition, ...], solution: Solution, state: Evaluation
) -> _Frame | None:
    """Begin with the pattern that has the fewest candidates; None where one has none."""
    state.step(len(atoms) - 1)
    best, fewest = atoms[0], None
    for atom in atoms:
        candidates = state.graph.candidates(*_terms(atom, solution))
        if not candidates:
            return None
        if fewest is None or len(candidates) < len(fewest):
            best, fewest = atom, candidates
    assert fewest is not None
    rest = tuple(atom for atom in atoms if atom is not best)
    if len(fewest) < _MANY:
        return _Frame(best, iter(fewest), rest, conditions, solution)
    alone = tuple(condition for condition in conditions if condition.variables <= best.variables)
    others = tuple(condition for condition in conditions if not condition.variables <= best.variables)
    key = id(best), *_terms(best, solution)
    fitting = state.fitting.get(key)
    if fitting is None:
        fitting = state.fitting[key] = Fitting(_fitting(best, fewest, alone, solution, state))
    return _Frame(best, iter(fitting), rest, others, solution)


def _fitting(
    atom: Atom, candidates: Sequence[Triple], conditions: tuple[Condition, ...], solution: Solution, state: Evaluation
) -> Iterator[Triple]:
    """The candidates under which the conditions, on variables of the pattern alone, hold. Counts the others: those that
    fit are counted where they are looked at."""
    for triple in candidates:
        extended = extend(atom, triple, solution)
        if extended is None or _tested(conditions, extended, state) is None:
            state.step()
        else:
            yield triple


def _terms(atom: Atom, solution: Solution) -> tuple[Term | None, Term | None, Term | None]:
    """The constants and bound variables of a pattern; None is any term."""
    (a, b, c), (x, y, z) = atom.constants, atom.names
    return (
        a if x is None else solution.get(x),
        b if y is None else solution.get(y),
        c if z is None else solution.get(z),
    )


def extend(atom: Atom, triple: Triple, solution: Solution) -> Solution | None:
    """The solution under which the pattern is this triple; None where there is none."""
    extended = solution
    for constant, name, term in zip(atom.constants, atom.names, triple, strict=True):
        if constant is not None:
            if constant is not term and constant != term:
                return None
        elif name is not None:
            bound = extended.get(name)
            if bound is None:
                if extended is solution:
                    extended = dict(solution)
                extended[name] = term
            elif bound is not term and bound != term:
                return None
    if atom.labels is not None and not all(
        label is None or fits(label, term) for label, term in zip(atom.labels, triple, strict=True)
    ):
        return None
    return extended


def fits(label: Label, term: Term) -> bool:
    """Does a bare label stand for the term? For a literal of that lexical form, or the IRI that it resolves to."""
    if isinstance(term, Literal):
        return term.lexical == label.text
    return isinstance(term, IRI) and label.iri != "" and term.value == label.iri
