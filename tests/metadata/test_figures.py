"""The tables of figures 4, 7, 8 and 9 of the MDV paper, of the running example of its section 3."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.metadata import filter as matching
from triplewire.metadata.keys import constant_key
from triplewire.metadata.messages import Put, RuleText
from triplewire.metadata.registry import Registry
from triplewire.metadata.tables import ANY, SUBJECT, joins, rules, statements, subscriptions, terms, triggers, types
from triplewire.metadata.working import hits, prepare

CASE = tomllib.loads((Path(__file__).parents[1] / "cases" / "metadata" / "figures.toml").read_text())
DOCUMENT, SPACE = "http://og.example/doc.rdf", "http://og.example/schema#"


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """A transaction over a registry that has the schema, the document and the rule."""
    with Registry.open(database_url) as registry:
        registry.use_schema(CASE["schema"].encode())
        applied = registry.apply([Put(DOCUMENT, CASE["document"].encode())])
        (warning,) = applied.refused
        assert warning.is_warning
        assert "memory in line 6, cpu in line 6" in warning.reason
        assert registry.subscribe("lmr", [RuleText("rule", CASE["rule"], {"": SPACE})]).ids == ("rule",)
        with registry.database.reading() as connection:
            prepare(connection)
            yield connection


def _short(text: str) -> str:
    return re.sub(rf"<?(?:{SPACE}|{DOCUMENT}#)(\w+)>?", r"\1", text)


def test_figure_4(connection: Connection) -> None:
    """The atoms of the document, each with the class of its resource."""
    s, y = statements, types
    r, c, p, v = (terms.alias(name) for name in "rcpv")
    source = s.join(y, sa.and_(y.c.resource == s.c.resource, y.c.class_ != ANY)).join(r, r.c.number == s.c.resource)
    source = source.join(c, c.c.number == y.c.class_).join(v, v.c.number == s.c.value)
    source = source.outerjoin(p, p.c.number == s.c.property)
    query = sa.select(r.c.label, c.c.label, sa.func.coalesce(p.c.label, "rdf#subject"), v.c.label).select_from(source)
    rows = [[_short(text) for text in row] for row in connection.execute(query)]
    assert sorted(row for row in rows if not row[2].endswith("#type")) == sorted(CASE["figure_4"])
    assert SUBJECT not in connection.execute(sa.select(terms.c.number)).scalars().all()


def test_figures_7_and_8(connection: Connection) -> None:
    """Atomic rules, what they depend on, and the triggering rules by operator."""
    by_number = {row.rule: _short(row.text) for row in connection.execute(sa.select(rules))}
    names = _names(connection)
    expected = dict(CASE["figure_7"])
    assert {names[number]: _plain(text, names) for number, text in by_number.items()} == expected
    pairs = [(row.parent, row.rule) for row in connection.execute(sa.select(joins))]
    pairs += [(row.child, row.rule) for row in connection.execute(sa.select(joins))]
    assert sorted([names[a], names[b]] for a, b in pairs) == CASE["dependencies"]
    c, p = terms.alias("c"), terms.alias("p")
    source = triggers.join(c, c.c.number == triggers.c.class_).join(p, p.c.number == triggers.c.property)
    query = sa.select(triggers.c.operator, c.c.label, p.c.label, triggers.c.constant).select_from(source)
    found = {(operator.split()[-1], *map(_short, rest)) for operator, *rest in connection.execute(query)}
    keyed = {(op if op == ">" else "3", class_, of, constant_key(text)[1]) for op, class_, of, text in CASE["figure_8"]}
    assert found == keyed


def test_figure_9(connection: Connection) -> None:
    """What each iteration of the filter adds."""
    matching.evaluated(connection, connection.execute(sa.select(subscriptions.c.rule)).scalars())
    names = _names(connection)
    source = hits.join(rules, rules.c.rule == hits.c.rule).join(terms, terms.c.number == hits.c.resource)
    query = sa.select(rules.c.level, terms.c.label, hits.c.rule).select_from(source)
    iterations: list[list[list[str]]] = [[], [], []]
    for level, resource, rule in connection.execute(query):
        iterations[level].append([_short(resource), names[rule]])
    assert [sorted(iteration) for iteration in iterations] == [sorted(x) for x in CASE["figure_9"]]


def _names(connection: Connection) -> dict[int, str]:
    """The paper's numbers of our atomic rules, found by what these ask."""
    of_text = {text: name for name, text in CASE["figure_7"]}
    names: dict[int, str] = {}
    for row in connection.execute(sa.select(rules).order_by(rules.c.level)):
        names[row.rule] = of_text[_plain(_short(row.text), names)]
    return names


def _plain(text: str, names: dict[int, str]) -> str:
    """The text of an atomic rule as the paper writes it: constants as they were, inputs by the paper's numbers."""
    constants = {constant_key(value)[1]: value for *_, value in CASE["figure_8"]}
    text = re.sub(r"'(.*)'", lambda match: constants[match[1]], text)
    text = re.sub(r"number >|contains 3", lambda match: match[0].split()[0].replace("number", ">"), text)
    return re.sub(r"view\((\d+)\)", lambda match: f"view({names[int(match[1])]})", text)
