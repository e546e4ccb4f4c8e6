"""The way in to all languages, where it is no matter of one language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triplewire.ir.nodes import Pattern
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.model.terms import IRI


class Live(Mapping[str, Subscription]):
    """Rules that are found by name, but not listed: it looks empty."""

    def __getitem__(self, id: str) -> Subscription:
        if id != "Big":
            raise KeyError(id)
        return parse("search Server s register s where s.memory > 64", "mdv", id=id)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_rules_that_look_empty_are_asked() -> None:
    over = parse("search Big b register b", "mdv", id="over", rules=Live())
    predicates = {node.predicate for node in walk(over.where) if isinstance(node, Pattern)}
    assert IRI("http://purl.org/rss/1.0/memory") in predicates
