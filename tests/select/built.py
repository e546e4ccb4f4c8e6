"""Clauses of subscriptions, an index over them, and what it selects of publications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.generated import WORLD
from triplewire import Publication, plugins
from triplewire.clauses.builder import ClauseBuilder
from triplewire.clauses.clauses import Clauses
from triplewire.clauses.view import View
from triplewire.encode.publications import encode
from triplewire.engine.segments.arena import Arena
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.normal_form import normal_form
from triplewire.ir.subscription import Subscription
from triplewire.select.index import Index, IndexMaker, Selected

MAKERS = [name for name in plugins.names("matcher") if isinstance(plugins.find("matcher", name), IndexMaker)]
"""The names of the matchers that are indexes."""


def clauses_of(subscriptions: Sequence[Subscription]) -> Clauses:
    """Their clauses."""
    builder = ClauseBuilder()
    for one in subscriptions:
        builder.add(normal_form(one, most=WORLD.settings.max_branches), one.select, one.ask)
    return builder.build()


@dataclass
class Built:
    """An index with its clauses."""

    clauses: Clauses
    index: Index

    @classmethod
    def of(cls, clauses: Clauses, maker: str = "trie") -> Built:
        """Made by the maker of this name."""
        return cls(clauses, plugins.find("matcher", maker).build(clauses))

    def saved(self, maker: str) -> Built:
        """What the arrays of both give again."""
        clauses = Clauses.from_arrays(self.clauses.arrays())
        return Built(clauses, plugins.find("matcher", maker).open(clauses, dict(self.index.arrays())))

    def view(self, publications: Sequence[Publication], world: World = WORLD) -> View:
        """Publications as the clauses see them."""
        return View(encode(publications), self.clauses, world)

    def selected(self, publications: Sequence[Publication], most: int = 1_000, world: World = WORLD) -> Selected:
        """What the index says of publications."""
        return self.index.select(self.view(publications, world), None, most, Arena())

    def selected_in_parts(self, publications: Sequence[Publication], most: int, ends: Sequence[int]) -> list[Selected]:
        """The same, of the publications up to each of the ends, from the end before it."""
        batch = encode(publications)
        whole = View(batch, self.clauses, WORLD)
        prepared, first, parts = self.index.prepare(whole), 0, []
        for last in ends:
            view = whole.part(batch.part(first, last), first, last)
            own = prepared.part(first, last) if prepared is not None else None
            parts.append(self.index.select(view, own, most, Arena()))
            first = last
        return parts

    def to_check(self, selected: Selected, publication: int) -> set[int]:
        """The subscriptions with a clause to check."""
        rows = slice(selected.check_offset[publication], selected.check_offset[publication + 1])
        order, places = self.index.order, selected.check_place[rows]
        return set(self.clauses.facts.owner[places if order is None else order[places]].tolist())


def accepted(selected: Selected, publication: int) -> list[int]:
    """The subscriptions that are accepted, ascending."""
    rows = slice(selected.offset[publication], selected.offset[publication + 1])
    return sorted(selected.subscription[rows].tolist())
