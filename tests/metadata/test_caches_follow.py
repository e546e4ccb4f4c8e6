"""Every cache is the answer of its rules, after every step of generated histories.

In these, documents are registered, changed, deleted and malformed, rules come and go, there are local metadata, and
snapshots in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from amounts import usually
from metadata.provider_histories import (
    DOCUMENTS,
    RULES,
    SCHEMA,
    Expected,
    changes,
    document,
    evaluated,
    rules,
    triples_of,
)
from triplewire.metadata.batches import Batch, Snapshot
from triplewire.metadata.messages import Put
from triplewire.metadata.provider import Provider
from triplewire.metadata.repository import Repository
from triplewire.model.terms import Triple, parse_term

STEPS = 10


class Side:
    """A repository that follows a provider without a network, by what would go over it."""

    def __init__(self, provider: Provider, repository: Repository) -> None:
        self.provider, self.repository, self.name = provider, repository, repository.name
        self.local: dict[str, frozenset[Triple]] = {}

    def follow(self, chance: random.Random) -> None:
        position = self.repository.position
        lines = self.provider.batches(self.name, position.stream, position.number)
        if lines is None or chance.random() < 0.1:
            told = "\n".join(self.provider.snapshot(self.name).lines()).encode()
            self.repository.restore(Snapshot.of_lines(told), "here")
            return
        for line in lines:
            self.repository.receive(position.stream, Batch.of_line(line))
            if chance.random() < 0.2:
                self.repository.receive(position.stream, Batch.of_line(line))
        if lines and chance.random() < 0.7:
            self.provider.acknowledge(self.name, position.stream, self.repository.position.number)

    def change_local(self, chance: random.Random) -> None:
        put = document(chance, chance.randint(1, 4))
        put = Put(put.document.replace(DOCUMENTS, "urn:local:"), put.content)
        self.repository.register([put])
        self.local[put.document] = triples_of(put)
        if chance.random() < 0.3:
            gone = chance.choice(sorted(self.local))
            self.repository.withdraw([gone])
            del self.local[gone]

    def check(self, expected: Expected, chance: random.Random) -> None:
        results = dict(sorted(expected.results(self.name).items()))
        assert {id: resources for _, id, resources in self.provider.results(self.name)} == results
        assert dict(self.repository.results()) == results
        cache = expected.cache(self.name)
        assert self.repository.cached() == cache
        known = {
            Triple(parse_term(f"<{iri}>"), parse_term(f"<{name}>"), parse_term(value))  # type: ignore[arg-type]  # IRIs
            for iri, statements in cache.items()
            for name, value in statements
        }
        known = known.union(*self.local.values())
        for id in chance.sample(sorted(RULES), 4):
            rule = RULES[id]
            if id != "over":  # which names a rule, and that means what the rule holds
                assert sorted(self.repository.query(rule.query)) == evaluated(rule, known), id


@pytest.mark.parametrize("seed", range(usually(4, 2_500)))
def test_caches_are_the_answers_of_their_rules(seed: int, new_database: Callable[[], str]) -> None:
    chance, expected = random.Random(seed), Expected()
    with (
        Provider.open(new_database()) as provider,
        Repository.open(new_database(), "north") as north,
        Repository.open(new_database(), "south") as south,
    ):
        provider.use_schema(SCHEMA.encode(), "http://terms.example/")
        sides = [Side(provider, north), Side(provider, south)]
        for _ in range(STEPS):
            side = chance.choice(sides)
            own = expected.rules.setdefault(side.name, {})
            for _ in range(chance.randint(1, 3)):
                what = chance.random()
                if what < 0.5:
                    batch = changes(chance)
                    provider.apply(batch)
                    expected.apply(batch)
                elif what < 0.75 or not own:
                    new = rules(chance)
                    assert not [each for each in provider.subscribe(side.name, new).refused if not each.is_warning]
                    own.update({rule.id: rule for rule in new})
                elif what < 0.85:
                    gone = chance.choice(sorted(own.keys() - ({"fast"} if "over" in own else set())))
                    provider.unsubscribe(side.name, [gone])
                    del own[gone]
                else:
                    side.change_local(chance)
            for each in sides:
                each.follow(chance)
                each.check(expected, chance)
