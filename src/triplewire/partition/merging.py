"""Partitioning by access frequency (001, section 4.3): subscriptions that match together are merged, and spread out.

Where the index has more entries than the trigger allows, it is merged down to the target (the paper's footnote 10).
First, what another subscription contains goes below it: that one is their merger, and no publication reaches a node in
vain. Then subscriptions are merged around the patterns that most of them share: those that match a publication summary,
the one with the largest counter first, then those that none matches. A merger is made where the publications that would
reach its node in vain, by the sample (`triplewire.partition.sample`), are within what is left of `MOST_IN_VAIN`, spread
over the entries that are to leave the index. So the index may stay larger than the target.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain

from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Analyzer, FullText, Variable, Word
from triplewire.ir.normal_form import Clause, Position, Test
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal
from triplewire.partition.containment import Containers, Form, Triple, contains, form_of, specialty
from triplewire.partition.placement import SERVER, Placement, engine_of
from triplewire.partition.sample import Sample, Shape, Summary, collect, shapes_of
from triplewire.partition.split_calls import CallSplit, has_calls_alone

LEAST_CONSTANTS = 2
"""Constants that two patterns have in common, at least, to become one pattern of a merger, where there are such."""

SLACK = 5.0
"""How many percent of the subscriptions the index may grow beyond the target, and beyond what the last merging left,
before it is merged again. So a target that cannot be reached does not cost a merging for each new subscription."""

MOST_IN_VAIN = 0.001
"""The share of publications that may reach a node in vain, as expected of all mergers together."""


# --- mergers: what several subscriptions have in common, as a subscription that contains each ------------------------


def common(clauses: Sequence[Clause]) -> Clause:
    """A clause that contains each of these. They are merged one by one, so it may keep less than they have in common.
    Where their patterns share too few constants, it may say no more than that a node is there."""
    clause = _all(clauses, lambda pattern, target: _same(pattern, target) >= LEAST_CONSTANTS)
    if clause is not None:
        return clause
    clause = _all(clauses, _has_node) or Clause((), ())
    patterns = {tuple(None if isinstance(term, Variable) else term for term in p): p for p in clause.patterns}
    return Clause(tuple(patterns.values()), clause.tests)  # one for each node: joins of them say little


def _all(clauses: Sequence[Clause], are_one: Callable[[Triple, Triple], bool]) -> Clause | None:
    """What all have in common, if anything: of patterns that are one by this test."""
    first, *others = clauses
    for other in others:
        first = _both(first, other, are_one)
        if not first.patterns:
            return None
    return first


def _both(a: Clause, b: Clause, are_one: Callable[[Triple, Triple], bool]) -> Clause:
    """The patterns of `a` that go together with one of `b`, and say what both say: where they differ, there is a
    variable, the same one for the same two terms (the least general generalisation of Plotkin, 1970)."""
    named: dict[tuple[Position, Position], Variable] = {}
    patterns: dict[Triple, None] = {}
    for pattern in a.patterns:
        targets = (target for target in b.patterns if are_one(pattern, target))
        target = max(targets, key=partial(_alike, pattern, named), default=None)
        if target is not None:
            s, p, o = (
                x if x == y and not isinstance(x, Variable) else named.setdefault((x, y), Variable(f"m{len(named)}"))
                for x, y in zip(pattern, target, strict=True)
            )
            patterns[s, p, o] = None
    there = set(b.tests)
    tests = tuple(
        (variable.name, test)
        for (x, y), variable in named.items()
        if isinstance(x, Variable) and isinstance(y, Variable)
        for name, test in a.tests
        if name == x.name and (y.name, test) in there
    )
    return Clause(tuple(patterns), tests)


def _alike(pattern: Triple, named: dict[tuple[Position, Position], Variable], target: Triple) -> tuple[int, int]:
    """How many constants both have in the same place, and how many other places are joined to what is common."""
    return _same(pattern, target), sum(pair in named for pair in zip(pattern, target, strict=True))


def _same(pattern: Triple, target: Triple) -> int:
    return sum(x == y and not isinstance(x, Variable) for x, y in zip(pattern, target, strict=True))


def _has_node(pattern: Triple, target: Triple) -> bool:
    """Have both the same subject, or the same object?"""
    return any(pattern[at] == target[at] and not isinstance(pattern[at], Variable) for at in (0, 2))


def merger_of(id: str, clause: Clause, settings: Settings) -> Subscription | None:
    """The subscription of a clause; None where nothing of it can be said in SPARQL."""
    text = written_clause(clause)
    try:
        return parse(f"ASK WHERE {{ {text} }}", "sparql", id=id, settings=settings) if text else None
    except TriplewireError:  # longer or deeper than the limits allow: its members stay as they are
        return None


def written_clause(clause: Clause) -> str:
    """What of a clause its patterns and words say, as a group of SPARQL; "" where that is nothing."""
    numbers: dict[str, int] = {}

    def written(term: Position) -> str:
        return f"?v{numbers.setdefault(term.name, len(numbers))}" if isinstance(term, Variable) else str(term)

    triples = [
        " ".join(map(written, pattern))
        for pattern in clause.patterns
        if not isinstance(pattern[0], Literal) and isinstance(pattern[1], IRI | Variable)
    ]
    words = [
        f'FILTER ftcontains(?v{numbers[name]}, "{word}")'
        for name, test in clause.tests
        if name in numbers and (word := _word(test))
    ]
    return f"{' . '.join(triples)} {' '.join(words)}" if triples else ""


def _word(test: Test) -> str:
    """The word that the test asks for; "" of any other test."""
    if isinstance(test, FullText) and isinstance(test.expression, Word) and test.expression.analyzer == Analyzer():
        return test.expression.word
    return ""


# --- merging ---------------------------------------------------------------------------------------------------------


class MergingPartitioner:
    """The partitioner *merging*. `percent` of the subscriptions are to leave the index; `sample` are publications, of
    which the summaries are made, unless `summaries` of more of them are given."""

    def __init__(
        self,
        nodes: int,
        world: World,
        entailment: str = "none",
        *,
        sample: Sequence[Publication] = (),
        summaries: Sequence[Summary] = (),
        percent: float = 70,
        most_in_vain: float = MOST_IN_VAIN,
    ) -> None:
        self.placement = Placement(nodes)
        self._world, self._entailment = world, entailment
        self._sample, self._summaries, self._percent = sample, summaries, percent
        self._subscriptions: dict[str, Subscription] = {}
        self._calls = CallSplit(self.placement)
        self._most_in_vain = most_in_vain
        self._in_vain: dict[str, float] = {}  # merger -> what is expected of it
        self._made = 0
        self._prefix = f"merger:{secrets.token_hex(8)}:"  # no subscription that is to come has such an id
        self._left = 0  # the size of the index after the last merging, or less since

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Put new subscriptions into the index, and merge where it is too large."""
        new = {subscription.id: subscription for subscription in subscriptions}
        self._calls.add(each for each in new.values() if has_calls_alone(each, self._form(each).clauses))
        for id, subscription in new.items():
            if id not in self._calls:
                self._subscriptions[id] = subscription
                self.placement.put(id, SERVER)
        grown = self.placement.server_size - self._left
        if (
            self.placement.server_size > self._most(self._percent - SLACK)
            and grown > len(self._subscriptions) * SLACK / 100
        ):
            self.merge()

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription. Its merger is taken apart, and the others go back to the index, as do those that it
        contains (001, section 4.4)."""
        if id in self._calls:
            self._calls.remove(id)
            return
        del self._subscriptions[id]
        above = self.placement.above.get(id)
        if above is not None and above in self.placement.mergers:
            self._free_below(above)
            del self.placement.mergers[above], self._in_vain[above]
        elif above is not None:
            self.placement.unhang(id)
        self._free_below(id)
        self.placement.drop(id)
        self._left = min(self._left, self.placement.server_size)

    def _free_below(self, above: str) -> None:
        """What hangs below goes back to the index."""
        for id in self.placement.hanging(above):
            self.placement.unhang(id)
            self.placement.put(id, SERVER)

    def members(self, merger: str) -> list[str]:
        """The subscriptions that a merger stands for."""
        return self.placement.hanging(merger)

    def merge(self) -> None:
        """Merge until the index is as small as the target says, or nothing more can be merged."""
        target = self._most(self._percent)
        forms = {
            id: form
            for id, subscription in self._subscriptions.items()
            if id not in self.placement.above
            and (form := self._form(subscription)).contained
            and len(form.clauses) == 1
        }
        engine = engine_of([self._subscriptions[id] for id in forms], self._world, self._entailment)
        matched = self._matched(engine)
        self._put_below(forms, matched, target)
        work = _Work(forms, matched, Sample(self._sample), target)
        for group in chain(self._groups(engine, matched), [forms]):
            if self.placement.server_size <= target:
                break
            self._merge_around(group, work)
        self._left = self.placement.server_size

    def _form(self, subscription: Subscription) -> Form:
        return form_of(subscription, self._world, self._entailment)

    def _most(self, percent: float) -> int:
        return int(len(self._subscriptions) * (100 - percent) / 100)

    def _matched(self, engine: Engine) -> dict[str, int]:
        """Subscription -> the publications of the sample that it matches, as `sample.Sample` numbers them."""
        matched: dict[str, int] = defaultdict(int)
        at: dict[str, int] = defaultdict(int)
        for number, publication in enumerate(self._sample):
            at[publication.id] |= 1 << number
        for part in engine.match(self._sample).parts:
            sets = [at[id] for id in part.publications]
            names = part.snapshot.ids(part.subscription)
            for number, name in zip(part.publication.tolist(), names, strict=True):
                matched[name] |= sets[number]
        return matched

    def _groups(self, engine: Engine, matched: dict[str, int]) -> Iterator[list[str]]:
        """The subscriptions that match each summary, the one with the largest counter first."""
        for summary in self._summaries or self._collected(matched):
            if summary.counter and summary.triples:
                result = engine.match(summary.publication)
                yield [name for part in result.parts for name in part.snapshot.ids(part.subscription)]

    def _collected(self, matched: dict[str, int]) -> list[Summary]:
        """The summaries of the sample."""
        counted = [0] * len(self._sample)
        for publications in matched.values():
            while publications:
                lowest = publications & -publications
                counted[lowest.bit_length() - 1] += 1
                publications ^= lowest
        return collect(zip(self._sample, counted, strict=True))

    def _put_below(self, forms: dict[str, Form], matched: dict[str, int], target: int) -> None:
        """Put what another one contains below that one: first where most publications match."""
        roots = Containers(self._world.taxonomy)
        below: dict[str, list[str]] = {}
        for form in sorted(forms.values(), key=specialty):
            root = roots.container_of(form)
            if root is None:
                roots.add(form)
            else:
                below.setdefault(root, []).append(form.id)
        for root in sorted(below, key=lambda id: -matched.get(id, 0).bit_count()):
            for child in below[root][: max(0, self.placement.server_size - target)]:
                for id in (*self.placement.hanging(child), child):  # those of an earlier merging first
                    self.placement.hang(id, root)
                del forms[child]

    def _merge_around(self, ids: Iterable[str], work: _Work) -> None:
        """Merge these subscriptions around the patterns that most of them share."""
        sharing: dict[Shape, dict[str, None]] = {}
        for id in ids:
            for pattern in work.forms[id].clauses[0].patterns if id in work.forms else ():
                for shape in shapes_of(pattern) if id not in self.placement.above else ():
                    sharing.setdefault(shape, {})[id] = None
        # of two that as many share, the one that says more
        order = [
            (-len(members), shape.count(None), number, shape)
            for number, (shape, members) in enumerate(sharing.items())
            if len(members) > 1
        ]
        heapify(order)
        while order and self.placement.server_size > work.target:
            size, open_, number, shape = heappop(order)
            left = [id for id in sharing[shape] if id not in self.placement.above]
            if len(left) < 2:
                continue
            if len(left) < -size:  # others share their members with it: its turn comes later
                heappush(order, (-len(left), open_, number, shape))
                continue
            spare = self.placement.server_size - work.target
            self._merge([work.forms[id] for id in left[: spare + 1]], shape, work)

    def _merge(self, members: list[Form], shape: Shape, work: _Work) -> None:
        """Put a merger in the place of these subscriptions, of those that it contains for certain, unless too many
        publications would match it in vain."""
        clauses = (form.clauses[0] for form in members)
        # what is common is looked for from the pattern of that shape
        begin = [(sorted(each.patterns, key=lambda pattern: shape not in shapes_of(pattern)), each) for each in clauses]
        clause = common([Clause(tuple(patterns), each.tests) for patterns, each in begin])
        in_vain = work.sample.in_vain(clause, (work.matched.get(form.id, 0) for form in members))
        left = self._most_in_vain - sum(self._in_vain.values())
        if in_vain > left * (len(members) - 1) / max(1, self.placement.server_size - work.target):
            return
        self._made += 1
        id = f"{self._prefix}{self._made}"
        merger = merger_of(id, clause, self._world.settings)
        if merger is None:
            return
        form = form_of(merger, self._world)
        inside = [member.id for member in members if contains(form, member, self._world.taxonomy)]
        if len(inside) < 2:
            return
        self.placement.mergers[id] = merger
        self._in_vain[id] = in_vain
        for member in inside:
            for below in (*self.placement.hanging(member), member):
                self.placement.hang(below, id)


@dataclass(frozen=True)
class _Work:
    """What a merging goes by: the forms that are at the server, what of the sample they match, and how small the index
    is to become."""

    forms: dict[str, Form]
    matched: dict[str, int]
    sample: Sample
    target: int
