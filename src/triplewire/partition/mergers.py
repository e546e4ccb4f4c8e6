"""Mergers: what several subscriptions have in common, as a subscription that contains each of them (001, section 4.3).

The paper's merger is the intersection of their graphs. Here it keeps joins, where members share them, and words. It is
a SPARQL text like any other, so that it can be saved and read; that it contains its members is checked on what the
text says.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def common(clauses: Sequence[Clause]) -> Clause:
    """A clause that every one of these is in."""
    first, *others = clauses
    for other in others:
        first = _both(first, other)
    return first


def _both(a: Clause, b: Clause) -> Clause:
    """The patterns of `a` that `b` has as well, with one assignment of variables for all of them."""
    goes_to: dict[str, Position] = {}
    patterns = []
    for pattern in a.patterns:
        for target in b.patterns:
            more = _alike(pattern, target, goes_to)
            if more is not None:
                goes_to |= more
                patterns.append(pattern)
                break
    there = set(b.tests)
    tests = tuple((name, test) for name, test in a.tests if name in goes_to and (_name(goes_to[name]), test) in there)
    return Clause(tuple(patterns), tests)


def _name(term: Position) -> str:
    return term.name if isinstance(term, Variable) else ""


def _alike(pattern: Triple, target: Triple, goes_to: dict[str, Position]) -> dict[str, Position] | None:
    """The variables that have to go somewhere new for the one to be the other; None where that cannot be."""
    more: dict[str, Position] = {}
    for a, b in zip(pattern, target, strict=True):
        if not isinstance(a, Variable):
            if a != b:
                return None
        elif not isinstance(b, Variable) or goes_to.get(a.name, more.get(a.name, b)) != b:
            return None
        else:
            more[a.name] = b
    return more


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
