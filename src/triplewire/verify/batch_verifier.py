"""The verifier for batches: clauses are joined by kernels over ids, and only what they do not say is evaluated.

Pairs come from `triplewire.select`. They go through the steps of `BatchVerifier.steps`, in this order, and each step
takes the pairs that are open. A subscription whose clauses say all is decided by them alone; for any other they are the
first hurdle, and `triplewire.ir.evaluation.evaluate` decides.

What one pair can cost: `max_steps` triples tried by the join and, where that was not enough to decide, `max_steps` of
the evaluation; past it the pair, and no other, fails with `LimitError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import ASK, CALLS, DISTINCT, EXACT
from triplewire.clauses.node_tests.columns import inverse, slices
from triplewire.clauses.view import Features, View
from triplewire.encode.batch import Bytes, Ids
from triplewire.encode.decode import Decoder
from triplewire.encode.names import strings_at
from triplewire.encode.strings import of_text
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import Answer, evaluate
from triplewire.kernels.shared.columns import LEFT, MATCH, MISS, TRUNCATED, Triples, fixed_array
from triplewire.verify.bindings import term_order
from triplewire.verify.kernels.columns import FEW, StepColumns
from triplewire.verify.kernels.rows import forms, grouped_pairs
from triplewire.verify.network import SharedJoins
from triplewire.verify.operators import Content
from triplewire.verify.residual_tests import ResidualTests
from triplewire.verify.rows import Bindings, Row, bindings_of
from triplewire.verify.solve import Pairs, Searched, Solved, Solver
from triplewire.verify.verifier import Failure, Verified, VerifierInput

_FEW = 1 << 12  # ids in rows that become Python lists
_ONE_EMPTY: list[Row] = [()]
_ROWS = 1 << 20  # that are put together at once, to count how many there are

_NONE = np.zeros(0, np.int32)


@dataclass(slots=True)
class Work:
    """The pairs of one call on their way through the steps. The rows of bindings are asked for where there are
    `members`.

    `candidates` are pairs (publication, place of a clause) of which nothing is known. `pairs`, of a publication and all
    candidate clauses of a subscription, are open while their `outcome` is LEFT or at least UNKNOWN; `is_exact`: do the
    clauses say all of the subscription? `matches` are columns of those decided. `members` are known matches, as
    publications, subscriptions and the numbers of the pairs with the same clauses. The rows of a pair begin at `start`
    in `rows`, and they are `count`; a member in `answers` has its bindings there.
    """

    view: View
    content: Content
    candidates: tuple[Ids, Ids] = (_NONE, _NONE)
    members: tuple[Ids, Ids, Ids] | None = None
    pairs: Pairs = field(init=False)
    subscription: Ids = field(init=False)
    is_exact: NDArray[np.bool_] = field(init=False)
    outcome: Bytes = field(init=False)
    start: NDArray[np.int64] = field(init=False)
    count: NDArray[np.int64] = field(init=False)
    is_decided: bool = False  # all candidates are, and there are no pairs
    matches: list[tuple[Ids, Ids, NDArray[np.bool_]]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    join_steps: int = 0
    rows: list[Ids] = field(default_factory=list)
    answers: dict[int, Answer] = field(default_factory=dict)

    def open(self, pairs: Pairs, subscription: Ids, is_exact: NDArray[np.bool_]) -> None:
        """Begin with these pairs."""
        self.pairs, self.subscription, self.is_exact = pairs, subscription, is_exact
        self.outcome = np.full(len(pairs), LEFT, np.uint8)
        self.start, self.count = np.zeros((2, len(pairs)), np.int64)

    def take(self, numbers: NDArray[np.int64]) -> Pairs:
        """The pairs with these numbers."""
        return self.pairs if len(numbers) == len(self.pairs) else self.pairs.take(numbers)

    def put(self, numbers: NDArray[np.int64], solved: Solved, bindings: Bindings) -> None:
        """What the solutions of pairs say, and their rows, each once. `numbers`: those of the pairs."""
        if len(numbers) == len(self.pairs) and not bindings.more.any() and (solved.outcome == MATCH).all():
            self.outcome, self.is_decided = solved.outcome, self.members is not None
        else:
            is_match = (solved.outcome == MATCH) | (solved.outcome == TRUNCATED)
            self.outcome[numbers] = np.where(is_match, np.where(bindings.more, TRUNCATED, MATCH), solved.outcome)
        if self.members is not None:
            self.start[numbers], self.count[numbers] = bindings.start + sum(map(len, self.rows)), bindings.count
            self.rows.append(bindings.rows)


class BatchVerifier:
    """Verifies for one segment, with the join network. Any thread may ask it. `saved` are the network's arrays."""

    def __init__(self, given: VerifierInput) -> None:
        clauses = given.clauses
        self._table = clauses.table
        self._subscription = given.subscription
        self._world = given.world
        self._most = given.world.settings.most_bindings
        self._owner = clauses.facts.owner
        self._has_alternatives = clauses.has_alternatives if clauses.have_alternatives else None
        self._is_residual = clauses.tests.is_residual
        self._residual = ResidualTests(
            len(clauses.tests), given.expression, lambda test: clauses.place(test)[0], given.world
        )
        self._solver = Solver(clauses, self._residual, given.world)
        network = StepColumns(**given.saved) if given.saved else None
        proven, order = given.index.proves_constants, given.index.order
        self._shared = SharedJoins(clauses, self._solver.stated, proven, order, network)

    @property
    def steps(self) -> tuple[Callable[[Work], None], ...]:
        """How pairs are verified, in this order. Matches whose rows are asked for are not decided again."""
        return self._decide, self._list, self._search, self._keep_first, self._evaluate

    @property
    def network(self) -> StepColumns:
        """The join network, which is made when it is first asked for: that takes a while where there are many
        clauses."""
        return self._shared.network

    @property
    def network_rows(self) -> int:
        """See `triplewire.verify.verifier.Verifier`."""
        return self._shared.network_rows

    def prepare(self, most: int) -> None:
        """Compute the expressions of this many residual predicates; a subscription is compiled for each."""
        self._residual.prepare(np.flatnonzero(self._is_residual)[:most].tolist())

    def ready(self) -> None:
        """Make the network."""
        _ = self.network

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The network's arrays, where it has been made."""
        return self.network._asdict() if self.network_rows else {}

    def verify(self, view: View, publication: Ids, place: Ids, content: Content) -> Verified:
        """See `triplewire.verify.verifier.Verifier`."""
        work = Work(view, content, (publication, place))
        self._run(work)
        if len(work.matches) == 1:
            columns = work.matches[0]
        else:
            publications, subscriptions, truncated = zip(*work.matches, strict=True)
            columns = np.concatenate(publications), np.concatenate(subscriptions), np.concatenate(truncated)
        verdict = Verified(*columns, work.failures, work.waiting, work.join_steps)
        return verdict.distinct(self._has_alternatives) if self._has_alternatives is not None else verdict

    def bindings(self, view: View, publication: Ids, subscription: Ids, content: Content) -> Bindings:
        """See `triplewire.verify.verifier.Verifier`. Pairs of one publication and the same clauses are solved once.
        Past `max_steps` or `max_binding_bytes` there are fewer rows, and none where a text can no longer be compiled;
        the answer says so."""
        group, first, offset, clauses = grouped_pairs(publication, subscription, *self._forms)
        work = Work(view, content, members=(publication, subscription, group))
        subscription = subscription[first]
        pairs = Pairs(publication[first], offset, clauses, self._table.width[subscription])
        is_exact = (self._table.flags[subscription] & EXACT) != 0
        work.open(pairs, subscription, is_exact)
        self._run(work)
        rows, start, count = np.concatenate([_NONE, *work.rows]), work.start[group], work.count[group]
        more = work.outcome[group] == TRUNCATED
        bindings = Bindings(rows, start, count, pairs.width[group], more, group, work.answers)
        return bindings.within(self._world.settings.max_binding_bytes, view.batch.terms, Decoder(view.batch).terms)

    def few_rows(self, view: View, publication: Ids, subscription: Ids) -> list[list[Row]] | None:
        """See `triplewire.verify.verifier.Verifier`; with few pairs, NumPy takes longer. None where one of them has
        several clauses or components, or they have many rows."""
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

    def _run(self, work: Work) -> None:
        """All steps, as long as pairs are open."""
        for step in self.steps:
            step(work)
            if work.is_decided:
                return

    def _decide(self, work: Work) -> None:
        """The network counts solutions of candidates. What it leaves becomes pairs."""
        if work.members is not None:
            return
        decided, work.join_steps = self._shared.decide(work.view, *work.candidates, self._most)
        work.matches.append((decided.publication, decided.subscription, decided.truncated))
        work.is_decided = not len(decided.left_clause)
        if not work.is_decided:
            keys = np.unique(decided.left_publication.astype(np.int64) << 32 | decided.left_clause)
            publication, clause = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
            owner, is_first = self._owner[clause], np.ones(len(keys), np.bool_)
            is_first[1:] = (owner[1:] != owner[:-1]) | (publication[1:] != publication[:-1])
            begins = np.flatnonzero(is_first)
            subscription, offset = owner[begins], np.append(begins, len(keys))
            pairs = Pairs(publication[begins], offset, clause, self._table.width[subscription])
            work.open(pairs, subscription, (self._table.flags[subscription] & EXACT) != 0)

    def _list(self, work: Work) -> None:
        """The network lists solutions of exact subscriptions, where their number does not say how many rows differ."""
        listed = work.is_exact & (np.diff(work.view.batch.offset) <= FEW)[work.pairs.publication]
        if work.members is None:
            listed &= work.pairs.width > 0
        most_steps = self._world.settings.max_steps
        self._put_rows(work, listed, lambda pairs: self._shared.listed(work.view, pairs, self._most, most_steps))

    def _search(self, work: Work) -> None:
        """The solver counts solutions, and lists those that may be more than there are rows. What it finds of other
        subscriptions is where the evaluation is asked."""
        is_open = work.outcome == LEFT
        if work.members is None:
            numbers = np.flatnonzero(is_open)
            if len(numbers):
                pairs = work.take(numbers)
                pairs = replace(pairs, width=np.where(work.is_exact[numbers], pairs.width, 0).astype(np.int32))
                work.outcome[numbers] = self._solved(work, pairs, False).outcome
            is_distinct = (self._table.flags[work.subscription] & DISTINCT) != 0
            is_counted = is_distinct & (np.diff(work.pairs.offset) == 1)  # its bindings are as many as its solutions
            is_open &= (work.outcome == TRUNCATED) & ~is_counted
        self._put_rows(work, is_open & work.is_exact, lambda pairs: self._solved(work, pairs, True))

    def _keep_first(self, work: Work) -> None:
        """Of truncated matches whose rows are asked for, those to keep are chosen. Where the search does not find them,
        the pair is open again."""
        truncated = work.outcome == TRUNCATED
        if work.members is None or not truncated.any():
            return
        first = FirstRows(work.view, work.content, self._solver, self._most)
        for number in np.flatnonzero(truncated).tolist():
            rows = first.rows(work.pairs, number)
            if rows is None:
                work.outcome[number] = LEFT
            else:
                work.start[number] = sum(map(len, work.rows))
                work.rows.append(rows)

    def _evaluate(self, work: Work) -> None:
        """The reference decides, and lists, what is open. Pairs that call operators wait for these."""
        if work.members is not None:
            is_open = (work.outcome != MATCH) & (work.outcome != TRUNCATED)
            publications, subscriptions, pairs = work.members
            for member in np.flatnonzero(is_open[pairs]).tolist():
                work.answers[member] = self._listed(int(publications[member]), int(subscriptions[member]), work.content)
            return
        matches = work.is_exact & ((work.outcome == MATCH) | (work.outcome == TRUNCATED))
        truncated, is_open = work.outcome == TRUNCATED, (work.outcome != MISS) & ~matches
        publication, subscription = work.pairs.publication, work.subscription
        called = is_open & ((self._table.flags[subscription] & CALLS) != 0)
        work.waiting = list(zip(publication[called].tolist(), subscription[called].tolist(), strict=True))
        for pair in np.flatnonzero(is_open & ~called).tolist():
            at, number = int(publication[pair]), int(subscription[pair])
            try:
                answer = evaluate(self._subscription(number), work.content.publication(at), self._world)
            except TriplewireError as error:
                work.failures.append((at, number, error))
                continue
            if answer.bindings:
                work.content.answers.put(self, at, number, answer)
                matches[pair], truncated[pair] = True, answer.truncated
        work.matches.append((publication[matches], subscription[matches], truncated[matches]))

    def _solved(self, work: Work, pairs: Pairs, keep: bool) -> Solved:
        """What the search finds of pairs of the batch."""
        view, publications = work.view, work.content.publication
        term, matched = Decoder(view.batch).term, work.members is not None
        searched = Searched.of(view.batch.triples, view.features, pairs.publication, term)
        return self._solver.solve(searched, pairs, keep, publications, matched)

    def _put_rows(self, work: Work, is_listed: NDArray[np.bool_], solve: Callable[[Pairs], Solved]) -> None:
        """Solve pairs, and keep their rows; in portions whose rows are not too many to be put together at once, all
        where rows are asked for."""
        numbers = np.flatnonzero(is_listed)
        size = max(_ROWS // self._most, 1) if work.members is None else max(len(numbers), 1)
        for start in range(0, len(numbers), size):
            portion = numbers[start : start + size]
            pairs = work.take(portion)
            solved = solve(pairs)
            work.put(portion, solved, bindings_of(solved, pairs, self._most))

    def _listed(self, publication: int, number: int, content: Content) -> Answer:
        """The bindings of a match by the reference: past `max_steps` those found so far, and maybe none; none where its
        text can no longer be compiled. An ASK query has its empty one."""
        if (known := content.answers.get(self, publication, number)) is not None:
            return known
        try:
            graph, calls = content.publication(publication), content.calls.of(publication)
            return evaluate(self._subscription(number), graph, self._world, calls, listing=True)
        except TriplewireError:
            return Answer(({},)) if self._table.flags[number] & ASK else Answer((), truncated=True)

    @cached_property
    def _forms(self) -> tuple[Ids, NDArray[np.bool_], Ids]:
        """Of each subscription, the first that has the same clauses, where they say all; whether they do; and where
        they begin."""
        table = self._table
        is_exact, clause_offset = (table.flags & EXACT) != 0, fixed_array(table.clause_offset)
        kind = np.where(is_exact, table.selected, -1 - np.arange(len(table))).astype(np.int32)
        form, slots = np.empty(len(kind), np.int32), np.full(1 << (2 * len(kind)).bit_length(), -1, np.int32)
        flat = table.columns._replace(pattern=table.columns.pattern.reshape(-1))
        forms(kind, clause_offset, flat, slots, form)
        return form, is_exact, clause_offset


class FirstRows:
    """For truncated matches of one batch: the bindings to keep are the first that the search finds in the publication,
    written in order. A publication in order is kept for its next match."""

    def __init__(self, view: View, content: Content, solver: Solver, most: int) -> None:
        self._view, self._content, self._solver, self._most = view, content, solver, most
        self._decoder = Decoder(view.batch)
        self._ordered: dict[int, tuple[Ids, Searched]] = {}

    def rows(self, pairs: Pairs, pair: int) -> Ids | None:
        """The first `most` rows of a pair that has more, as terms of the batch, -1 for unbound. None where the search
        does not find them."""
        number = int(pairs.publication[pair])
        ids, searched = self._ordered.get(number) or self._in_order(number)
        alone = replace(pairs.take(np.array([pair])), publication=np.zeros(1, np.int32))
        solved = self._solver.solve(searched, alone, True, lambda _: self._content.publication(number), matched=True)
        if solved.outcome[0] not in (MATCH, TRUNCATED):
            return None
        bindings = bindings_of(solved, alone, self._most)
        start, size = int(bindings.start[0]), int(bindings.count[0] * bindings.width[0])
        return ids.take(bindings.rows[start : start + size]) if bindings.more[0] else None

    def _in_order(self, number: int) -> tuple[Ids, Searched]:
        """A publication alone, its terms numbered in order. Of each its number in the batch; one more is -1, so that
        ids[-1] is unbound."""
        batch, features, terms = self._view.batch, self._view.features, self._view.batch.terms
        stated = slice(int(batch.offset[number]), int(batch.offset[number + 1]))
        columns = np.stack([column[stated] for column in (batch.subject, batch.predicate, batch.object)])
        used, place = np.unique(columns, return_inverse=True)
        texts = of_text(*strings_at(terms.text, terms.start[used], terms.end[used]))
        order = term_order(terms, used.astype(np.int64), texts)
        rank, ids = inverse(order), used[order]
        triples = rank[place].reshape(columns.shape)
        subject, predicate, object_ = np.ascontiguousarray(triples[:, np.lexsort(triples[::-1])])
        offset, tests = slices(features.offset, ids)
        in_publication = slice(int(features.node_offset[number]), int(features.node_offset[number + 1]))
        node_term, node_test = features.node_term[in_publication], features.node_test[in_publication]
        node_term = rank[np.searchsorted(used, node_term)]
        nodes = np.lexsort((node_test, node_term))
        low, high = (np.take(column, ids, axis=1) for column in (features.low, features.high))
        of_terms, of_nodes = (features.term[ids], offset, features.test[tests]), (node_term[nodes], node_test[nodes])
        ordered_features = Features(*of_terms, low, high, np.array([0, len(nodes)]), *of_nodes)
        ordered = Triples(np.array([0, len(subject)]), subject, predicate, object_)
        alone, decoder = np.zeros(1, np.int32), self._decoder
        searched = Searched.of(ordered, ordered_features, alone, lambda term: decoder.term(int(ids[term])))
        self._ordered[number] = np.append(ids, -1).astype(np.int32), searched
        return self._ordered[number]
