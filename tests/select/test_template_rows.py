"""Subscriptions added by template: the same index as from their normal form, and few constants looked up twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import pytest

from shared_data import lines
from triplewire.clauses import from_templates
from triplewire.clauses.builder import ClauseBuilder
from triplewire.clauses.clauses import Clauses
from triplewire.ir.normal_form import normal_form
from triplewire.languages import parse
from triplewire.languages.sources.row_columns import RowColumns
from triplewire.languages.sources.rows import Row
from triplewire.languages.templates import Templates, TextForms

MOST = 64
PREFIX = "PREFIX nmo: <http://nomisma.org/ontology#>\n"

TEXTS = {
    "words": ("sparql", 'SELECT * {{ ?s <urn:p{0}> ?o FILTER ftcontains(?o, "w{1}" ftAND "w{2}") }}'),
    "equal words": (
        "sparql",
        'SELECT * {{ ?s <urn:p{0}> ?o FILTER ftcontains(?o, "w{1}" ftAND "w{2}" ftAND "w{1}") }}',
    ),
    "any word": ("sparql", 'SELECT ?o {{ ?s ?p ?o FILTER ftcontains(?o, "w{1}" ftOR "0") }}'),
    "any word, the other way round": ("sparql", 'SELECT ?o {{ ?s ?p ?o FILTER ftcontains(?o, "0" ftOR "w{1}") }}'),
    "literals": ("sparql", 'ASK {{ ?s <urn:p{0}> "a, b {1}"@en ; * "c {2}" }}'),
    "tags": ("sparql", 'SELECT * {{ ?s <urn:p{0}> "a {1}"@en , "a {2}"@pt-br , "a {2}"@en }}'),
    "alternatives": (
        "sparql",
        "SELECT * {{ {{ ?s <urn:p{0}> ?o }} UNION {{ ?s <urn:q> <urn:o{1}> FILTER(?s != <urn:s>) }} }}",
    ),
    "unlike": (
        "sparql",
        'SELECT * {{ ?s <urn:p> ?o, ?b FILTER(?o > {0} && ?o != ?b) FILTER contains(str(?o), "a{1}") }}',
    ),
    "numbers in patterns": ("sparql", "ASK {{ ?s <urn:p{0}> {1} , ?o ; <urn:q> {2}.5 FILTER(?o = -{1}) }}"),
    "wildcards": ("sparql", "SELECT * {{ ?s * ?o . ?s <urn:p{0}> * . ?o * <urn:a{1}> . ?s * ?o . }}"),
    "selected": (
        "sparql",
        "PREFIX e: <urn:e> SELECT ?o ?s WHERE {{ FILTER(?o > {2}) ?s e:p ?o ; <urn:p{0}> ?a . <urn:a{1}> ?o ?s }}",
    ),
    "asked": ("sparql", 'ASK {{ ?s <urn:p{0}> "x{1}"@en . FILTER ftcontains(?s, "w{2}") . FILTER(?s != <urn:s{1}>) }}'),
    "no variable": ("sparql", "SELECT * {{ <urn:s{0}> <urn:p{1}> <urn:o{2}> . <urn:s{0}> <urn:p> <urn:o> }}"),
    "equal conditions": ("sparql", "SELECT * {{ ?s ?p ?o FILTER(?o > {0}) FILTER(?o > {1}) FILTER(?o > {0}) }}"),
    "numbers": ("gql", "SELECT * WHERE ((?s, <urn:p{0}>, ?o) SUCHTHAT (?o > {1} AND ?o <= {2}.5))"),
    "classes": ("gql", "SELECT * WHERE ((?s, <urn:p>, ?o) SUCHTHAT (?o ISA <urn:c{0}> AND ?o CONTAINS 'a {1}'))"),
    "tuples": (
        "gql",
        "SELECT * WHERE (?s, <urn:p{0}>, ?o) AND ((?o, ?q, <urn:o{1}>) SUCHTHAT (?q > {2})) AND (?s, ?q, 'l')",
    ),
    "equal tuples": (
        "gql",
        "SELECT * WHERE (?s, <urn:p{0}>, <urn:p{1}>) AND (?s, <urn:p3>, <urn:p3>) AND (?t, ?t, ?s)",
    ),
    "rules": (
        "mdv",
        PREFIX
        + "search nmo:Mint c register c where c.nmo:at = <urn:a{0}> and c.nmo:name contains 'b {1}' and c.nmo:x < {2}",
    ),
}
"""Language and form, into which numbers go."""


def _row(index: Clauses, number: int) -> tuple[object, ...]:
    """A subscription in full: no number of a term or test."""
    programs = index.table
    clauses = []
    for clause in range(int(programs.clause_offset[number]), int(programs.clause_offset[number + 1])):
        patterns = programs.pattern[programs.pattern_offset[clause] : programs.pattern_offset[clause + 1]]
        tests = slice(int(programs.test_offset[clause]), int(programs.test_offset[clause + 1]))
        clauses.append(
            (
                [
                    [int(at) if at < 0 else (int(index.constants.kind[at]), index.constants[at]) for at in row]
                    for row in patterns
                ],
                programs.test_variable[tests].tolist(),
                [(int(index.tests.kind[test]), index.tests.specs[test]) for test in programs.test[tests]],
                int(programs.variables[clause]),
            )
        )
    return clauses, int(programs.selected[number]), int(programs.flags[number])


def _both(texts: list[tuple[str, str]], together: int) -> tuple[Clauses, Clauses, int]:
    """Two indexes of the same texts, by templates where there are some, so many texts together, and in full; and how
    many had one."""
    by_template, plain, count, templates = ClauseBuilder(), ClauseBuilder(), 0, Templates()
    for first in range(0, len(texts), together):
        some, row = texts[first : first + together], 0
        batch = by_template.batch(_forms(templates, some))
        for number, (language, text) in enumerate(some):
            subscription = parse(text, language)
            whole = normal_form(subscription, most=MOST)
            plain.add(whole, subscription.select, subscription.ask)
            if row == number:
                row = by_template.add_from(batch, number)
                count += row - number
            if row == number:
                by_template.add(whole, subscription.select, subscription.ask)
                row += 1
    return by_template.build(), plain.build(), count


def _forms(templates: Templates, texts: list[tuple[str, str]]) -> TextForms:
    return templates.find_all(RowColumns.of(Row(str(n), *text) for n, text in enumerate(texts)).queries)


def _agree(texts: list[tuple[str, str]], together: int = 1_000) -> int:
    by_template, plain, count = _both(texts, together)
    assert len(by_template) == len(plain) == len(texts)
    for number, (_, text) in enumerate(texts):
        assert _row(by_template, number) == _row(plain, number), text
    assert len(by_template.constants) == len(plain.constants)
    assert len(by_template.tests) == len(plain.tests)
    return count


@pytest.mark.parametrize("name", TEXTS)
def test_each_form(name: str) -> None:
    language, form = TEXTS[name]
    count = _agree([(language, form.format(n % 7, n % 5 + 1, n + 10)) for n in range(40)])
    assert count >= 37  # the first is met for the first time; some are proved, or have equal constants


def test_forms_side_by_side_share_their_terms_and_tests() -> None:
    texts = [(language, form.format(n % 7, n % 5 + 1, n + 10)) for n in range(40) for language, form in TEXTS.values()]
    assert _agree(texts) >= 37 * len(TEXTS)


def test_what_is_known_of_templates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was forgotten is made anew, and is the same."""
    monkeypatch.setattr(from_templates, "MOST_TEMPLATES", 1)
    forms = [(language, [form.format(n % 7, n % 5 + 1, n + 10) for n in range(8)]) for language, form in TEXTS.values()]
    texts = [(language, text) for _ in range(2) for language, its in forms for text in its]
    assert _agree(texts, 8) >= 12 * len(TEXTS)
    rows, templates, sizes = ClauseBuilder(), Templates(), list[int]()
    for first in range(0, len(texts), 8):
        rows.batch(_forms(templates, texts[first : first + 8]))
        sizes.append(len(rows._rows._columns))
    assert max(sizes) < len(templates.templates) // 2


