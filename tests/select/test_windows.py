"""Two bounds on one value are one window: what holds is found without looking at what does not, exactly."""

from __future__ import annotations

import random

import numpy as np
import pytest
from built import Built, accepted, clauses_of

from engine.generated import WORLD
from triplewire import Publication, parse
from triplewire.clauses.clauses import merge
from triplewire.ir.evaluation.evaluate import evaluate
from triplewire.ir.subscription import Subscription
from triplewire.model.terms import IRI, XSD, Literal, Triple

NUMBERS = [
    *[Literal(f"{n}", XSD + "integer") for n in (-1, 0, 1, 2, 3, 9_007_199_254_740_992, 9_007_199_254_740_993)],
    *[Literal(f"{n}", XSD + "decimal") for n in ("0.5", "1.0", "1.50", "2.25", "9007199254740993.5")],
    *[Literal(f"{n}", XSD + "double") for n in ("1e0", "2.5E0", "NaN", "INF", "-INF", "9007199254740992")],
    *[Literal(f"{n}", XSD + "float") for n in ("1.5", "0.1", "NaN")],
]
DATES = [
    *[Literal(f"2020-01-0{n}T12:00:00Z", XSD + "dateTime") for n in (1, 2, 3)],
    *[Literal(f"2020-01-0{n}T12:00:00", XSD + "dateTime") for n in (1, 2, 3)],
    *[Literal(f"2020-01-0{n}T18:00:00+14:00", XSD + "dateTime") for n in (1, 2)],
    *[Literal(f"2020-01-0{n}", XSD + "date") for n in (1, 2, 3)],
]
TEXTS = [Literal("a"), Literal("b"), Literal("bb"), Literal("c", language="en"), Literal("1"), Literal("2020-01-02")]
KINDS = {"numbers": NUMBERS, "dates": DATES, "texts": TEXTS, "mixed": NUMBERS + DATES + TEXTS}


def n_triples(term: Literal) -> str:
    """The term as SPARQL has it."""
    return f'"{term.lexical}"' + (f"@{term.language}" if term.language else f"^^<{term.datatype}>")


def window(language: str, dice: random.Random, constants: list[Literal], predicate: str) -> str:
    """The text of a subscription with one to four bounds on the objects under a predicate, and maybe on others."""

    def bounds(variable: str) -> str:
        ops = [dice.choice((">", ">=")), dice.choice(("<", "<=")), dice.choice(("<", "<=", ">", ">=", "!="))]
        chosen = [(op, dice.choice(constants)) for op in ops[: dice.choice((1, 2, 2, 2, 3))]]
        if language == "gql":
            return " AND ".join(f'{variable} {op} "{constant.lexical}"' for op, constant in chosen)
        return " && ".join(f"{variable} {op} {n_triples(constant)}" for op, constant in chosen)

    two = dice.random() < 0.4
    if language == "gql":
        more = f" AND ((?s, <urn:q>, ?z) SUCHTHAT ({bounds('?z')}))" if two else ""
        return f"SELECT * WHERE ((?s, {predicate}, ?y) SUCHTHAT ({bounds('?y')})){more}"
    more = f"?s <urn:q> ?z FILTER({bounds('?z')})" if two else ""
    return f"SELECT * {{ ?s {predicate} ?y FILTER({bounds('?y')}) {more} }}"


def about(*objects: Literal, also: tuple[Literal, ...] = ()) -> Publication:
    triples = [Triple(IRI("urn:s"), IRI("urn:p"), term) for term in objects]
    return Publication("p", tuple(triples + [Triple(IRI("urn:s"), IRI("urn:q"), term) for term in also]))


def agrees(built: Built, subscriptions: list[Subscription], some: list[Publication]) -> int:
    """Nothing wrong is accepted and nothing is missing; returns how many match."""
    selected, matches = built.selected(some), 0
    for row, publication in enumerate(some):
        meant = {n for n, one in enumerate(subscriptions) if evaluate(one, publication, WORLD).bindings}
        sure = accepted(selected, row)
        assert len(set(sure)) == len(sure)
        assert set(sure) <= meant <= {*sure, *built.to_check(selected, row)}
        matches += len(meant)
    return matches


