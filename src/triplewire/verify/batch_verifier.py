"""The verifier for batches: clauses are joined by a kernel over ids, and only what they do not say is evaluated.

Pairs come from `triplewire.select`. A subscription whose clauses say all is decided by them alone; for any
other they are the first hurdle, and `triplewire.ir.evaluation.evaluate` decides. Bindings: `triplewire.verify.rows`.

What one pair can cost: `max_steps` triples tried by the join and, where that was not enough to decide, `max_steps` of
the evaluation; past it the pair, and no other, fails with `LimitError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.columns import ends
from triplewire.clauses.table import CALLS, DISTINCT, EXACT
from triplewire.clauses.view import View
from triplewire.encode.batch import Bytes, Ids
from triplewire.encode.decode import Decoder
from triplewire.errors import LimitError, TriplewireError
from triplewire.ir.evaluation.evaluate import Answer, CallResults, World, evaluate
from triplewire.ir.nodes import Expression
from triplewire.ir.subscription import Subscription
from triplewire.kernels.joins.alike import forms
from triplewire.kernels.joins.network.columns import StepColumns
from triplewire.kernels.shared.columns import fixed_array
from triplewire.kernels.shared.outcomes import LEFT, MATCH, MISS, TRUNCATED, UNKNOWN
from triplewire.model.publication import Publication
from triplewire.verify.answers import ResidualTests
from triplewire.verify.cut import Cuts
from triplewire.verify.evaluated import Content
from triplewire.verify.rows import Bindings, Row, bindings_of, distinct
from triplewire.verify.shared_joins import SharedJoins
from triplewire.verify.solve import Pairs, Solver

Publications = Callable[[int], Publication]
_FEW = 1 << 12  # ids in rows that become Python lists
_ONE_EMPTY: list[Row] = [()]
_ROWS = 1 << 20  # that are put together at once, to count how many there are

Failure = tuple[int, int, TriplewireError]


@dataclass(slots=True)
class Verified:
    """What became of pairs. Those that match are columns, each pair once. `failures` could not be decided, and say why.
    `waiting` are the pairs (publication, subscription) that operators have to decide. `join_steps`: shared ones that
    were solved."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    failures: list[Failure] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    join_steps: int = 0

    def distinct(self, has_alternatives: NDArray[np.bool_]) -> Verified:
        """Each pair once: of the clauses of an ASK query each may be a match. `has_alternatives`: subscription -> has
        it several clauses?"""
        several = np.flatnonzero(has_alternatives[self.subscription])
        keys = self.publication[several].astype(np.int64) << 32 | self.subscription[several]
        repeated = np.delete(several, np.unique(keys, return_index=True)[1])
        if not len(repeated):
            return self
        first = np.delete(np.arange(len(self.publication)), repeated)
        return replace(
            self,
            publication=self.publication[first],
            subscription=self.subscription[first],
            truncated=self.truncated[first],
        )


