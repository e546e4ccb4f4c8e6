"""Keys of values are ordered as the values are, in each database as in the engine."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import pairwise

import pytest
import sqlalchemy as sa

from triplewire.ir.values.compare import OPERATORS, lenient
from triplewire.ir.values.numbers import lenient_number
from triplewire.metadata.conditions import OPERATORS as CONDITIONS
from triplewire.metadata.dictionary import numbers_of
from triplewire.metadata.keys import BRIEF, constant_key, decimal_key, instant_key
from triplewire.metadata.registry import Registry
from triplewire.metadata.tables import terms, triggers
from triplewire.metadata.working import prepare
from triplewire.model.terms import IRI, Literal, Term
from triplewire.store.database import insert_rows

LABELS = (
    *(
        "0",
        "-0",
        "0.0",
        "1",
        "01",
        "1.",
        "+1",
        "1e0",
        ".5",
        "-.5",
        "-0.51",
        "10",
        "9",
        "1e15",
        "1e-15",
        "-1e15",
        "9" * 300,
    ),
    *(
        "9" * 299 + "8",
        "abc",
        "ab",
        "",
        "é",
        "e",
        "Z",
        "z",
        "\U0001f600",
        "\uffee",
        "NaN",
        " 7 ",
        "INF",
        "x" * 200,
        "x" * 200 + "y",
    ),
    *("2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "2019-12-31T23:59:59.999Z", "-0044-03-15"),
    *("0000-02-29", "12020-01-01", "2020-01-01T00:00:00.5Z", "2020-02-30", "1e99999999999999999999"),
)


def test_keys_of_numbers_are_ordered_as_numbers() -> None:
    """Generated decimals of all signs, lengths and exponents, and those next to each other."""
    chance = random.Random(7)
    numbers = [lenient_number(label) for label in LABELS]
    decimals = [number for number in numbers if number is not None]
    for _ in range(3_000):
        digits = str(chance.randrange(10 ** chance.randrange(1, 22)))
        decimals.append(Decimal(f"{chance.choice('+-')}{digits}e{chance.randrange(-30, 30)}"))
    decimals += [number + Decimal("1e-9") for number in decimals[-500:]]
    for low, high in pairwise(sorted(decimals)):
        assert (decimal_key(low) < decimal_key(high)) == (low < high)
        assert (decimal_key(low) == decimal_key(high)) == (low == high)


def test_keys_of_instants_are_ordered_as_instants() -> None:
    """Years below 1, zones and fractions among them."""
    ordered = [
        *(
            "-0044-03-15",
            "0000-02-29",
            "2019-12-31T23:59:59.999Z",
            "2020-01-01",
            "2020-01-01T00:00:00.5Z",
            "12020-01-01",
        ),
    ]
    keys = [instant_key(text) or "" for text in ordered]
    assert all(keys)
    assert keys == sorted(set(keys))
    assert instant_key("2020-01-01T01:00:00+01:00") == instant_key("2020-01-01")


@pytest.mark.parametrize("op", [*OPERATORS, "contains 3"])
def test_a_database_compares_as_the_engine_does(op: str, database_url: str) -> None:
    """All labels with all constants, as literals and as IRIs."""
    values: list[Term] = [*map(Literal, LABELS), IRI("http://a.example/"), Literal("http://a.example/")]
    constants = [*LABELS, "http://a.example/"]
    expected: set[tuple[str, str]] = set()
    rows = []
    for number, text in enumerate(constants, 1):
        constant = Literal(text)
        kind, key = constant_key(text)
        operator = op if op.startswith("contains") else f"{kind} {op}"
        rows.append((number, operator, 0, 0, text if op.startswith("contains") else key, key[:BRIEF], 0))
        for value in values:
            if op.startswith("contains"):
                holds = isinstance(value, Literal) and text in value.lexical
            else:
                holds = lenient(op, value, constant, constant=constant) and text != "NaN"
            if holds:
                expected.add((str(value), text))
    with Registry.open(database_url) as registry, registry.database.reading() as connection:
        prepare(connection)
        numbers_of(connection, values)
        insert_rows(connection, triggers, rows)
        found: set[tuple[str, str]] = set()
        for operator in {row[1] for row in rows}:
            of_operator = sa.and_(triggers.c.operator == operator, CONDITIONS[operator](terms.c, triggers.c))
            query = sa.select(terms.c.term, triggers.c.rule).select_from(sa.join(terms, triggers, of_operator))
            found |= {(term, constants[rule - 1]) for term, rule in connection.execute(query)}
        found = {pair for pair in found if op.startswith("contains") or pair[1] != "NaN"}  # such rules are never found
    assert found == expected
