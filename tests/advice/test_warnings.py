"""What is said of a subscription at registration: the cases of tests/cases/warnings, one by one and from a file."""

from __future__ import annotations

import json
import tomllib
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from triplewire.engine import Engine
from triplewire.errors import Refusal, TriplewireError
from triplewire.ir.advice.conditions import IRI_KIND, NUMBER, TEXT, contradictions, kind_of
from triplewire.ir.advice.places import DATE_TIME, DAY, FEED_TYPES
from triplewire.ir.advice.questions import TERMS, questions_of, term_warning
from triplewire.ir.nodes import Coercion, Compare, Label, Variable
from triplewire.ir.taxonomy import Taxonomy
from triplewire.ir.values.compare import OPERATORS, lenient, strict
from triplewire.ir.values.numbers import ExpressionError
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.terms import IRI, XSD, Literal, Term
from triplewire.read import read

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).resolve().parents[1] / "cases/warnings/cases.toml").read_text(encoding="utf-8")
)["case"]
EXAMPLE = "http://example.org/"


def engine(matcher: str) -> Engine:
    taxonomy = Taxonomy.build([(EXAMPLE + "Lighthouse", EXAMPLE + "NavigationAid")])
    return Engine(taxonomy=taxonomy, matcher=matcher)


def said(case: dict[str, Any]) -> tuple[str, ...]:
    return (
        engine("reference")
        .subscribe(case["query"], case.get("language", "sparql"), id="case", base=case.get("base", ""))
        .warnings
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_registration_says_what_cannot_match(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(TriplewireError) as raised:
            said(case)
        assert case["refused"] in str(raised.value)
        return
    warnings = said(case)
    assert len(warnings) == len(case["warns"]), warnings
    for warning, part in zip(warnings, case["warns"], strict=True):
        assert part in warning


def test_files_of_many_similar_texts_say_the_same(tmp_path: Path) -> None:
    """Loading by template tells what registering one by one tells."""
    file, expected, rows = tmp_path / "many.jsonl", dict[str, tuple[str, ...]](), []
    for number, case in enumerate(CASES):
        for copy in range(5):  # a template comes with the second text of its kind
            query = case["query"].replace("> 5", f"> {5 + copy % 2}").replace("urn:q", f"urn:q{copy}")
            row = {"id": f"{number}-{copy}", "language": case.get("language", "sparql"), "query": query}
            rows.append(row | {"base": case.get("base", "")})
            if "refused" not in case:
                expected[str(row["id"])] = said(case | {"query": query})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told: dict[str, set[str]] = {id_: set() for id_ in expected}
    refused: list[Refusal] = []
    engine("trie").load_subscriptions(
        file, on_refusal=refused.append, on_warning=lambda id_, warning: told[id_].add(warning)
    )
    assert told == {id_: set(warnings) for id_, warnings in expected.items()}
    assert len(refused) == 5 * sum("refused" in case for case in CASES)


NUMBERS = [
    Literal(lexical, XSD + datatype)
    for datatype in ("decimal", "float", "double")
    for lexical in ("0.1", "16777216", "16777217", "9007199254740993", "INF", "NaN")
]
ANYTHING = [
    *(Literal(lexical, XSD + "duration") for lexical in ("P1M", "P30D", "P4800M", "P146097D")),
    *(
        Literal(day + zone, XSD + datatype)
        for datatype in ("dateTime", "dateTimeStamp")
        for day in ("2020-01-01T00:00:00", "2020-01-01T09:00:00")
        for zone in ("", "Z", "+09:00")
    ),
    *(Literal(lexical) for lexical in ("2", "02", "10 km", "a", "2020-01-01", "urn:a")),
    *(Literal.tagged("a", "en"), Literal("true", XSD + "boolean"), Literal("1", XSD + "boolean")),
    *(IRI("urn:a"), Literal("a", "urn:own"), NUMBERS[0], NUMBERS[1]),
]
LABELS = [Label("a", "urn:a"), Label("urn:a"), Label("2"), Label("b", "urn:b")]


@pytest.mark.parametrize("coercion", Coercion)
def test_no_value_is_what_a_warning_says_that_none_is(coercion: Coercion) -> None:
    said = 0
    for group in (NUMBERS, ANYTHING):
        constants = [*group, *(LABELS if coercion is Coercion.LENIENT else ())]
        tests = [Compare(op, Variable("v"), constant, coercion) for op in OPERATORS for constant in constants]
        held = [frozenset(number for number, value in enumerate(group) if holds(test, value)) for test in tests]
        for first, second in combinations(range(len(tests)), 2):
            warning = "".join(contradictions([tests[first], tests[second]]))
            said += bool(warning)
            assert not warning or not held[first] & held[second], (warning, held[first] & held[second])
    assert said > 2_000


def holds(test: Compare, value: Term) -> bool:
    if test.coercion is Coercion.LENIENT:
        return lenient(test.op, value, test.right, constant=test.right)
    try:
        return strict(test.op, value, test.right)
    except ExpressionError:
        return False


@pytest.mark.parametrize("alternatives", [1, 1_000])
def test_a_contradiction_is_found_among_many_conditions(alternatives: int) -> None:
    """Also behind a thousand that contradict nothing, and before as many alternatives."""
    excluded = "".join(f"?v != {number} && " for number in range(1_000))
    choices = " || ".join(f"?v = {1_000 + number}" for number in range(alternatives))

    def warned(more: str) -> list[str]:
        where = parse(f"SELECT ?v WHERE {{ ?s <urn:p> ?v FILTER ({excluded}{more}({choices})) }}", id="large").where
        return list(questions_of(where, list(walk(where))).warnings())

    assert warned("") == []
    assert any("5000" in warning and "3000" in warning for warning in warned("?v > 5000 && ?v < 3000 && "))


FEED = """<rss version="2.0" xmlns:geo="{geo}" xmlns:dc="{dc}" xmlns:dcterms="{dcterms}" xmlns:content="{content}"
  xmlns:slash="http://purl.org/rss/1.0/modules/slash/"><channel><title>c</title><link>urn:d</link><item><title>5</title><link>urn:a</link>
  <description>d</description><comments>urn:c</comments>
  <link rel="alternate" type="text/html" href="http://a.example/"/><enclosure url="urn:b" length="7" type="audio/mpeg"/>
  <author xmlns="http://www.w3.org/2005/Atom"><name>A</name><email>a@a.example</email><uri>http://a.example/a</uri></author>
  {elements}</item></channel></rss>"""


def test_feeds_have_the_types_that_warnings_say() -> None:
    """Of every property that is listed."""
    prefixes = {prefix: PREDECLARED[prefix] for prefix in ("geo", "dc", "dcterms", "content")}
    prefixes["slash"] = "http://purl.org/rss/1.0/modules/slash/"
    texts = {DATE_TIME: "Sun, 12 May 2024 21:10:00 +0200", NUMBER: "5", TEXT: "some"}
    named = [
        (f"{prefix}:{iri.removeprefix(namespace)}", texts.get(kind, "2024-05-12"))
        for iri, kind in FEED_TYPES.items()
        for prefix, namespace in prefixes.items()
        if iri.startswith(namespace) and kind != IRI_KIND
    ]
    elements = "".join(f"<{name}>{text}</{name}>" for name, text in named)
    (publication,) = read(FEED.format(elements=elements, **prefixes).encode())
    kinds = {(triple.predicate.value, kind_of(triple.object)) for triple in publication.triples}
    assert {iri for iri, _ in kinds if iri in FEED_TYPES} == FEED_TYPES.keys()
    wrong = {(iri, kind) for iri, kind in kinds if kind not in FEED_TYPES.get(iri, kind)}
    assert not {(iri, kind) for iri, kind in wrong if not (kind == DAY and "xsd:date" in FEED_TYPES[iri])}


def test_every_listed_term_is_known() -> None:
    prefix, count = "", 0
    for line in TERMS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            prefix, _, line = line.partition(": ")
        for term in line.split():
            count += 1
            assert term_warning(PREDECLARED[prefix.rstrip("~")] + term) == "", term
    assert count > 3_000
