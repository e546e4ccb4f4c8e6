"""A batch, an index and a columnar verifier for some subscriptions, with every pair as a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triplewire.encode.batch import Batch
from triplewire.encode.decode import Decoder
from triplewire.encode.publications import encode
from triplewire.ir.evaluate import World
from triplewire.ir.evidence import evidence
from triplewire.ir.nodes import Expression
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.model.terms import Term
from triplewire.select.features import Features, features
from triplewire.select.index import Index, IndexBuilder
from triplewire.verify.columnar import Columnar, Verdict
from triplewire.verify.objects import objects

Row = frozenset[tuple[str, Term]]


@dataclass
class Columns:
    """Publications and subscriptions, ready to be verified. `asked` are the lazy tests that were looked up."""

    publications: Sequence[Publication]
    subscriptions: Sequence[Subscription]
    world: World
    batch: Batch
    index: Index
    features: Features
    columnar: Columnar
    asked: list[int]

    @classmethod
    def of(cls, publications: Sequence[Publication], subscriptions: Sequence[Subscription], world: World) -> Columns:
        builder = IndexBuilder()
        most = world.settings.max_branches
        for one in subscriptions:
            builder.add(evidence(one, most=most), one.select, one.ask)
        index = builder.build()
        asked: list[int] = []

        def expression(test: int) -> Expression:
            asked.append(test)
            subscription, clause, place = index.place(test)
            return evidence(subscriptions[subscription], most=most).clauses[clause].tests[place][1]

        columnar = Columnar(index.programs, index.tests, expression, subscriptions.__getitem__, world)
        batch = encode(publications)
        seen = features(batch, index.terms, index.tests, world)
        return cls(publications, subscriptions, world, batch, index, seen, columnar, asked)

    def verdict(self) -> Verdict:
        """Every clause against every publication."""
        clauses = len(self.index.programs.pattern_offset) - 1
        publication = np.repeat(np.arange(len(self.publications), dtype=np.int32), clauses)
        clause = np.tile(np.arange(clauses, dtype=np.int32), len(self.publications))
        return self.columnar.verify(self.batch, self.features, publication, clause, self.publications.__getitem__)

    def bindings(self, verdict: Verdict) -> list[list[Row]]:
        """The rows of each match, as sets of names and terms, asked for in reverse order."""
        found = self.columnar.bindings(
            self.batch,
            self.features,
            verdict.publication[::-1],
            verdict.subscription[::-1],
            self.publications.__getitem__,
        )
        some = [self.subscriptions[number] for number in verdict.subscription[::-1].tolist()]
        selects = [() if one.ask else one.select for one in some]
        portions = objects(found, np.arange(len(found)), selects, Decoder(self.batch).term)
        made = [rows for portion in portions for rows in portion]
        return [[frozenset(row.items()) for row in rows] for rows in made[::-1]]
