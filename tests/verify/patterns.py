"""Groups of patterns that are drawn at random, and queries of them."""

from __future__ import annotations

import random

from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse

TERMS = [f"<urn:t{number}>" for number in range(6)]
PREDICATES = ["<urn:p>", "<urn:q>", "<urn:r>"]


def world_of(cap: int = 1000) -> World:
    return World(settings=Settings(max_bindings=cap))


def connected(rng: random.Random, patterns: int) -> list[tuple[str, str, str]]:
    """Patterns of which each shares a variable with one before it."""
    variables, group = ["?a"], []
    for _ in range(patterns):
        shared = rng.choice(variables)
        kind = rng.random()
        if kind < 0.45:
            other = f"?{chr(ord('a') + len(variables))}"
            variables.append(other)
        else:
            other = rng.choice(variables) if kind < 0.7 else rng.choice(TERMS)
        ends = (shared, other) if rng.random() < 0.5 else (other, shared)
        group.append((ends[0], rng.choice(PREDICATES), ends[1]))
    return group


def query_of(group: list[tuple[str, str, str]], number: int) -> Subscription:
    body = " . ".join(" ".join(pattern) for pattern in group)
    return parse(f"SELECT * WHERE {{ {body} }}", "sparql", id=str(number))


def renamed(rng: random.Random, group: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The same patterns in another order, with other names of variables."""
    names = [f"?v{number}" for number in range(26)]
    rng.shuffle(names)
    other = {f"?{chr(ord('a') + number)}": name for number, name in enumerate(names)}
    renamed = [(other.get(s, s), p, other.get(o, o)) for s, p, o in group]
    rng.shuffle(renamed)
    return renamed