class BatchVerifier:
    """Verifies for one segment. Any thread may ask it.

    `expression` gives the residual predicate with a number, `subscription` the subscription with a number, as it is
    evaluated. `proven`: the pairs are those of an index that proves constants; `order`: the clauses in its order
    (both: `triplewire.select.index`). `network`: that of these clauses, this `proven` and `order`, where it has been
    made.
    """

    def __init__(
        self,
        clauses: Clauses,
        expression: Callable[[int], Expression],
        subscription: Callable[[int], Subscription],
        world: World,
        proven: bool = False,
        order: Ids | None = None,
        network: StepColumns | None = None,
    ) -> None:
        self._table = clauses.table
        self._subscription = subscription
        self._world = world
        self._owner = clauses.facts.owner
        self._has_alternatives = clauses.has_alternatives if clauses.have_alternatives else None
        self._tests = clauses.tests
        self._residual = ResidualTests(len(clauses.tests), expression, lambda test: clauses.place(test)[0], world)
        self._solver = Solver(clauses, self._residual, world)
        self._shared = SharedJoins(clauses, self._solver.stated, proven, order, network)

    @property
    def network(self) -> StepColumns:
        """The join network, which is made when it is first asked for: that takes a while where there are many
        clauses."""
        return self._shared.network

    def prepare(self, most: int) -> None:
        """Compute the expressions of this many residual predicates; a subscription is compiled for each."""
        self._residual.prepare(np.flatnonzero(self._tests.is_residual)[:most].tolist())

    def verify(self, view: View, publication: Ids, place: Ids, content: Content) -> Verified:
        """Which pairs (publication, subscription) match, of these pairs of a publication and the place of a clause in
        the order? What had to be evaluated is added to the answers of `content`.

        The join network decides first, and what it leaves is searched.
        """
        if not len(place):
            return Verified(publication, place, np.zeros(0, np.bool_))
        shared, join_steps = self._shared.decide(view, publication, place, self._most)
        verdict = Verified(shared.publication, shared.subscription, shared.truncated, join_steps=join_steps)
        if len(shared.left_clause):
            joined = self._joined(view, shared.left_publication, shared.left_clause, content)
            verdict.failures, verdict.waiting = joined.failures, joined.waiting
            verdict.publication = np.concatenate([shared.publication, joined.publication])
            verdict.subscription = np.concatenate([shared.subscription, joined.subscription])
            verdict.truncated = np.concatenate([shared.truncated, joined.truncated])
        return verdict.distinct(self._has_alternatives) if self._has_alternatives is not None else verdict

    def _joined(self, view: View, publication: Ids, clause: Ids, content: Content) -> Verified:
        """The verdict on pairs (publication, clause) that the join network does not decide by counting."""
        pairs, subscription = self._grouped(publication, clause)
        exact = (self._table.flags[subscription] & EXACT) != 0
        outcome = self._listed_outcomes(view, pairs, exact)
        left = np.flatnonzero(outcome == LEFT)
        if len(left):
            searched = pairs if len(left) == len(pairs) else pairs.take(left)
            outcome[left] = self._searched_outcomes(view, searched, subscription[left], content.publication)
        truncated = outcome == TRUNCATED
        matches = exact & ((outcome == MATCH) | (outcome == TRUNCATED))
        failures: list[Failure] = []
        left = (outcome != MISS) & ~matches
        called = left & ((self._table.flags[subscription] & CALLS) != 0)
        waiting = list(zip(pairs.publication[called].tolist(), subscription[called].tolist(), strict=True))
        for at in np.flatnonzero(left & ~called).tolist():
            where, number = int(pairs.publication[at]), int(subscription[at])
            answer = self._evaluated(where, number, content, failures)
            if answer is not None and answer.bindings:
                matches[at], truncated[at] = True, answer.truncated
                content.answers.put(self, where, number, answer)
        return Verified(pairs.publication[matches], subscription[matches], truncated[matches], failures, waiting)

    def _listed_outcomes(self, view: View, pairs: Pairs, exact: NDArray[np.bool_]) -> Bytes:
        """The outcome of pairs whose solutions the join network lists: several may be one binding. LEFT of others."""
        outcome = np.full(len(pairs), LEFT, np.uint8)
        may_list = self._shared.may_list(pairs.clauses[pairs.offset[:-1]])
        for portion in self._portions(np.flatnonzero(exact & (pairs.width > 0) & may_list)):
            own = pairs.take(portion)
            solved = self._shared.listed(view, own, self._most, self._world.settings.max_steps)
            more = bindings_of(solved, own, self._most).more
            outcome[portion] = np.where((solved.outcome == MATCH) & more, TRUNCATED, solved.outcome)
        return outcome

    def _searched_outcomes(self, view: View, pairs: Pairs, subscription: Ids, publications: Publications) -> Bytes:
        """The outcome of pairs by the search."""
        batch, features = view.batch, view.features
        outcome = self._solver.solve(batch, features, pairs, False, publications).outcome
        for portion in self._portions(np.flatnonzero((outcome == TRUNCATED) & ~self._counted(pairs, subscription))):
            own = pairs.take(portion)
            solved = self._solver.solve(batch, features, own, True, publications)
            more = bindings_of(solved, own, self._most).more
            is_match = (solved.outcome == MATCH) | (solved.outcome == TRUNCATED)
            outcome[portion] = np.where(is_match, np.where(more, TRUNCATED, MATCH), solved.outcome)
        return outcome

    def _portions(self, pairs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Pairs in portions whose rows are not too many to be put together at once."""
        step = max(_ROWS // self._most, 1)
        return [pairs[start : start + step] for start in range(0, len(pairs), step)]

    def bindings(self, view: View, publication: Ids, subscription: Ids, content: Content) -> Bindings:
        """The bindings of pairs that match, in the order of the pairs. `triplewire.ir.evaluation.evaluate` gives them
        where clauses do not express all of a subscription, and where they are cut and `Cuts` cannot find those to keep.
        Past `max_steps` or `max_binding_bytes` there are fewer, and none where a text can no longer be compiled; the
        answer says so. Pairs of one publication and the same clauses are solved once."""
        batch = view.batch
        number, first = distinct(publication.astype(np.int64) << 32 | self._forms[subscription])
        first = first[np.argsort(publication[first], kind="stable")]
        bindings, unsure = self._solved(view, publication[first], subscription[first], content.publication)
        group = np.empty(len(first), np.int32)
        group[number[first]] = np.arange(len(first))
        bindings = bindings.of_groups(group[number])
        cuts, own = Cuts(batch, content.publication, self._world), {}
        for at in np.flatnonzero(unsure[bindings.group]).tolist():
            place, number_asked = int(publication[at]), int(subscription[at])
            if (answer := content.answers.get(self, place, number_asked)) is not None:
                bindings.answers[at] = answer
                continue
            try:
                asked = self._subscription(number_asked)
            except TriplewireError:
                bindings.answers[at] = Answer((), truncated=True)
                continue
            rows = cuts.rows(place, asked) if bindings.more[at] else None
            if rows is not None and rows.shape == (bindings.count[at], bindings.width[at]):
                own[at] = rows
            else:
                bindings.answers[at] = self._listed(asked, content.publication(place), content.calls.of(place))
        most_bytes = self._world.settings.max_binding_bytes
        return bindings.replaced(own).within(most_bytes, batch.terms, Decoder(batch).terms)

    def few_rows(self, view: View, publication: Ids, subscription: Ids) -> list[list[Row]] | None:
        """The rows of `bindings` of a few pairs, ascending by publication, in any order, as Python lists: with few,
        NumPy takes longer. None where one of them has several clauses or components, or they have many rows."""
        table, terms, settings, most = self._table, view.batch.terms, self._world.settings, self._most
        clause = table.clause_offset[subscription].astype(np.int32)
        is_single = (table.clause_offset[subscription + 1] == clause + 1) & ((table.flags[subscription] & EXACT) != 0)
        if not is_single.all():
            return None
        pairs = Pairs(publication, np.arange(len(clause) + 1), clause, table.width[subscription])
        solved = self._shared.listed(view, pairs, most, settings.max_steps)
        longest = 1 + len(terms.text) + 4 * sum(map(len, terms.suffixes))  # bytes: no term has more
        if (solved.outcome != MATCH).any() or len(solved.rows) > min(_FEW, settings.max_binding_bytes // longest):
            return None
        ids, widths, rows = solved.rows.tolist(), pairs.width.tolist(), [_ONE_EMPTY] * len(pairs)
        if len(solved.pieces) != len(widths) - widths.count(0):
            return None
        for pair, _, begin, count in solved.pieces.tolist():
            if count > most:
                return None
            step = widths[pair]
            rows[pair] = [tuple(ids[at : at + step]) for at in range(begin, begin + count * step, step)]
        return rows

    def _solved(
        self, view: View, publication: Ids, subscription: Ids, publications: Publications
    ) -> tuple[Bindings, NDArray[np.bool_]]:
        """What the clauses say of pairs, ascending by publication; and where that is not all, or too much."""
        table = self._table
        exact = (table.flags[subscription] & EXACT) != 0
        begin = table.clause_offset[:-1][subscription]
        lengths = np.where(exact, table.clause_offset[subscription + 1] - begin, 0)
        offset = ends(lengths)
        clauses = np.arange(offset[-1]) + np.repeat(begin - offset[:-1], lengths)
        pairs = Pairs(publication, offset, clauses.astype(np.int32), self._table.width[subscription])
        solved = self._shared.listed(view, pairs, self._most, self._world.settings.max_steps)
        left = np.flatnonzero(solved.outcome == LEFT)
        if len(left):
            others = pairs if len(left) == len(pairs) else pairs.take(left)
            solved = solved.filled(
                left, self._solver.solve(view.batch, view.features, others, True, publications, matched=True)
            )
        bindings = bindings_of(solved, pairs, self._most)
        return bindings, ~exact | bindings.more | (solved.outcome >= UNKNOWN)

    def _listed(self, subscription: Subscription, publication: Publication, calls: CallResults) -> Answer:
        """The bindings of a match: past `max_steps` those found so far, and maybe none."""
        try:
            return evaluate(subscription, publication, self._world, calls, listing=True)
        except LimitError:
            return Answer((), truncated=True)

    @cached_property
    def _forms(self) -> Ids:
        """Of each subscription, the first that has the same clauses, where they say all."""
        table = self._table
        exact = (table.flags & EXACT) != 0
        kind = np.where(exact, table.selected, -1 - np.arange(len(table))).astype(np.int32)
        form, slots = np.empty(len(kind), np.int32), np.full(1 << (2 * len(kind)).bit_length(), -1, np.int32)
        stated = table.columns
        flat = stated._replace(pattern=stated.pattern.reshape(-1))
        forms(kind, fixed_array(table.clause_offset), flat, slots, form)
        return form

    @property
    def _most(self) -> int:
        return self._world.settings.most_bindings

    def _grouped(self, publication: Ids, clause: Ids) -> tuple[Pairs, Ids]:
        """The clauses of each pair (publication, subscription), and its subscription."""
        keys = np.sort(publication.astype(np.int64) << 32 | clause)
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        keys = keys[first]
        publication, clause = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
        owner = self._owner[clause]
        first = np.ones(len(keys), np.bool_)
        first[1:] = (owner[1:] != owner[:-1]) | (publication[1:] != publication[:-1])
        begins = np.flatnonzero(first)
        subscription = owner[begins]
        offset = np.append(begins, len(keys))
        return Pairs(publication[begins], offset, clause, self._table.width[subscription]), subscription

    def _counted(self, pairs: Pairs, subscription: Ids) -> NDArray[np.bool_]:
        """Pair -> is the number of its solutions certainly the number of its bindings?"""
        distinct = (self._table.flags[subscription] & DISTINCT) != 0
        counted: NDArray[np.bool_] = distinct & (np.diff(pairs.offset) == 1)
        return counted

    def _evaluated(self, publication: int, number: int, content: Content, failures: list[Failure]) -> Answer | None:
        try:
            return evaluate(self._subscription(number), content.publication(publication), self._world)
        except TriplewireError as error:
            failures.append((publication, number, error))
            return None