@pytest.mark.slow
@pytest.mark.parametrize("language", ["gql", "sparql"])
@pytest.mark.parametrize("kind", KINDS)
def test_windows_agree_with_the_reference(language: str, kind: str) -> None:
    dice = random.Random(f"{language} {kind}")
    constants = [term for term in KINDS[kind] if language == "sparql" or term.lexical]
    texts = [window(language, dice, constants, dice.choice(("<urn:p>", "<urn:p>", "?p"))) for _ in range(40)]
    subscriptions = [parse(text, language, id=str(n)) for n, text in enumerate(texts)]
    some = [about(term, also=(dice.choice(NUMBERS + DATES),)) for term in NUMBERS + DATES + TEXTS]
    some += [about(*dice.sample(KINDS["mixed"], size), also=tuple(dice.sample(NUMBERS, 2))) for size in (2, 3, 20)]
    built = Built.of(clauses_of(subscriptions))
    matches = agrees(built, subscriptions, some)
    assert agrees(built.saved("trie"), subscriptions, some) == matches
    assert matches > 0 or kind == "texts"


def of_width(count: int, width: float) -> list[Subscription]:
    """Windows of a width, side by side."""
    texts = [f"SELECT * WHERE (?s, <urn:p>, ?y) SUCHTHAT (?y >= {n} AND ?y < {n + width})" for n in range(count)]
    return [parse(text, "gql", id=str(n)) for n, text in enumerate(texts)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, 1_000])
def test_as_many_nodes_as_windows_hold(count: int) -> None:
    built = Built.of(clauses_of(of_width(count, 3)))
    values = [0, 50, count - 1]
    selected = built.selected([about(Literal(f"{value}.5")) for value in values])
    for row, value in enumerate(values):
        assert accepted(selected, row) == [n for n in range(value - 2, value + 1) if n >= 0]
    assert selected.nodes == len(values) + selected.candidates  # a range node each, and what holds


def test_windows_of_all_widths() -> None:
    dice = random.Random(3)
    pairs = [(dice.randrange(1_000), dice.randrange(1_000)) for _ in range(700)]  # half of them hold of nothing
    texts = [f"SELECT * WHERE (?s, <urn:p>, ?y) SUCHTHAT (?y > {a} AND ?y <= {b})" for a, b in pairs]
    built = Built.of(clauses_of([parse(text, "gql", id=str(n)) for n, text in enumerate(texts)])).saved("trie")
    values = list(range(0, 1_000, 37))
    selected = built.selected([about(Literal(str(value))) for value in values])
    for row, value in enumerate(values):
        assert accepted(selected, row) == [n for n, (a, b) in enumerate(pairs) if a < value <= b]


def test_each_once_of_several_values() -> None:
    subscriptions = of_width(300, 40)
    built = Built.of(clauses_of(subscriptions))
    few, many = about(*(Literal(str(n)) for n in (50, 60, 200))), about(*(Literal(str(n)) for n in range(30, 60)))
    assert agrees(built, subscriptions, [few, many]) > 0
    selected = built.selected([few])
    meant = [n for n in range(300) if any(n <= value < n + 40 for value in (50, 60, 200))]
    assert sorted(built.to_check(selected, 0)) == meant


def test_the_narrower_window_is_first() -> None:
    wide = "(?s, <urn:p>, ?y) SUCHTHAT (?y > {} AND ?y < 2000)"
    narrow = "(?s, <urn:q>, ?z) SUCHTHAT (?z > {} AND ?z < {})"
    texts = [f"SELECT * WHERE ({wide.format(-n)}) AND ({narrow.format(n, n + 2)})" for n in range(1_000)]
    built = Built.of(clauses_of([parse(text, "gql", id=str(n)) for n, text in enumerate(texts)]))
    selected = built.selected([about(Literal("1"), also=(Literal("500"),))])
    assert accepted(selected, 0) == [499]
    assert selected.nodes < 8


def test_windows_of_merged_clauses() -> None:
    parts = [of_width(200, 3), of_width(150, 5)]
    rows = [(clauses_of(part), np.arange(0, len(part), 2)) for part in parts]
    meant = [one for part in parts for one in part[::2]]
    assert agrees(Built.of(merge(rows)), meant, [about(Literal("90.5")), about(Literal("149"))]) > 0
