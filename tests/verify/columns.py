"""A view, clauses and a columnar verifier for some subscriptions, with every pair as a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.builder import ClauseBuilder
from triplewire.clauses.clauses import Clauses
from triplewire.clauses.view import View
from triplewire.encode.batch import Ids
from triplewire.encode.decode import Decoder
from triplewire.encode.publications import encode
from triplewire.engine.chunk import Chunk
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Expression
from triplewire.ir.normal_form import normal_form
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.model.terms import Term
from triplewire.select.everything import Everything
from triplewire.verify.batch_verifier import BatchVerifier
from triplewire.verify.bindings import objects
from triplewire.verify.verifier import Verified, VerifierInput

Row = frozenset[tuple[str, Term]]


def terms_of(known: Sequence[Term]) -> Callable[[NDArray[np.integer[Any]]], list[Term]]:
    """Reads terms by their numbers in a list."""
    return lambda numbers: [known[number] for number in numbers.tolist()]


@dataclass(frozen=True)
class Order(Everything):
    """An index that names all clauses in this order, and proves constants or not."""

    proves_constants: bool = False
    order: Ids | None = None


@dataclass
class Columns:
    """Publications and subscriptions, ready to be verified. `asked` are the residual predicates that were looked up."""

    publications: Sequence[Publication]
    subscriptions: Sequence[Subscription]
    world: World
    view: View
    clauses: Clauses
    columnar: BatchVerifier
    asked: list[int]

    @classmethod
    def of(
        cls,
        publications: Sequence[Publication],
        subscriptions: Sequence[Subscription],
        world: World,
        proven: bool = False,
        is_reversed: bool = False,
    ) -> Columns:
        """`proven`: does the index prove constants? `is_reversed`: its order of the clauses begins with the last."""
        builder = ClauseBuilder()
        most = world.settings.max_branches
        for one in subscriptions:
            builder.add(normal_form(one, most=most), one.select, one.ask)
        clauses = builder.build()
        asked: list[int] = []

        def expression(test: int) -> Expression:
            asked.append(test)
            subscription, clause, place = clauses.place(test)
            return normal_form(subscriptions[subscription], most=most).clauses[clause].tests[place][1]

        order = np.arange(clauses.count, dtype=np.int32)[::-1].copy() if is_reversed else None
        index = Order(clauses.count, proves_constants=proven, order=order)
        columnar = BatchVerifier(VerifierInput(clauses, index, expression, subscriptions.__getitem__, world))
        view = View(encode(publications), clauses, world)
        return cls(publications, subscriptions, world, view, clauses, columnar, asked)

    def verdict(self) -> Verified:
        """Every clause against every publication."""
        clauses = self.clauses.count
        publication = np.repeat(np.arange(len(self.publications), dtype=np.int32), clauses)
        place = np.tile(np.arange(clauses, dtype=np.int32), len(self.publications))
        return self.columnar.verify(self.view, publication, place, Chunk(self.publications))

    def bindings(self, verdict: Verified) -> list[list[Row]]:
        """The rows of each match, as sets of names and terms, asked for in reverse order."""
        found = self.columnar.bindings(
            self.view,
            verdict.publication[::-1],
            verdict.subscription[::-1],
            Chunk(self.publications),
        )
        some = [self.subscriptions[number] for number in verdict.subscription[::-1].tolist()]
        selects = [() if one.ask else one.select for one in some]
        portions = objects(found, np.arange(len(found)), selects, Decoder(self.view.batch).terms)
        made = [rows for portion in portions for rows in portion]
        return [[frozenset(row.items()) for row in rows] for rows in made[::-1]]
