"""Generated queries that call the operators of `scenes.fixed` in every kind of group, and publications for them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from operators.scenes import E, publication
from triplewire.model.publication import Publication

NAMES, PREDICATES = "abc", "pqr"


def publications(chance: random.Random, count: int) -> list[Publication]:
    """Of a few triples over few terms."""

    def line() -> str:
        target = chance.choice((*NAMES, "0", "1", "2"))
        return f"{chance.choice(NAMES)} {chance.choice(PREDICATES)} {target}"

    return [publication(f"urn:p{n}", *dict.fromkeys(line() for _ in range(chance.randint(1, 6)))) for n in range(count)]


@dataclass
class Writer:
    """Writes SPARQL queries by chance."""

    chance: random.Random

    def query(self) -> str:
        """A query; most have a pattern that must hold."""
        form = self.chance.choice(("ASK", "SELECT *", "SELECT *", "SELECT ?a", "SELECT ?a ?c"))
        first = self.call() if self.chance.random() < 0.1 else self.pattern()
        return f"PREFIX : <{E}> {form} {{ {first} {self.parts(2)} }}"

    def parts(self, depth: int) -> str:
        return " ".join(self.part(depth) for _ in range(self.chance.randint(1, 3)))

    def part(self, depth: int) -> str:
        kind = self.chance.random()
        if kind < 0.2 or not depth:
            return self.chance.choice((self.pattern, self.call, self.filter, self.filter))()
        if kind < 0.45:
            return self.filter(depth)
        if kind < 0.6:
            return self.call()
        inner = f"{{ {self.pattern()} {self.parts(depth - 1)} }}"
        if kind < 0.72:
            return f"OPTIONAL {inner}"
        if kind < 0.8:
            return f"MINUS {inner}"
        if kind < 0.88:
            return f"{inner} UNION {{ {self.parts(depth - 1)} {self.pattern()} }}"
        if kind < 0.94:
            return f"FILTER {self.chance.choice(('', 'NOT '))}EXISTS {inner}"
        return f"BIND({self.condition(1)} AS ?n{self.chance.randrange(10**6)})"

    def variable(self) -> str:
        return f"?{self.chance.choice('abcd')}"

    def pattern(self) -> str:
        subject = self.chance.choice((self.variable(), "?a", "?a", ":a"))
        target = self.chance.choice((self.variable(), self.variable(), ":b", '"1"'))
        return f"{subject} :{self.chance.choice(PREDICATES)} {target} ."

    def call(self) -> str:
        if self.chance.random() < 0.5:
            return f"CALL {self.test()}"
        return f"CALL {self.chance.choice(('b1', 'b2'))}({self.variable()}, {self.chance.choice(('?c', '?d', '?e'))})"

    def test(self) -> str:
        return f"{self.chance.choice(('t1', 't2', 't3'))}({self.chance.choice(('?a', '?b', '1', '2'))})"

    def filter(self, depth: int = 1) -> str:
        return f"FILTER({self.condition(depth)})"

    def condition(self, depth: int) -> str:
        kind = self.chance.random()
        if depth and kind < 0.45:
            connective = self.chance.choice((" && ", " || "))
            return f"({connective.join(self.condition(depth - 1) for _ in range(self.chance.randint(2, 3)))})"
        if depth and kind < 0.6:
            return f"!({self.condition(depth - 1)})"
        if kind < 0.85:
            return f"op:{self.test()}"
        return self.chance.choice((f"BOUND({self.variable()})", f"{self.variable()} = :a", f"isIRI({self.variable()})"))
