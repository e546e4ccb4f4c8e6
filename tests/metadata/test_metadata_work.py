"""The work of a batch grows with what it says, not with what is there already."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.metadata.messages import Applied, Put, RuleText
from triplewire.metadata.registry import Registry

_EACH = 100  # instructions of SQLite's machine that are counted as one
_ROWS = "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int FROM pg_stat_xact_user_tables"
PREFIXES = {"": "http://example.org/terms#"}


def _document(number: int) -> Put:
    """One of many documents that share a value."""
    text = (
        f'@prefix : <http://example.org/terms#> . <#host> a :Host ; :cpu 600 ; :memory {number} ; :name "n{number}" .'
    )
    return Put(f"http://example.org/{number}.ttl", text.encode())


class _Counted:
    """How much a database has worked: the instructions of SQLite, the rows that PostgreSQL has read."""

    def __init__(self, registry: Registry) -> None:
        self.steps = self._before = 0
        self._registry = registry
        if registry.database.is_sqlite:
            sa.event.listen(registry.database.engine, "checkout", self._listen)
        else:
            sa.event.listen(registry.database.engine, "begin", self._begun)

    def _listen(self, connection: object, *_: object) -> None:
        connection.set_progress_handler(self._step, _EACH)  # type: ignore[attr-defined]  # of the driver

    def _step(self) -> int:
        self.steps += 1
        return 0

    def _begun(self, connection: Connection) -> None:
        self._before = connection.exec_driver_sql(_ROWS).scalar_one()  # of transactions whose rows are not told yet

    def _read(self, connection: Connection, _: Applied) -> None:
        if not self._registry.database.is_sqlite:
            self.steps += connection.exec_driver_sql(_ROWS).scalar_one() - self._before

    def cost(self, document: Put) -> int:
        """Of registering a document."""
        before = self.steps
        self._registry.apply([document], self._read)
        return self.steps - before


@pytest.mark.parametrize(
    "condition", ["c.memory > 5000", "c.cpu = 600 and c.memory = 5001", "c.name contains 'n500'", "c.cpu >= 600"]
)
def test_a_document_costs_the_same_beside_many_others(database_url: str, condition: str) -> None:
    """And beside many rules that look for other pieces of text; without statistics, which PostgreSQL has later."""
    with Registry.open(database_url) as registry:
        registry.subscribe("r", [RuleText("rule", f"search Host c register c where {condition}", PREFIXES)])
        counted, costs = _Counted(registry), []
        for there in (20, 400):
            others = [f"c.name contains 'o{number}' and c.memory = {number}" for number in range(there)]
            rules = [(f"o{n}", f"search Host c register c where {where}") for n, where in enumerate(others)]
            registry.subscribe(f"r{there}", [RuleText(*rule, PREFIXES) for rule in rules])
            registry.apply([_document(number) for number in range(there)])
            registry.apply([_document(4_000 + there)])  # tables of the transaction are emptied
            costs.append(counted.cost(_document(5_000 + there)))
    assert costs[1] <= 1.5 * costs[0]


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
def test_postgresql_keeps_the_plans_of_a_batch(database_url: str) -> None:
    """A rollback between batches, as of a connection that has only read, would forget them."""
    planned: list[list[str]] = []

    def look(connection: Connection, _: Applied) -> None:
        statements = connection.exec_driver_sql("SELECT statement FROM pg_prepared_statements")
        planned.append(sorted(statements.scalars()))

    with Registry.open(database_url) as registry:
        registry.subscribe("r", [RuleText("rule", "search Host c register c where c.cpu >= 600", PREFIXES)])
        for number in range(8):
            registry.apply([_document(number)], look)
    assert len(planned[-1]) > 40
    assert set(planned[-2]) <= set(planned[-1])
