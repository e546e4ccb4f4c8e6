"""Histories of what a provider knows of one repository, for tests.

It has resources with strong references, and which rules hold which. The expectation is worked out from scratch after
each step; the batch, from what has changed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from triplewire.metadata.messages import Dropped, Notice, Told

NAMES, RULES = "abcdefgh", ("r1", "r2", "r3")
PROPERTY = "http://example.org/terms#value"


@dataclass
class Known:
    """Resources that there are, with a value and the names of what they refer to strongly (which may not be there), and
    the rules that hold them."""

    resources: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)
    holds: dict[str, frozenset[str]] = field(default_factory=dict)

    def cache(self) -> dict[str, tuple[int, frozenset[str]]]:
        """What belongs into the cache: what a rule holds, and all that this leads to strongly."""
        reached, waiting = set[str](), [name for name, rules in self.holds.items() if rules]
        while waiting:
            name = waiting.pop()
            if name in self.resources and name not in reached:
                reached.add(name)
                waiting += self.resources[name][1]
        return {name: self.resources[name] for name in reached}

    def results(self) -> dict[str, list[str]]:
        """The resources that each rule holds."""
        return {rule: sorted(name for name, rules in self.holds.items() if rule in rules) for rule in RULES}


def histories(seed: int, steps: int) -> Iterator[tuple[list[Notice], Known]]:
    """Batches one after the other, and what is known after each."""
    chance, known = random.Random(seed), Known()
    for _ in range(steps):
        before = deepcopy(known)
        for _ in range(chance.randint(1, 4)):
            name = chance.choice(NAMES)
            if chance.random() < 0.25:
                known.resources.pop(name, None)
                known.holds.pop(name, None)
            else:
                targets = frozenset(chance.sample(NAMES, chance.randint(0, 2)))
                known.resources[name] = chance.randint(0, 2), targets
                known.holds[name] = frozenset(rule for rule in RULES if chance.random() < 0.15)
        yield _batch(before, known), known


def _batch(before: Known, known: Known) -> list[Notice]:
    notices: list[Notice] = []
    old, new = before.cache(), known.cache()
    for name, (value, targets) in sorted(new.items()):
        rules = known.holds[name] - before.holds.get(name, frozenset())
        strong = tuple(sorted(targets & known.resources.keys()))
        was = old.get(name)
        changed = was != (value, targets) or strong != tuple(sorted(was[1] & before.resources.keys()))
        if rules or changed:
            notices.append(told(name, value, strong, rules))
    for name, rules in sorted(before.holds.items()):
        if gone := rules - known.holds.get(name, frozenset()):
            notices.append(Dropped(name, tuple(sorted(gone))))
    return notices


def told(name: str, value: int, strong: tuple[str, ...], rules: Mapping[str, object] | frozenset[str]) -> Told:
    """A resource as a provider tells it."""
    return Told(name, ((PROPERTY, f'"{value}"'),), strong, tuple(sorted(rules)))


def as_cached(cache: Mapping[str, tuple[int, frozenset[str]]]) -> dict[str, frozenset[tuple[str, str]]]:
    """The same as `Repository.cached` has it."""
    return {name: frozenset([(PROPERTY, f'"{value}"')]) for name, (value, _) in sorted(cache.items())}
