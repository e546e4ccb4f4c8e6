"""Texts that programs write: thousands of GQL subscriptions and MDV rules of the shared data, against their sources."""

from __future__ import annotations

import json
import re
from itertools import islice

import pytest
from outcomes import context

from amounts import usually
from shared_data import lines
from triplewire.ir.nodes import And, Coercion, Compare, Filter, InstanceOf, Label, Pattern, Relation, TextTest, Variable
from triplewire.ir.nodes import Expression as Condition
from triplewire.languages import parse
from triplewire.languages.context import Context
from triplewire.languages.gql import parse as parse_gql
from triplewire.languages.mdv import parse as parse_mdv
from triplewire.model.terms import IRI, RDF_TYPE, Term, parse_term

STEP = usually(4, 1)  # of the texts that are tried
PREFIXES = {"nmo": "http://nomisma.org/ontology#"}
_RULE = re.compile(r"search (\S+) c register c where (.*)", re.DOTALL)
_CONDITION = re.compile(r"c((?:\.[^. ]+)*) (\S+) (.+)", re.DOTALL)


def _term(text: str) -> Variable | Term:
    return Variable(text[1:]) if text.startswith("?") else parse_term(text)


def _condition(variable: str, op: str, value: str, kind: str) -> Condition:
    if kind == "isa":
        cls = parse_term(value)
        assert isinstance(cls, IRI)
        return InstanceOf(Variable(variable[1:]), Relation(op), cls)
    return Compare(op, Variable(variable[1:]), Label(value), Coercion.LENIENT)


def _gql(edges: list[list[str]], constraints: list[list[str]]) -> str:
    """Each constraint stands with the first tuple that has its variable."""
    left, parts = list(constraints), []
    for subject, predicate, object_ in edges:
        mine = [c for c in left if c[0] in (subject, object_)]
        left = [c for c in left if c not in mine]
        text = f"({subject}, {predicate}, {object_})"
        if mine:
            written = " AND ".join(f"{v} ISA {op} {x}" if kind == "isa" else f"{v} {op} {x}" for v, op, x, kind in mine)
            text = f"({text} SUCHTHAT ({written}))"
        parts.append(text)
    return "SELECT * WHERE " + " AND ".join(parts)


@pytest.mark.slow
def test_graph_subscriptions() -> None:
    """2,000 of them, by default every fourth, those with comparisons of values first: patterns and filters are those
    that were written."""
    rows = [json.loads(line) for line in lines("10-workloads/graph-subscriptions-100k.jsonl.gz")]
    rows.sort(key=lambda row: not any(kind == "value" for *_, kind in row[3]))
    assert any("(" in edge[0] and "," in edge[0] for *_, edges, _ in rows for edge in edges), (
        "the hard IRIs are missing"
    )
    count = 0
    for _, _, edges, constraints in (rows[:1_500] + rows[1_500::190][:500])[::STEP]:
        parsed = parse_gql(_gql(edges, constraints), Context())
        assert isinstance(parsed.where, And)
        patterns = [part for part in parsed.where.parts if isinstance(part, Pattern)]
        filters = [part.condition for part in parsed.where.parts if isinstance(part, Filter)]
        assert patterns == [Pattern(*map(_term, edge)) for edge in edges]
        assert len(filters) == len(constraints)
        assert set(filters) == {_condition(*constraint) for constraint in constraints}
        assert parsed.select == tuple(dict.fromkeys(end[1:] for edge in edges for end in edge if end.startswith("?")))
        count += 1
    assert count == 2_000 // STEP


@pytest.mark.slow
def test_mdv_rules() -> None:
    """40,000, by default every fourth: the class, a pattern for each step that paths share and for each path's own end,
    a filter for each condition, and no warning."""
    whole = Context(prefixes=PREFIXES)
    count = {"OID": 0, "COMP": 0, "PATH": 0, "JOIN": 0}
    for line in islice(lines("10-workloads/mdv-rules-40k.jsonl.gz"), 0, None, STEP):
        _, kind, text, *_ = json.loads(line)
        parsed = parse_mdv(text, whole)
        written = _RULE.fullmatch(text)
        assert written is not None
        conditions = [_CONDITION.fullmatch(condition) for condition in written[2].split(" and ")]
        paths = [tuple(condition[1].split(".")[1:]) for condition in conditions if condition]
        middle = {path[:end] for path in paths for end in range(1, len(path))}
        steps = len(middle) + sum(path != () and path not in middle for path in paths)
        assert isinstance(parsed.where, And)
        patterns = [part for part in parsed.where.parts if isinstance(part, Pattern)]
        filters = [part.condition for part in parsed.where.parts if isinstance(part, Filter)]
        assert (len(patterns), len(filters)) == (1 + steps, len(conditions))
        assert (patterns[0].predicate, parsed.select, parsed.warnings) == (RDF_TYPE, ("c",), ())
        for condition, compiled in zip(conditions, filters, strict=True):
            assert condition is not None
            if isinstance(compiled, TextTest):
                assert (condition[2], condition[3]) == ("contains", f"'{compiled.text}'")
            else:
                assert isinstance(compiled, Compare)
                value = str(compiled.right) if isinstance(compiled.right, IRI) else compiled.right.lexical  # type: ignore[union-attr]  # a rule compares with an IRI or a number
                assert (condition[2], condition[3]) == (compiled.op, value)
        count[kind] += 1
    assert count == dict.fromkeys(count, 10_000 // STEP)


def test_some_pass_the_checks_of_registration_too() -> None:
    for line in islice(lines("10-workloads/mdv-rules-40k.jsonl.gz"), 0, 40_000, 400):
        number, _, text, *_ = json.loads(line)
        assert parse(text, "mdv", id=str(number), prefixes=PREFIXES).select == ("c",)
    for line in islice(lines("10-workloads/graph-subscriptions-100k.jsonl.gz"), 0, 100_000, 1_000):
        number, _, edges, constraints = json.loads(line)
        assert parse(_gql(edges, constraints), "gql", id=str(number)).id == str(number)


def test_a_context_without_prefixes_knows_the_usual_ones() -> None:
    """The rules above use rdf, foaf, geo, skos, org and dcterms without declaring them."""
    parsed = parse_mdv("search foaf:Person p register p where p.geo:location.geo:lat > 5", context("mdv", "bare"))
    assert not parsed.warnings
