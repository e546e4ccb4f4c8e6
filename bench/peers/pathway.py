"""Pathway (PyPI): a table of statements joined with tables of rules, kept up to date as statements change.

It is no dependency; `bench metadata` measures it where it is installed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.workloads.mdv_documents import SPACE, document, name_of
from triplewire.config import Settings
from triplewire.metadata.documents import parsed
from triplewire.metadata.messages import Put, RuleText
from triplewire.model.terms import RDF_TYPE, Literal

_FAR = 1 << 40
_LONGEST = 600.0  # seconds for what is loaded first


def updates(
    rules: Sequence[RuleText], documents: Sequence[Put], batch: int, values: Sequence[int]
) -> tuple[list[float], set[tuple[str, str]]]:
    """The seconds of batches of updates, from their bytes until all answers have changed: in each, the first documents
    get another value. And the pairs of rule and resource in the end. Raises `ImportError`."""
    import pathway as pw  # type: ignore[import-not-found]  # a package that is no dependency

    held: set[tuple[str, str]] = set()
    settled, seconds = threading.Condition(), list[float]()
    state = {"changes": 0}

    def wait(changes: int) -> None:
        with settled:
            if not settled.wait_for(lambda: state["changes"] >= changes, _LONGEST):
                raise TimeoutError(f"{state['changes']} changes came, of {changes}")

    class Statement(pw.Schema):  # type: ignore[misc]  # it has no types here
        s: str = pw.column_definition(primary_key=True)
        p: str = pw.column_definition(primary_key=True)
        o: str
        n: int

    class Statements(pw.io.python.ConnectorSubject):  # type: ignore[misc]  # it has no types here
        def run(self) -> None:
            """Feed the documents, then each batch once the answers to the one before have come."""
            expected = _fed(self, documents, rules)
            self.commit()
            wait(expected)
            for value in values:
                begun = time.perf_counter()
                _fed(self, [document(place, value) for place in range(batch)], ())
                self.commit()
                wait(expected := expected + batch)  # one COMP rule more holds each
                seconds.append(time.perf_counter() - begun)

    def on_change(key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:
        (held.add if is_addition else held.discard)((row["rule"], row["host"]))
        with settled:
            state["changes"] += 1
            settled.notify()

    statements = pw.io.python.read(Statements(), schema=Statement, autocommit_duration_ms=None)
    pw.io.subscribe(_joined(pw, statements, rules), on_change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return seconds, held


def _statements(documents: Sequence[Put]) -> Iterator[dict[str, Any]]:
    for each in documents:
        for s, p, o in parsed(each.document, each.content, Settings()).triples:
            text = o.lexical if isinstance(o, Literal) else o.value  # type: ignore[union-attr]  # no blank node
            yield {"s": s.value, "p": p.value, "o": text, "n": int(text) if text.isdigit() else -1}  # type: ignore[union-attr]


def _fed(subject: Any, documents: Sequence[Put], rules: Sequence[RuleText]) -> int:
    """Feed the statements of documents; returns how many pairs of these rules and documents there are."""
    pairs, numbers = 0, {rule.id for rule in rules}
    for row in _statements(documents):
        subject.next(**row)
        if row["p"] == f"{SPACE}memory":
            pairs += sum(f"{kind}{row['n']}" in numbers for kind in ("OID", "PATH", "JOIN"))
        elif row["p"] == f"{SPACE}synthValue":
            pairs += sum(f"COMP{number}" in numbers for number in range(row["n"]))
    return pairs


def _joined(pw: Any, statements: Any, rules: Sequence[RuleText]) -> Any:
    """Rule and host of all four types of rules."""

    def table(kind: str) -> Any:
        class Rule(pw.Schema):  # type: ignore[misc]  # it has no types here
            rule: str
            number: int
            host: str

        numbers = [(rule.id, int(rule.id[len(kind) :])) for rule in rules if rule.id.startswith(kind)]
        return pw.debug.table_from_rows(Rule, [(name, n, f"{name_of(n)}#host") for name, n in numbers])

    def of(name: str) -> Any:
        return statements.filter(pw.this.p == SPACE + name)

    left, right = pw.left, pw.right
    hosts = statements.filter((pw.this.p == RDF_TYPE.value) & (pw.this.o == f"{SPACE}CycleProvider"))
    oid = hosts.join(table("OID"), left.s == right.host).select(rule=right.rule, host=left.s)
    near = pw.temporal.interval(-_FAR, -1)  # an inequality is a join of intervals
    comp = of("synthValue").interval_join(table("COMP"), left.n, right.number, near)
    comp = comp.select(rule=right.rule, host=left.s)
    leads = of("serverInformation").join(of("memory"), left.o == right.s)
    leads = leads.select(host=left.s, info=left.o, memory=right.n)
    path = leads.join(table("PATH"), left.memory == right.number).select(rule=right.rule, host=left.host)
    fast = of("cpu").filter(pw.this.n == 600)
    named = of("serverHost").filter(pw.this.o.str.find("uni-passau.de") >= 0)
    both = leads.join(fast, left.info == right.s).select(left.host, left.memory)
    both = both.join(named, left.host == right.s).select(left.host, left.memory)
    join = both.join(table("JOIN"), left.memory == right.number).select(rule=right.rule, host=left.host)
    return oid.concat_reindex(comp, path, join)
