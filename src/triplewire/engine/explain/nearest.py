"""The query nearest to one that misses a publication: the change of fewest parts with which it matches.

    found = nearest(subscription, publication, compiler, results)
    found.query, found.changes, found.edits      'SELECT ...', 1, ("without the words 'swimming'",)

The search is breadth first by the number of changed parts. Of a text that misses, as many parts as possible are left
out while it still misses; a change inside of these alone cannot help, so only the others are tried next: the
hitting-set tree of Reiter ("A theory of diagnosis from first principles", 1987), with parts as components. The answer
has the fewest parts among these edits where all parts only restrict; under a negation there may be one with fewer. It
has been matched again, as the reference does, so that it matches in any case.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from triplewire import plugins
from triplewire.engine.compiler import Compiler, row_of
from triplewire.engine.explain.edits import Edit, Edits, edited
from triplewire.engine.explain.missing import missing
from triplewire.engine.explain.reasons import ExplainedPair
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import CallResults, evaluate
from triplewire.ir.nodes import Variable, names_bound
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages.context import Context, Written
from triplewire.model.publication import Publication

MOST_TRIES = 300  # texts that are matched
_MOST_STEPS = 3_000  # of one match; a text that takes more is passed over
_MOST_CALLS = 16  # of operators, beside those that the explanation has made


@dataclass(frozen=True, slots=True)
class Nearest:
    """A query that would have matched, in the language of the subscription; how many parts differ, and how. `document`:
    what the publication would have to say for the subscription as it is, one sentence a change."""

    query: str
    language: str
    changes: int
    edits: tuple[str, ...]
    document: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return asdict(self) | {"edits": list(self.edits), "document": list(self.document)}

    def lines(self) -> Iterator[str]:
        """Lines of text."""
        yield f"  nearest query, {self.changes} {'part differs' if self.changes == 1 else 'parts differ'}:"
        yield f"    {self.query}"
        yield from (f"    {said}" for said in self.edits)
        if self.document:
            yield "  or the publication:"
            yield from (f"    {said}" for said in self.document)


def nearest(
    subscription: Subscription, publication: Publication, compiler: Compiler, results: CallResults
) -> Nearest | None:
    """The nearest query of a pair that does not match; None where none was found within the bounds, or the language
    notes no parts. `results`: operator calls that were made; those made now are added."""
    written = Written()
    context = Context(
        source=subscription.id,
        prefixes=dict(subscription.prefixes),
        base=subscription.base,
        operators=compiler.world.operators,
        rules={rule.id: rule for rule in subscription.rules},
        settings=compiler.world.settings,
        written=written,
    )
    plugins.find("language", subscription.language)(subscription.text, context)
    edits = Edits(written, subscription, publication, compiler.world.taxonomy)
    chosen = _Search(written, subscription, publication, compiler, results).cheapest(edits)
    if chosen is None:
        return None
    in_order = sorted(chosen, key=lambda edit: edit.begin)
    changes = sum(edit.cost for edit in chosen)
    query = edited(written, chosen)
    rules = {rule.id: rule for rule in subscription.rules}
    near = compiler.meant(compiler.compiled(row_of(subscription) | {"query": query}, rules, full=False))
    pair = ExplainedPair(compiler.meant(subscription), compiler.entailed(publication), compiler.world, results)
    said = tuple(edit.said for edit in in_order)
    return Nearest(query, subscription.language, changes, said, missing(pair, near))


class _Search:
    """Finds edits with which a text matches."""

    def __init__(
        self,
        written: Written,
        subscription: Subscription,
        publication: Publication,
        compiler: Compiler,
        results: CallResults,
    ) -> None:
        self._written = written
        self._row = row_of(subscription)
        self._rules = {rule.id: rule for rule in subscription.rules}
        self._publication = compiler.entailed(publication)
        self._compiler = compiler
        steps = min(_MOST_STEPS, compiler.world.settings.max_steps)
        self._world = replace(compiler.world, settings=replace(compiler.world.settings, max_steps=steps))
        self._results = results
        self._most_calls = len(results) + _MOST_CALLS
        self._known: dict[str, bool | None] = {}
        self._unbound = _unbound(subscription)

    def _outcome(self, edits: Sequence[Edit]) -> bool | None:
        """Does the text with these edits match? None where it is no query."""
        text = edited(self._written, edits)
        if text not in self._known:
            self._known[text] = self._matched(text) if text else None
        return self._known[text]

    def _matched(self, text: str) -> bool | None:
        if len(self._results) > self._most_calls:
            return None
        try:
            subscription = self._compiler.compiled(self._row | {"query": text}, self._rules, full=False)
            meant = self._compiler.meant(subscription)
            if evaluate(meant, self._publication, self._world, self._results).bindings:
                return True
            # a condition on what nothing binds any more asks more than before, not less
            return False if _unbound(subscription) <= self._unbound else None
        except TriplewireError:
            return None

    def cheapest(self, edits: Edits) -> tuple[Edit, ...] | None:
        """Edits of the fewest parts with which the text matches; where that takes too many tries, edits of which each
        one is needed."""
        waiting: list[tuple[int, int, int, tuple[Edit, ...]]] = [(0, 0, 0, ())]
        seen: set[frozenset[Edit]] = set()
        while waiting and len(self._known) < MOST_TRIES:
            _, _, _, applied = heapq.heappop(waiting)
            if self._outcome(applied):
                return applied
            left_out = self._left_out(applied, edits)
            for edit in edits.all:
                following = (*applied, edit)
                helps = not any(edit.within(other) for other in left_out)
                free = not any(edit.overlaps(other) for other in applied)
                if helps and free and frozenset(following) not in seen:
                    seen.add(frozenset(following))
                    cost, rank = sum(e.cost for e in following), sum(e.rank for e in following)
                    heapq.heappush(waiting, (cost, rank, len(seen), following))
        return self._needed(edits)

    def _left_out(self, applied: tuple[Edit, ...], edits: Edits) -> list[Edit]:
        """Parts that can be left out beside these edits, and the text still misses: as many as there are."""
        left_out: list[Edit] = []
        for edit in edits.left_out:
            free = not any(edit.overlaps(other) for other in (*applied, *left_out))
            if free and self._outcome([*applied, *left_out, edit]) is False:
                left_out.append(edit)
        return left_out

    def _needed(self, edits: Edits) -> tuple[Edit, ...] | None:
        """Edits with which the text matches, and without any one of which it misses; None where none are found."""
        left_out = self._left_out((), edits)
        for edit in edits.all:
            needed = [other for other in left_out if not other.overlaps(edit)]
            if self._outcome([*needed, edit]):
                needed.append(edit)
                for other in list(needed):
                    fewer = [edit for edit in needed if edit is not other]
                    if self._outcome(fewer):
                        needed = fewer
                return tuple(needed)
        return None


def _unbound(subscription: Subscription) -> frozenset[str]:
    """The variables that no pattern binds."""
    nodes = list(walk(subscription.where))
    bound = {name for node in nodes for name in names_bound(node)}
    return frozenset(node.name for node in nodes if isinstance(node, Variable)) - bound
