"""The work of a batch grows with what it says, not with what is there already."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from triplewire.metadata.messages import Put, RuleText
from triplewire.metadata.registry import Registry

_EACH = 100  # instructions of SQLite's machine that are counted as one
PREFIXES = {"": "http://example.org/terms#"}


def _document(number: int) -> Put:
    """One of many documents that share a value."""
    text = (
        f'@prefix : <http://example.org/terms#> . <#host> a :Host ; :cpu 600 ; :memory {number} ; :name "n{number}" .'
    )
    return Put(f"http://example.org/{number}.ttl", text.encode())


class _Counted:
    """How much SQLite has worked."""

    def __init__(self, registry: Registry) -> None:
        self.steps = 0
        sa.event.listen(registry.database.engine, "checkout", self._listen)

    def _listen(self, connection: object, *_: object) -> None:
        connection.set_progress_handler(self._step, _EACH)  # type: ignore[attr-defined]  # of the driver

    def _step(self) -> int:
        self.steps += 1
        return 0


@pytest.mark.parametrize(
    "condition", ["c.memory > 5000", "c.cpu = 600 and c.memory = 5001", "c.name contains 'n500'", "c.cpu >= 600"]
)
def test_a_document_costs_the_same_beside_many_others(tmp_path: Path, condition: str) -> None:
    with Registry.open(f"sqlite:///{tmp_path / 'registry.db'}") as registry:
        registry.subscribe("r", [RuleText("rule", f"search Host c register c where {condition}", PREFIXES)])
        counted, costs = _Counted(registry), []
        for there in (20, 400):
            registry.apply([_document(number) for number in range(there)])
            registry.apply([_document(4_000 + there)])  # tables of the transaction are emptied
            before = counted.steps
            registry.apply([_document(5_000 + there)])
            costs.append(counted.steps - before)
    assert costs[1] <= 1.5 * costs[0]