def test_what_is_the_same_but_for_the_place_of_a_constant_is_two_tests() -> None:
    """A parameter of one template is a constant of the other."""
    texts = [
        ("sparql", TEXTS[name][1].format(0, n, 0))
        for n in range(4)
        for name in ("any word", "any word, the other way round")
    ]
    phrase = "SELECT ?o {{ ?s ?p ?o FILTER ftcontains(?o, {}) }}"
    texts += [("sparql", phrase.format(f'"w{n}" ftNEAR[0,2] "0"')) for n in range(4)]
    texts += [("sparql", phrase.format(f'"0" ftNEAR[0,2] "w{n}"')) for n in range(4)]
    assert _agree(texts) > 8


def _rtf(name: str) -> Iterator[str]:
    for line in lines(f"10-workloads/rtf-queries-100k-{name}.jsonl.gz"):
        body, filters = [], []
        for item in json.loads(line)[2]:
            body.append(" ".join(item[:3]) + " .")
            if len(item) == 4:
                words = " ftAND ".join(f'"{word}"' for word in item[3])
                filters.append(f"FILTER ftcontains({item[2]}, {words})")
        yield "SELECT * WHERE { " + " ".join(body + filters) + " }"


@pytest.mark.parametrize("name", ["ft000", "ft050", "ft100"])
def test_queries_of_the_shared_data(name: str) -> None:
    assert _agree([("sparql", text) for text in islice(_rtf(name), 1_500)]) > 1_000


def test_rules_of_the_shared_data() -> None:
    rows = islice(lines("10-workloads/mdv-rules-40k.jsonl.gz"), 0, 40_000, 40)
    assert _agree([("mdv", PREFIX + json.loads(row)[2]) for row in rows]) > 900
