"""What is not known because an operator call failed, or has not been made yet: values, conditions and solutions.

Kleene's logic (semantics, section 3). A condition over an unknown call raises `Undecided`, which says what the
condition may still turn out to be. A solution that depends on unknown calls goes on as one in doubt: the key `DOUBT`,
which no variable is named, holds the calls. A variable that an unknown call may bind has an `Unknown` as its value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias, cast

from triplewire.ir.values.numbers import ExpressionError
from triplewire.model.operator import Argument
from triplewire.model.terms import Term

Solution: TypeAlias = dict[str, Term]
"""What each variable is bound to; never changed once made. Hidden variables are in it like others. Where operators are
called, a value may be an `Unknown`, and `DOUBT` may be among the keys."""

DOUBT = ""
"""The key of a solution in doubt. Its value is an `Unknown`: the calls on which depends whether the solution exists."""

TRUE, FALSE, ERROR = 1, 2, 4
ANYTHING = TRUE | FALSE | ERROR


class CallKey(NamedTuple):
    """A call with the values of its arguments; None stands for an output."""

    operator: str
    arguments: tuple[Argument, ...]


Calls: TypeAlias = tuple[CallKey, ...]


class Choice:
    """Solutions of which at least one exists: those of a left join that are in doubt, and the one that stands alone.

    `count` is how many they are; None as long as that is not known, and where another one exists for certain.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count: int | None = None


Path: TypeAlias = tuple[tuple[Choice, int], ...]
"""Which alternative of each choice, one after the other."""


class Unknown:
    """A value that depends on unknown calls. It may be equal to anything. Not `bound`: there may be none at all.

    As the value of `DOUBT`: `path` has the choices that the solution is an alternative of, where it is in doubt for no
    other reason.
    """

    __slots__ = ("bound", "calls", "path")

    def __init__(self, calls: Calls, *, bound: bool = True, path: Path | None = None) -> None:
        self.calls = calls
        self.bound = bound
        self.path = path

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]  # what is equal to anything has no hash

    def as_term(self) -> Term:
        """The same, for a place in a solution."""
        return cast(Term, self)


class Undecided(ExpressionError):
    """The value of an expression depends on unknown calls.

    `possible` says what it may turn out to be: TRUE, FALSE and ERROR, added up, at least two of them.
    """

    def __init__(self, calls: Calls, possible: int = ANYTHING) -> None:
        super().__init__("it depends on an operator call that is unknown")
        self.calls = calls
        self.possible = possible

    def negated(self) -> Undecided:
        """The same of the negation."""
        true, false = self.possible & TRUE, self.possible & FALSE
        return Undecided(self.calls, (self.possible & ERROR) | (FALSE if true else 0) | (TRUE if false else 0))


def connected(decisive: bool, doubts: list[Undecided], error: ExpressionError | None) -> ExpressionError:
    """The outcome of && (`decisive` is False) or || (True) where no operand is decisive and some are in doubt.

    `error` is that of an operand, if there is one. SPARQL 1.1, 17.2, for each combination of what the operands may be.
    """
    positive, negative = (TRUE, FALSE) if decisive else (FALSE, TRUE)
    possible = 0
    if any(doubt.possible & positive for doubt in doubts):
        possible |= positive
    if error is None and all(doubt.possible & negative for doubt in doubts):
        possible |= negative
    if error is not None or any(doubt.possible & ERROR for doubt in doubts):
        possible |= ERROR
    if possible == ERROR and error is not None:
        return error
    return Undecided(union(*(doubt.calls for doubt in doubts)), possible)


def union(*parts: Calls) -> Calls:
    """The calls of all parts, each once, in the order in which they come."""
    if len(parts) == 1:
        return parts[0]
    return tuple(dict.fromkeys([call for part in parts for call in part]))


def unknown(value: object) -> Unknown | None:
    """The value, if it is unknown."""
    return value if type(value) is Unknown else None


def doubts_of(solution: Solution) -> Calls:
    """The calls on which depends whether the solution exists; empty where it exists for certain."""
    doubt = unknown(solution.get(DOUBT))
    return () if doubt is None else doubt.calls


def doubted(solution: Solution, calls: Calls) -> Solution:
    """The solution, whose existence depends on these calls as well."""
    if not calls:
        return solution
    return solution | {DOUBT: Unknown(union(doubts_of(solution), calls)).as_term()}


def chosen(solution: Solution, base: Solution, calls: Calls, choice: Choice, number: int) -> Solution:
    """The solution as an alternative of a choice that the solution `base` has; these calls decide which."""
    before = unknown(base.get(DOUBT))
    path = () if before is None else before.path
    if path is not None:
        path = (*path, (choice, number))
    doubt = Unknown(union(doubts_of(base), calls), path=path)
    return solution | {DOUBT: doubt.as_term()}


def path_of(solution: Solution) -> Path | None:
    """The alternatives that a solution in doubt is; None where it is in doubt for another reason."""
    doubt = unknown(solution.get(DOUBT))
    return None if doubt is None else doubt.path


def covers(paths: Iterable[Path]) -> bool:
    """Do the paths take in all alternatives of some choice, so that one of the solutions exists for certain?"""
    choices: dict[Choice, dict[int, list[Path]]] = {}
    for path in paths:
        if not path:
            return True
        (choice, number), *rest = path
        choices.setdefault(choice, {}).setdefault(number, []).append(tuple(rest))
    return any(choice.count == len(taken) and all(map(covers, taken.values())) for choice, taken in choices.items())


class Doubts:
    """Solutions in doubt: the calls that they depend on, and whether one of them exists for certain."""

    __slots__ = ("_calls", "_paths")

    def __init__(self) -> None:
        self._calls: dict[CallKey, None] = {}
        self._paths: list[Path] = []

    def add(self, solution: Solution) -> None:
        """One more of them."""
        self._calls.update(dict.fromkeys(doubts_of(solution)))
        path = path_of(solution)
        if path is not None:
            self._paths.append(path)

    def calls(self) -> Calls:
        """The calls that they depend on, each once."""
        return tuple(self._calls)

    def covered(self) -> bool:
        """Does one of them exist for certain?"""
        return bool(self._paths) and covers(self._paths)


def assumed(solution: Solution) -> Solution:
    """The solution as if it existed for certain; what is in doubt behind it is in doubt for a reason of its own."""
    if DOUBT not in solution:
        return solution
    return {name: term for name, term in solution.items() if name != DOUBT}


def merged_solution(solution: Solution, row: Solution) -> Solution:
    """Two compatible solutions as one. Where one has an unknown value, the other's counts, and it is in doubt that the
    two are equal."""
    both = solution | row
    calls: list[Calls] = []
    for name, theirs in row.items():
        mine = solution.get(name)
        if mine is None or mine is theirs:
            continue
        vague = [value for value in (unknown(mine), unknown(theirs)) if value is not None]
        calls += [value.calls for value in vague]
        if vague and name != DOUBT:
            both[name] = theirs if unknown(theirs) is None else mine
    return doubted(both, union(*calls)) if calls else both
