"""Partitioning by containment (001, section 4.2): the server has the roots, and what they contain is spread over nodes.

Containment is transitive, and only a root decides where a publication goes. So trees are kept flat: all that hangs
below a root are its children. Where a root goes, its children are checked again: against the other roots, and each
other.
"""

from __future__ import annotations

from collections.abc import Iterable

from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form.clauses import Clause
from triplewire.ir.subscription import Subscription
from triplewire.partition.candidates import Containers
from triplewire.partition.containment import Form, form_of
from triplewire.partition.placement import SERVER, Placement


class ContainmentPartitioner:
    """The partitioner *containment*."""

    def __init__(self, nodes: int, world: World, entailment: str = "none") -> None:
        self.placement = Placement(nodes)
        self._world, self._entailment = world, entailment
        self._roots = Containers(world.taxonomy)
        self._forms: dict[str, Form] = {}

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Place new subscriptions. Many at once are taken from the general to the special."""
        forms = [form_of(subscription, self._world, self._entailment) for subscription in subscriptions]
        self._forms |= {form.id: form for form in forms}
        self._add(forms, alike=not len(self._roots))

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription. Children of a root are checked for containment again (001, section 4.4)."""
        del self._forms[id]
        if id in self.placement.above:
            self.placement.unhang(id)
            self.placement.drop(id)
            return
        self._roots.remove(id)
        freed = self.placement.hanging(id)
        for child in freed:
            self.placement.unhang(child)
        self.placement.drop(id)
        self._add([self._forms[child] for child in freed], alike=False)

    def _add(self, forms: list[Form], *, alike: bool) -> None:
        for form in sorted(forms, key=specialty):
            root = self._roots.container_of(form)
            if root is not None:
                self.placement.hang(form.id, root)
                continue
            for below in self._roots.contained_in(form, alike=alike):
                self._lower(below, form.id)
            self._roots.add(form)
            self.placement.put(form.id, SERVER)

    def _lower(self, old: str, new: str) -> None:
        """A root, and all below it, are below a new one."""
        self._roots.remove(old)
        for id in (*self.placement.hanging(old), old):
            self.placement.hang(id, new)


def specialty(form: Form) -> tuple[int, int, int]:
    """What contains another has seldom more patterns or tests, and of as many patterns never more constants."""
    patterns = max((len(clause.patterns) for clause in form.clauses), default=0)
    tests = max((len(clause.tests) for clause in form.clauses), default=0)
    constants = max((_constants(clause) for clause in form.clauses), default=0)
    return patterns, tests, constants


def _constants(clause: Clause) -> int:
    return sum(not isinstance(term, Variable) for pattern in clause.patterns for term in pattern)
