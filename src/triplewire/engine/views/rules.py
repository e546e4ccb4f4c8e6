"""The MDV rules that other rules may name, as mappings from id to subscription."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triplewire.engine.chunk import Snapshot
from triplewire.ir.subscription import Subscription


class Rules(Mapping[str, Subscription]):
    """The MDV rules among the subscriptions of a snapshot, looked up there one by one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __getitem__(self, name: str) -> Subscription:
        rule = self._snapshot.get(name)
        if rule is None or rule.language != "mdv":
            raise KeyError(name)
        return rule

    def __iter__(self) -> Iterator[str]:
        return (rule.id for rule in self._snapshot.all() if rule.language == "mdv")

    def __len__(self) -> int:
        return sum(1 for _ in self)
