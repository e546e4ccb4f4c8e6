"""Operators for tests, which count their calls: one that holds, one that does not, one that fails, two that bind."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from triplewire import Engine, Publication
from triplewire.model.operator import Argument, Operator, Verdict
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators import function_operator

E = "http://e/"


class Counting:
    """Operators by name, and how often each (publication, operator, arguments) was asked."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str, tuple[Argument, ...]]] = Counter()
        self.operators: dict[str, Operator] = {}

    def add(self, name: str, answer: Callable[[Publication, tuple[Argument, ...]], Any], parameters: int = 1) -> None:
        """One more operator."""

        def counted(publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
            self.asked[publication.id, name, arguments] += 1
            return answer(publication, arguments)  # type: ignore[no-any-return]  # what a test wants it to be

        self.operators[name] = function_operator(name, [f"p{n}" for n in range(parameters)], counted)


def fails(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """No answer."""
    raise RuntimeError("no answer")


def usual() -> Counting:
    """yes, no, bad, and rows, which binds."""
    counting = Counting()
    counting.add("yes", lambda publication, arguments: True)
    counting.add("no", lambda publication, arguments: False)
    counting.add("bad", fails)
    counting.add("rows", lambda publication, arguments: [(IRI(E + "a"),), (IRI(E + "b"),)])
    return counting


def fixed(seed: int) -> Counting:
    """Operators whose answers, failures among them, are drawn by publication and arguments, and stay."""
    counting = Counting()

    def drawn(name: str, binds: bool) -> Callable[[Publication, tuple[Argument, ...]], Any]:
        def answer(publication: Publication, arguments: tuple[Argument, ...]) -> Any:
            chance = random.Random(f"{seed} {name} {publication.id} {arguments}")
            if chance.random() < 0.3:
                raise RuntimeError(f"no answer to {name}")
            if not binds:
                return chance.random() < 0.5
            terms = [IRI(f"{E}{n}") for n in "abc"] + [Literal(str(n)) for n in range(3)]
            rows = [(chance.choice(terms), chance.choice(terms)) for _ in range(chance.randrange(3))]
            return [tuple(given or drawn for given, drawn in zip(arguments, row, strict=True)) for row in rows]

        return answer

    for name in ("t1", "t2", "t3"):
        counting.add(name, drawn(name, False))
    for name in ("b1", "b2"):
        counting.add(name, drawn(name, True), 2)
    return counting


def engine(matcher: str, counting: Counting, **given: Any) -> Engine:
    """An engine with these operators."""
    return Engine(matcher=matcher, operators=counting.operators, **given)


def publication(id: str, *triples: str) -> Publication:
    """A publication of lines "a p 1": names are IRIs, numbers plain literals."""
    terms = [[Literal(word) if word.isdigit() else IRI(E + word) for word in line.split()] for line in triples]
    return Publication(id, tuple(Triple(*three) for three in terms))  # type: ignore[arg-type]  # as the tests write them
