"""A repository's cache: what rules hold and what that leads to strongly, after every batch; nothing twice, no gap."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amounts import usually
from metadata.cache_history import RULES, as_cached, histories, told
from triplewire.errors import GapError
from triplewire.metadata.batches import Batch, Ended, Snapshot
from triplewire.metadata.messages import Dropped, RuleText
from triplewire.metadata.repository import Repository

ALL_RULES = tuple(RuleText(rule, f"search A a register a -- {rule}") for rule in RULES)
BEGIN = Snapshot("stream", 0, 0, ALL_RULES)


@pytest.mark.parametrize("seed", range(usually(20, 400)))
def test_the_cache_is_what_rules_hold_and_lead_to(seed: int, new_database: Callable[[], str]) -> None:
    """After each batch, also one that comes twice; and after a snapshot in the middle."""
    with Repository.open(new_database(), "one") as repository, Repository.open(new_database(), "late") as late:
        repository.restore(BEGIN)
        for number, (notices, known) in enumerate(histories(seed, 12), 1):
            batch = Batch.of_line(Batch(number, number, tuple(notices)).line())
            assert repository.receive("stream", batch)
            assert not repository.receive("stream", batch)
            assert repository.cached() == as_cached(known.cache())
            assert dict(repository.results()) == known.results()
            if number == 6:
                items = [told(name, value, tuple(sorted(strong & known.resources.keys())), known.holds[name])
                         for name, (value, strong) in known.cache().items()]  # fmt: skip
                whole = "\n".join(Snapshot("other", number, number, (*ALL_RULES, *items)).lines())
                late.restore(Snapshot.of_lines(whole.encode()))
            elif number > 6:
                assert late.receive("other", batch)
                assert late.cached() == as_cached(known.cache())


def test_a_gap_is_refused_and_changes_nothing(database_url: str) -> None:
    with Repository.open(database_url, "one") as repository:
        with pytest.raises(GapError, match="its snapshot is missing before batch 1"):
            repository.receive("stream", Batch(1, 1))
        repository.restore(BEGIN)
        with pytest.raises(GapError, match="batch 1 is missing before batch 2"):
            repository.receive("stream", Batch(2, 1, (told("a", 1, (), frozenset(["r1"])),)))
        assert repository.cached() == {}
        assert repository.position == ("stream", 0, 0)


def test_a_circle_of_strong_references_lives_while_a_rule_holds_one_of_it(database_url: str) -> None:
    circle = (told("a", 1, ("b",), frozenset(["r1"])), told("b", 1, ("c",), {}), told("c", 1, ("a",), {}))
    with Repository.open(database_url, "one") as repository:
        repository.restore(BEGIN)
        repository.receive("stream", Batch(1, 1, circle))
        repository.receive("stream", Batch(2, 2, (told("b", 2, ("c",), frozenset(["r2"])), Dropped("a", ("r1",)))))
        assert sorted(repository.cached()) == ["a", "b", "c"]
        repository.receive("stream", Batch(3, 3, (Dropped("b", ("r2",)),)))
        assert repository.cached() == {}


def test_a_rule_that_ends_takes_what_it_alone_holds_along(database_url: str) -> None:
    first = (told("a", 1, ("b",), frozenset(["r1"])), told("b", 1, (), {}), told("c", 1, (), frozenset(["r1", "r2"])))
    with Repository.open(database_url, "one") as repository:
        repository.restore(BEGIN)
        repository.receive("stream", Batch(1, 1, first))
        repository.receive("stream", Batch(2, 1, (Ended("r1"),)))
        assert sorted(repository.cached()) == ["c"]
        assert dict(repository.results()) == {"r2": ["c"], "r3": []}
        assert [rule.id for rule in repository.rules()] == ["r2", "r3"]
