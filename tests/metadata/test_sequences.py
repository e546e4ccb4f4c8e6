"""Generated sequences of calls: after each, what rules hold and what caches have is what plain evaluation says."""

from __future__ import annotations

import gc
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.engine import Connection

from amounts import IN_FULL, usually
from databases import ON_SPARK
from metadata.generated import SCHEMA, STRONG, change, rule
from metadata.naive import Cache, Naive, shape
from triplewire.errors import LimitError
from triplewire.metadata.messages import Applied
from triplewire.metadata.registry import Registry
from triplewire.metadata.tables import metadata

REPOSITORIES = ("one", "two")


class Followed:
    """A registry, what it should be, and caches that follow it."""

    def __init__(self, registry: Registry, *, typed: bool) -> None:
        self.registry, self.typed = registry, typed
        self.naive = Naive(STRONG if typed else frozenset())
        self.caches: dict[str, Cache] = defaultdict(Cache)
        self.refused = 0
        if typed:
            registry.use_schema(SCHEMA.encode())

    def told(self, applied: Applied) -> None:
        """Hand on the notices."""
        for repository, notices in applied.notices.items():
            self.caches[repository].follow(notices)

    def step(self, chance: random.Random, number: int) -> str:
        """One call; returns what it was."""
        pick, repository = chance.random(), chance.choice(REPOSITORIES)
        own = [
            name for owner, name in self.naive.rules if owner == repository and (owner, name) not in self.naive.ended
        ]
        if pick < 0.6:
            changes = [change(chance, typed=self.typed) for _ in range(chance.choice((1, 1, 2, 3)))]
            self.naive.apply(changes)
            self.told(self.registry.apply(changes))
            return f"apply {changes}"
        if pick < 0.9 or not own:
            rules = [
                rule(chance, f"r{number}_{place}", own, typed=self.typed) for place in range(chance.choice((1, 3)))
            ]
            applied = self.registry.subscribe(repository, rules)
            self.naive.rules |= {(repository, x.id): x for x in rules if x.id in applied.ids}
            self.refused += len(rules) - len(applied.ids)
            self.told(applied)
            return f"subscribe {repository} {rules}"
        names = chance.sample(own, min(len(own), 2))
        self.told(self.registry.unsubscribe(repository, names))
        self.naive.ended |= {(repository, name) for name in names}
        return f"unsubscribe {repository} {names}"

    def check(self, told: str) -> None:
        """Compare all there is."""
        expected = self.naive.results()
        assert {(owner, name): held for owner, name, held in self.registry.results()} == expected, told
        contents = self.naive.caches()
        for repository in REPOSITORIES:
            held = {name: x for (owner, name), x in expected.items() if owner == repository and x}
            assert self.caches[repository].results() == held, told
            assert shape(self.caches[repository].content()) == shape(contents.get(repository, {})), told


CASES = usually(6, 200)


@pytest.mark.parametrize("seed", range(CASES))
def test_caches_are_what_plain_evaluation_says(seed: int, new_database: Callable[[], str]) -> None:
    """`make full` follows 10,000 sequences on SQLite and 2,000 on PostgreSQL."""
    with Registry.open(new_database()) as registry, _collecting_rarely():
        for more in range(usually(1, 50 if registry.database.is_sqlite else 10)):
            _follow(registry, seed + more * CASES, 24)
            _empty(registry)
            if more % 10 == 9:
                gc.collect()


@pytest.mark.slow
@pytest.mark.skipif(not IN_FULL, reason="a minute for four steps: `make full`")
@pytest.mark.parametrize("new_database", [ON_SPARK], indirect=True)
@pytest.mark.parametrize("seed", range(6))
def test_caches_are_the_same_on_spark(seed: int, new_database: Callable[[], str]) -> None:
    with Registry.open(new_database()) as registry:
        _follow(registry, seed + 2, 16)


def _follow(registry: Registry, seed: int, steps: int) -> None:
    """Half of the sequences with a schema, which makes references strong. The registry has to be empty."""
    chance, number = random.Random(seed), 0
    followed = Followed(registry, typed=seed % 2 == 1)
    while number < steps:
        number += 1
        try:
            told = followed.step(chance, number)
            followed.check(told)
        except LimitError:  # a rule over rules that multiply
            break
    assert followed.refused < number * 2


def _empty(registry: Registry) -> None:
    """Make it as it was at first: for a new one all statements would be compiled anew."""

    def work(connection: Connection) -> None:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())

    registry.database.write(work)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Statements and their compiled forms are many objects: collecting garbage again and again took a quarter of all
    processor time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
