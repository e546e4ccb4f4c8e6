"""Mergers: what several subscriptions have in common, as a subscription that contains each of them (001, section 4.3).

The paper's merger is the intersection of their graphs. Here it keeps joins, where members share them, and words. It is
a SPARQL text like any other, so that it can be saved and read; that it contains its members is checked on what the
text says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from triplewire.config import Settings
from triplewire.errors import TriplewireError
from triplewire.ir.fulltext.nodes import Analyzer, Word
from triplewire.ir.nodes import FullText, Variable
from triplewire.ir.normal_form.clauses import Clause, Position
from triplewire.ir.normal_form.conditions import Test
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.model.terms import IRI, Literal

Triple = tuple[Position, Position, Position]

LEAST_CONSTANTS = 2
"""Constants that two patterns have in common, at least, to become one pattern of a merger, where there are such."""


def common(clauses: Sequence[Clause]) -> Clause:
    """A clause that contains each of these. They are merged one by one, so it may keep less than they have in common.
    Where their patterns share too few constants, it may say no more than that a node is there."""
    clause = _all(clauses, _says_enough)
    if clause is not None:
        return clause
    clause = _all(clauses, _has_node) or Clause((), ())
    patterns = {tuple(None if isinstance(term, Variable) else term for term in p): p for p in clause.patterns}
    return Clause(tuple(patterns.values()), clause.tests)  # one for each node: joins of them say little


def _all(clauses: Sequence[Clause], are_one: Callable[[Triple, Triple], bool]) -> Clause | None:
    """What all have in common, if anything: of patterns that are one by this test."""
    first, *others = clauses
    for other in others:
        first = _both(first, other, are_one)
        if not first.patterns:
            return None
    return first


def _both(a: Clause, b: Clause, are_one: Callable[[Triple, Triple], bool]) -> Clause:
    """The patterns of `a` that go together with one of `b`, and say what both say: where they differ, there is a
    variable, the same one for the same two terms (the least general generalisation of Plotkin, 1970)."""
    named: dict[tuple[Position, Position], Variable] = {}
    patterns: dict[Triple, None] = {}
    for pattern in a.patterns:
        targets = (target for target in b.patterns if are_one(pattern, target))
        target = max(targets, key=partial(_alike, pattern, named), default=None)
        if target is not None:
            s, p, o = (
                x if x == y and not isinstance(x, Variable) else named.setdefault((x, y), Variable(f"m{len(named)}"))
                for x, y in zip(pattern, target, strict=True)
            )
            patterns[s, p, o] = None
    there = set(b.tests)
    tests = tuple(
        (variable.name, test)
        for (x, y), variable in named.items()
        if isinstance(x, Variable) and isinstance(y, Variable)
        for name, test in a.tests
        if name == x.name and (y.name, test) in there
    )
    return Clause(tuple(patterns), tests)


def _alike(pattern: Triple, named: dict[tuple[Position, Position], Variable], target: Triple) -> tuple[int, int]:
    """How many constants both have in the same place, and how many other places are joined to what is common."""
    return _same(pattern, target), sum(pair in named for pair in zip(pattern, target, strict=True))


def _same(pattern: Triple, target: Triple) -> int:
    return sum(x == y and not isinstance(x, Variable) for x, y in zip(pattern, target, strict=True))


def _says_enough(pattern: Triple, target: Triple) -> bool:
    """Do both have enough constants in the same places?"""
    return _same(pattern, target) >= LEAST_CONSTANTS


def _has_node(pattern: Triple, target: Triple) -> bool:
    """Have both the same subject, or the same object?"""
    return any(pattern[at] == target[at] and not isinstance(pattern[at], Variable) for at in (0, 2))


def merger_of(id: str, clause: Clause, settings: Settings) -> Subscription | None:
    """The subscription of a clause; None where nothing of it can be said in SPARQL."""
    text = _text(clause)
    if not text:
        return None
    try:
        return parse(text, "sparql", id=id, settings=settings)
    except TriplewireError:  # longer or deeper than the limits allow: its members stay as they are
        return None


def _text(clause: Clause) -> str:
    numbers: dict[str, int] = {}

    def written(term: Position) -> str:
        return f"?v{numbers.setdefault(term.name, len(numbers))}" if isinstance(term, Variable) else str(term)

    triples = [
        " ".join(map(written, pattern))
        for pattern in clause.patterns
        if not isinstance(pattern[0], Literal) and isinstance(pattern[1], IRI | Variable)
    ]
    words = [
        f'FILTER ftcontains(?v{numbers[name]}, "{word}")'
        for name, test in clause.tests
        if name in numbers and (word := _word(test))
    ]
    return f"ASK WHERE {{ {' . '.join(triples)} {' '.join(words)} }}" if triples else ""


def _word(test: Test) -> str:
    """The word that the test asks for; "" of any other test."""
    if isinstance(test, FullText) and isinstance(test.expression, Word) and test.expression.analyzer == Analyzer():
        return test.expression.word
    return ""
