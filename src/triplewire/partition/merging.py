"""Partitioning by access frequency (001, section 4.3): subscriptions that match together are merged, and spread out.

Where the index has more entries than the trigger allows, it is merged down to the target (the paper's footnote 10): the
publication summary with the largest counter first. The subscriptions that match a summary are merged around the
patterns that most of them share. Those that no summary matches have no statistics; they are merged around patterns
that the sample hardly ever has, so that few publications reach a node in vain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form.clauses import Clause, Position
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.partition.containment import Form, contains, form_of
from triplewire.partition.engines import engine_of
from triplewire.partition.mergers import common, merger_of
from triplewire.partition.placement import SERVER, Placement
from triplewire.partition.summaries import collect

SLACK = 5.0
"""How many percent of the subscriptions the index may grow beyond the target, and beyond what the last merging left,
before it is merged again. So a target that cannot be reached does not cost a merging for each new subscription."""

MOST_SEEN = 0.001
"""The share of the sample that may have a pattern around which subscriptions without statistics are merged."""

Shape = tuple[IRI | Literal | None, IRI | Literal | None, IRI | Literal | None]


class Merging:
    """The partitioner *merging*. `percent` of the subscriptions are to leave the index; `sample` are publications."""

    def __init__(
        self,
        nodes: int,
        world: World,
        entailment: str = "none",
        *,
        sample: Sequence[Publication] = (),
        percent: float = 70,
    ) -> None:
        self.placement = Placement(nodes)
        self._world, self._entailment = world, entailment
        self._sample, self._percent = sample, percent
        self._subscriptions: dict[str, Subscription] = {}
        self._members: dict[str, list[str]] = {}
        self._merger_of: dict[str, str] = {}
        self._made = 0
        self._left = 0  # the size of the index after the last merging, or less since

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Put new subscriptions into the index, and merge where it is too large."""
        for subscription in subscriptions:
            self._subscriptions[subscription.id] = subscription
            self.placement.put(subscription.id, SERVER)
        grown = self.placement.server_size - self._left
        if (
            self.placement.server_size > self._most(self._percent - SLACK)
            and grown > len(self._subscriptions) * SLACK / 100
        ):
            self.merge()

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription. Its merger is taken apart, and the others go back to the index (001, section 4.4)."""
        del self._subscriptions[id]
        merger = self._merger_of.get(id)
        if merger is not None:
            for member in self._members.pop(merger):
                self.placement.unhang(member, merger)
                del self._merger_of[member]
                self.placement.put(member, SERVER)
            del self.placement.mergers[merger]
            self.placement.changed[merger] = None
        self.placement.drop(id)
        self._left = min(self._left, self.placement.server_size)

    def members(self, merger: str) -> list[str]:
        """The subscriptions that a merger stands for."""
        return list(self._members[merger])

    def merge(self) -> None:
        """Merge until the index is as small as the target says, or nothing more can be merged."""
        self._merge_down()
        self._left = self.placement.server_size

    def _merge_down(self) -> None:
        target = self._most(self._percent)
        forms = {
            id: form
            for id, subscription in self._subscriptions.items()
            if id not in self._merger_of
            and (form := form_of(subscription, self._world, self._entailment)).contained
            and len(form.clauses) == 1
        }
        for group in self._groups(forms):
            if self.placement.server_size <= target:
                return
            self._merge_around(group, forms, target)
        rest = [id for id in forms if id not in self._merger_of]
        self._merge_around(rest, forms, target, self._seen_often())

    def _most(self, percent: float) -> int:
        return int(len(self._subscriptions) * (1 - percent / 100))

    def _groups(self, forms: dict[str, Form]) -> Iterator[list[str]]:
        """The subscriptions that match each summary, the one with the largest counter first."""
        if not self._sample:
            return
        engine = engine_of([self._subscriptions[id] for id in forms], self._world, self._entailment)
        counted = [0] * len(self._sample)
        at: dict[str, list[int]] = {}
        for number, publication in enumerate(self._sample):
            at.setdefault(publication.id, []).append(number)
        result = engine.match(self._sample)
        for part in result.parts:
            for publication in part.publication.tolist():
                for number in at[part.publications[publication]]:
                    counted[number] += 1
        for summary in collect(zip(self._sample, counted, strict=True)):
            if summary.counter and summary.triples:
                result = engine.match(summary.publication)
                ids = (name for part in result.parts for name in part.snapshot.ids(part.subscription))
                yield [id for id in ids if id not in self._merger_of]

    def _seen_often(self) -> set[Shape]:
        """The patterns without variables that more of the sample have than `MOST_SEEN` allows."""
        seen: Counter[Shape] = Counter()
        for publication in self._sample:
            seen.update({shape for triple in publication.triples for shape in _shapes_of(triple)})
        most = max(1, MOST_SEEN * len(self._sample))
        return {shape for shape, count in seen.items() if count > most}

    def _merge_around(
        self, ids: Iterable[str], forms: dict[str, Form], target: int, but: set[Shape] | None = None
    ) -> None:
        """Merge these subscriptions around the patterns that most of them share, but for some patterns."""
        sharing: dict[Shape, dict[str, None]] = {}
        for id in ids:
            for pattern in forms[id].clauses[0].patterns:
                shape = _shape(pattern)
                if sum(term is not None for term in shape) > 1 and (but is None or shape not in but):
                    sharing.setdefault(shape, {})[id] = None
        order = [(-len(members), number, shape) for number, (shape, members) in enumerate(sharing.items())]
        heapify(order)
        while order and self.placement.server_size > target:
            size, number, shape = heappop(order)
            left = [id for id in sharing[shape] if id not in self._merger_of]
            if len(left) < 2:
                continue
            if len(left) < -size:  # others share their members with it: its turn comes later
                heappush(order, (-len(left), number, shape))
                continue
            spare = self.placement.server_size - target
            self._merge([forms[id] for id in left[: spare + 1]], shape)

    def _merge(self, members: list[Form], shape: Shape) -> None:
        """Put a merger in the place of these subscriptions, of those that it contains for certain."""
        self._made += 1
        id = f"merger:{self._made}"
        while id in self._subscriptions:
            id += "'"
        clause = common([_beginning(form.clauses[0], shape) for form in members])
        merger = merger_of(id, clause, self._world.settings)
        if merger is None:
            return
        form = form_of(merger, self._world)
        inside = [member.id for member in members if contains(form, member, self._world.taxonomy)]
        if len(inside) < 2:
            return
        self.placement.mergers[id] = merger
        self.placement.changed[id] = None
        self._members[id] = inside
        for member in inside:
            self.placement.hang(member, id)
            self._merger_of[member] = id


def _shape(pattern: tuple[Position, Position, Position]) -> Shape:
    s, p, o = (None if isinstance(term, Variable) else term for term in pattern)
    return s, p, o


def _shapes_of(triple: Triple) -> Iterator[Shape]:
    """The patterns with a predicate and another constant that a triple satisfies."""
    s = triple.subject if isinstance(triple.subject, IRI) else None
    o = triple.object if isinstance(triple.object, IRI | Literal) else None
    yield s, triple.predicate, o
    yield s, triple.predicate, None
    yield None, triple.predicate, o


def _beginning(clause: Clause, shape: Shape) -> Clause:
    """The clause with the pattern of that shape first: what is common is looked for from there."""
    return Clause(tuple(sorted(clause.patterns, key=lambda pattern: _shape(pattern) != shape)), clause.tests)
