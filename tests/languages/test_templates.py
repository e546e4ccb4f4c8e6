"""Templates: they say of a text what parsing it in full gives, whatever its parameters, and they spare the parser."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import islice

import pytest
from case_files import read_cases
from outcomes import by_template, context
from test_sparql_cases import CONTEXT

from amounts import usually
from shared_data import ROOT, lines
from triplewire.config import Settings
from triplewire.errors import TriplewireError
from triplewire.ir.entailment import with_subclasses
from triplewire.ir.normal_form import normal_form
from triplewire.languages import parse
from triplewire.languages import templates as package
from triplewire.languages.context import Context
from triplewire.languages.templates import Templates
from triplewire.languages.templates.template import Conjunction

MOST = Settings().max_branches
FILES = [
    (folder, path.name)
    for folder in ("sparql", "gql", "mdv", "keywords")
    for path in sorted((ROOT / "tests" / "cases" / folder).glob("*.txt"))
]
ODD = {
    "<": [
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
        "<http://www.w3.org/2000/01/rdf-schema#subClassOf>",
        "<http://www.w3.org/2001/XMLSchema#integer>",
        "<urn:triplewire:operator:locIn>",
        "<http://example.org/p>",
        "<http://example.org/terms#p>",
        "<x:>",
        "<HTTP://a/../b?c#d>",
        "<urn:é(1)>",
    ],
    '"': [
        *('"word"', '"two words"', '"pre*"', '"*"', '"é"', '"É"', '"a"@en', '"a"@EN', '"1"^^<http://a/t>', '"["', '""'),
        *('"a\\"b"', '"\\u0041"', '"\\u005b"', '"en"', '"unicode"', '" x "', '"<a:b> ?x"', '"#"', '"x" .', '"\ud800"'),
    ],
    "'": ["'word'", "'two words'", "'a'@en", "'1'^^<http://a/t>", "'['", "''", "'a\"b'", "'-- x'", "'a\\'b'", "'\n'"],
    " ": [" 5", " -5", " 5.5", " 007", " 5.", " 1e3", " .5", " - 5", " 5 km", " 2020-01-01", " 5%", " +5", " 99"],
}
"""Constants as they may be written, by their first character; some are none, or not where they are put."""
CONSTANTS = re.compile(
    r"""(<[^<>"{}|^`\\\x00-\x20]*>|"[^"\\\n\r]+"(?:@[\w-]+|\^\^<[^>]*>)?|'[^'\\\n\r]+'"""
    r"""(?:@[\w-]+|\^\^<[^>]*>)?| (?<=[<>=] )-?[0-9]+(?:\.[0-9]+)?(?![\w.]))"""
)


def _agrees(templates: Templates, text: str, language: str, given: Context, most: int = MOST) -> bool:
    """Has the text a template? Then what it says is right."""
    found = by_template(templates, text, language, given.prefixes, given.base)
    if found is None:
        return False
    template, parameters = found
    if any(rule in given.rules for rule in template.rules(parameters)):
        return False  # whoever asks has to parse it
    stated = parse(
        text,
        language,
        id="q",
        prefixes=given.prefixes,
        base=given.base,
        operators=given.operators,
        rules=given.rules,
        settings=given.settings,
    )
    assert template.subscription(parameters, "q", text, given.prefixes, given.base) == stated, text
    assert (template.selected(parameters), template.ask) == (stated.select, stated.ask), text
    assert template.warnings == stated.warnings, text
    assert stated.construct is None, text
    assert template.normal_form(parameters) == normal_form(stated, most=most), text
    return True


def _mutated(text: str, chance: random.Random) -> str:
    """The text with some constants changed: for odd ones, or for others of the same text."""
    pieces = CONSTANTS.split(text)
    for at in range(1, len(pieces), 2):
        if chance.random() < 0.5:
            alike = [one for one in pieces[1::2] if one[0] == pieces[at][0]]
            pieces[at] = chance.choice(alike + chance.sample(ODD[pieces[at][0]], 5))
    return "".join(pieces)


@pytest.mark.parametrize(("folder", "name"), FILES, ids="/".join)
def test_texts_of_the_cases_and_texts_like_them(folder: str, name: str) -> None:
    given = CONTEXT if folder == "sparql" else context(folder, name.removesuffix(".txt"))
    templates = Templates(operators=given.operators)
    chance = random.Random(f"{folder}/{name}")
    for case in read_cases(f"{folder}/{name}"):
        for text in [case.text, case.text, *(_mutated(case.text, chance) for _ in range(usually(8, 24)))]:
            if _agrees(templates, text, folder, given):
                assert case.outcome.startswith("=> ") or text != case.text


def _rtf(name: str) -> Iterator[str]:
    for line in lines(f"10-workloads/rtf-queries-100k-{name}.jsonl.gz"):
        body, filters = [], []
        for item in json.loads(line)[2]:
            body.append(" ".join(item[:3]) + " .")
            if len(item) == 4:
                filters.append("FILTER ftcontains({}, {})".format(item[2], " ftAND ".join(f'"{w}"' for w in item[3])))
        yield "SELECT * WHERE { " + " ".join(body + filters) + " }"


def _graph() -> Iterator[str]:
    for line in lines("10-workloads/graph-subscriptions-100k.jsonl.gz"):
        _, _, edges, conditions = json.loads(line)
        tuples = []
        for s, p, o in edges:
            mine = [c for c in conditions if c[0] in (s, o)]
            conditions = [c for c in conditions if c not in mine]
            text = f"({s}, {p}, {o})"
            tests = [f"{v} {'ISA ' * (k == 'isa')}{op} {x if k != 'isa' else f'<{x}>'}" for v, op, x, k in mine]
            tuples.append(f"({text} SUCHTHAT ({' AND '.join(tests)}))" if tests else text)
        yield "SELECT * WHERE " + " AND ".join(tuples)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ft000", "ft050", "ft100"])
def test_rtf_queries(name: str) -> None:
    templates, chance = Templates(), random.Random(name)
    texts = list(islice(_rtf(name), usually(800, 2_000)))
    assert sum([_agrees(templates, text, "sparql", Context()) for text in texts]) > usually(500, 1_400)
    for text in texts[::4]:
        _agrees(templates, _mutated(text, chance), "sparql", Context())


@pytest.mark.slow
def test_graph_subscriptions_are_put_together_from_known_tuples() -> None:
    templates, chance = Templates(), random.Random(1)
    texts = list(islice(_graph(), 0, 20_000, usually(48, 16)))
    assert sum([_agrees(templates, text, "gql", Context()) for text in texts]) > usually(220, 700)
    for text in texts[::4]:
        _agrees(templates, _mutated(text, chance), "gql", Context())
    assert templates.parsed < 600


@pytest.mark.slow
def test_mdv_rules() -> None:
    given = Context(prefixes={"nmo": "http://nomisma.org/ontology#"})
    templates, chance = Templates(), random.Random(2)
    texts = [json.loads(line)[2] for line in islice(lines("10-workloads/mdv-rules-40k.jsonl.gz"), 0, 40_000, 25)]
    assert sum([_agrees(templates, text, "mdv", given) for text in texts]) > 1_350
    for text in texts[::2]:
        _agrees(templates, _mutated(text, chance), "mdv", given)


# --- how often the parser is asked -----------------------------------------------------------------------------------


KINDS = "PREFIX e: <urn:e> SELECT * {{ ?s e:k{k} <urn:{n}> }}"


def _parsed(templates: Templates, texts: list[str], language: str = "sparql") -> tuple[int, int]:
    """How many texts have a template, and how many were parsed to prove templates."""
    before = templates.parsed
    return sum(by_template(templates, text, language) is not None for text in texts), templates.parsed - before


def test_a_text_is_proven_once() -> None:
    texts = [f'SELECT * {{ ?s <urn:p{n % 9}> ?o FILTER ftcontains(?o, "w{n}" ftAND "é{n}") }}' for n in range(1_000)]
    templates = Templates()
    assert _parsed(templates, texts[:1]) == (0, 0)  # it may be the only one of its kind
    found, proofs = _parsed(templates, texts[1:2])
    assert (found, proofs) == (1, 10)  # of a pattern and a condition
    assert _parsed(templates, texts[2:]) == (998, 0)


def test_a_text_that_has_no_parts_counts_once() -> None:
    texts = [f'SELECT * {{ ?s <urn:p{n % 9}> "\\t{n}" }}' for n in range(2)]
    assert _parsed(Templates(), texts) == (0, 0)
    escaped = [rf'SELECT * {{ ?s <urn:p{n % 9}> "\"{n}\"" }}' for n in range(100)]
    templates = Templates()
    assert _parsed(templates, escaped[:2])[0] == 1
    assert _parsed(templates, escaped[2:]) == (98, 0)


def test_a_text_without_template_is_tried_once() -> None:
    templates = Templates()
    texts = [f"SELECT * {{ ?s <urn:p{n}> ?o " for n in range(100)]
    assert _parsed(templates, texts) == (0, 1)


def test_tuples_are_proven_once_wherever_they_stand() -> None:
    templates, chance = Templates(), random.Random(3)
    ends = ["?a", "?b", "?c", "<urn:n1>", "<urn:n2>", '"l"@en', '"m"']
    texts = []
    for _ in range(2_000):
        tuples = [(chance.choice(ends[:5]), chance.choice(ends)) for _ in range(chance.randrange(1, 13))]
        texts.append("SELECT * WHERE " + " AND ".join(f"({s}, <urn:p{n}>, {o})" for n, (s, o) in enumerate(tuples)))
    assert _parsed(templates, texts[:200], "gql")[1] < 100
    found, proofs = _parsed(templates, texts[200:], "gql")
    assert (found, proofs) == (1_800, 0)
    assert all(_agrees(templates, text, "gql", Context()) for text in texts[200:400])


@pytest.mark.parametrize(("kinds", "rounds", "most", "advance"), [(30, 12, 20, 0), (30, 12, 20, 60), (90, 3, 100, 0)])
@pytest.mark.parametrize("form", [KINDS, "SELECT * WHERE (?s, k{k}, <urn:{n}>)"])
def test_many_kinds_of_texts_take_at_most_twice_as_long_as_parsing_them(
    form: str, kinds: int, rounds: int, most: int, advance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where templates are forgotten before they are used, as there is no room for so many."""
    monkeypatch.setattr(package, "MOST_TEMPLATES", most)
    monkeypatch.setattr(package, "ADVANCE", advance)
    templates, language = Templates(), "gql" if "WHERE (" in form else "sparql"
    texts = [form.format(k=kind, n=turn) for turn in range(rounds) for kind in range(kinds)]
    found, proofs = _parsed(templates, texts, language)
    assert proofs <= len(texts) + advance + 8, "the last template may be begun"
    assert found, "some have templates all the same"


def test_a_kind_of_texts_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MOST_TEMPLATES", 40)
    templates, form = Templates(), KINDS

    def turn(number: int, kinds: int = 40) -> tuple[int, int]:
        return _parsed(templates, [form.format(k=kind, n=number) for kind in range(kinds)])

    assert [turn(0), turn(1), turn(2)] == [(0, 0), (40, 240), (40, 0)]
    # two more: all are forgotten, those that came once, too
    assert [by_template(templates, form.format(k="new", n=n), "sparql") is None for n in range(2)] == [True, False]
    assert [turn(3), turn(4, 20)] == [(0, 0), (20, 120)]


# --- single laws ---------------------------------------------------------------------------------------------------


def _both(first: str, second: str) -> bool:
    """Has the second text the template of the first, which was met before?"""
    templates = Templates()
    for _ in range(3):
        _agrees(templates, first, "sparql", Context())
    before = templates.parsed
    return _agrees(templates, second, "sparql", Context()) and templates.parsed == before


SAME = [
    ("SELECT * { ?s <a:p> ?o }", "SELECT * { ?s <http://b/q#r> ?o }"),
    ('SELECT * { ?s <a:p> "x" }', 'SELECT * { ?s <a:p> "y z"@en-gb }'),
    ('SELECT * { ?s <a:p> "x"@en }', 'SELECT * { ?s <a:p> "x"@pt-br }'),
    ('SELECT * { ?s <a:p> "x" }', 'SELECT * { ?s <a:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> }'),
    ('SELECT * { ?s <a:p> "x" }', r'SELECT * { ?s <a:p> "a \"word\" and \\ "@en }'),
    ("SELECT * { ?s <a:p> 'x' }", r"SELECT * { ?s <a:p> '\\\'\\'^^<a:b'c> }"),
    ("ASK { ?s <a:p> ?o FILTER(?o > 5) }", "ASK { ?s <a:p> ?o FILTER(?o > 700) }"),
    ('ASK { ?s <a:p> ?o FILTER contains(?o, "a") }', 'ASK { ?s <a:p> ?o FILTER contains(?o, "b [") }'),
]

OTHER = [
    # a phrase is no word
    ('ASK { ?s ?p ?o FILTER ftcontains(?o, "a") }', 'ASK { ?s ?p ?o FILTER ftcontains(?o, "a b") }'),
    ('ASK { ?s ?p ?o FILTER ftcontains(?o, "a") }', 'ASK { ?s ?p ?o FILTER ftcontains(?o, "A") }'),
    # a stemmer looks at the word
    (
        'ASK { ?s ?p ?o FILTER ftcontains(?o, "run" USING STEMMING "en") }',
        'ASK { ?s ?p ?o FILTER ftcontains(?o, "running" USING STEMMING "en") }',
    ),
    # a number's datatype
    ("ASK { ?s <a:p> ?o FILTER(?o > 5) }", "ASK { ?s <a:p> ?o FILTER(?o > 5.0) }"),
    # equal constants may make two patterns one
    ("SELECT * { ?s <a:p> <a:x> ; <a:q> <a:y> }", "SELECT * { ?s <a:q> <a:x> ; <a:q> <a:y> }"),
    ("SELECT * { ?s <a:p> <a:x> ; <a:q> <a:y> }", "SELECT * { ?s <a:p> <a:x> ; <a:p> <a:x> }"),
    (
        "SELECT * { ?s <a:p> <a:x> ; foaf:name <a:y> }",
        "SELECT * { ?s <http://xmlns.com/foaf/0.1/name> <a:y> ; foaf:name <a:y> }",
    ),
    ('SELECT * { ?s <a:p> "x"@en , "y"@de }', 'SELECT * { ?s <a:p> "x"@EN , "x"@en }'),
    ("SELECT * { ?s <a:p> 'x' , \"y\" }", "SELECT * { ?s <a:p> 'x' , \"x\" }"),
    # other escapes: another way to write an equal term
    ('SELECT * { ?s <a:p> "x" }', r'SELECT * { ?s <a:p> "\u0041" }'),
    ('SELECT * { ?s <a:p> "x" }', r"""SELECT * { ?s <a:p> "\'" }"""),
    # capitals in a tag: another way to write an equal term
    ('SELECT * { ?s <a:p> "x" }', 'SELECT * { ?s <a:p> "x"@EN }'),
    # a regular expression is compiled
    ('ASK { ?s ?p ?o FILTER regex(?o, "a") }', 'ASK { ?s ?p ?o FILTER regex(?o, "b") }'),
    # a base changes what is relative
    ("BASE <http://a/> ASK { ?s ?p <x> }", "BASE <http://b/> ASK { ?s ?p <x> }"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_one_template(first: str, second: str) -> None:
    assert _both(first, second)


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_not_the_same_template(first: str, second: str) -> None:
    assert not _both(first, second)


EQUAL = [
    'SELECT * {{ ?s <a:p{n}> ?o FILTER ftcontains(?o, "w{n}" ftAND "v{n}" ftAND "w{n}") }}',
    "SELECT * {{ ?s <a:p{n}> <a:x{n}> ; <a:p{n}> <a:x{n}> ; <a:q{n}> <a:x{n}> }}",
    'SELECT * {{ ?s <a:p{n}> "x{n}"@en , "x{n}"@en }}',
    "SELECT * {{ ?s <a:p> <a:p> , <a:q{n}> , <a:q{n}> }}",
]


@pytest.mark.parametrize("form", EQUAL)
def test_where_equal_constants_make_parts_one_there_is_another_template(form: str) -> None:
    templates = Templates()
    unlike = [re.sub(r"{n}", lambda found: f"{found.start()}", form).format() for _ in range(3)]
    equal = [form.format(n=n) for n in range(40)]
    first, _, third = (_agrees(templates, text, "sparql", Context()) for text in unlike)
    assert (first, third) == (False, True)
    assert [_agrees(templates, text, "sparql", Context()) for text in equal[:2]][1]
    before = templates.parsed
    assert all(_agrees(templates, text, "sparql", Context()) for text in [*equal[2:], *unlike])
    assert templates.parsed == before


def test_texts_with_both_quotations_are_parsed() -> None:
    templates = Templates()
    texts = [f"SELECT * {{ ?s <a:p> 'x{n}' , \"x{n + n % 2}\" }}" for n in range(12)]
    assert not any(_agrees(templates, text, "sparql", Context()) for text in texts)
    assert templates.parsed == 0


def test_a_type_is_no_parameter_where_entailment_looks_at_it() -> None:
    templates = Templates(meant=with_subclasses)
    form = "SELECT * {{ ?s <{}> <http://a/c{}> }}"
    texts = [
        form.format(p, n) for n in range(4) for p in ("http://a/p", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    ]
    count = 0
    for text in texts:
        found = by_template(templates, text, "sparql")
        if found is not None:
            count += 1
            assert found[0].normal_form(found[1]) == normal_form(with_subclasses(parse(text)), most=MOST)
    assert count == 6


def test_rules_that_an_mdv_text_would_name() -> None:
    templates = Templates()
    found = None
    for n in range(3):
        found = by_template(templates, f"PREFIX a: <http://a/> search <http://b/{n}> b, a:C c register c", "mdv")
    assert found is not None
    assert found[0].rules(found[1]) == ("http://b/2", "a:C")


def test_limits_are_those_of_the_parser() -> None:
    templates = Templates(Settings(max_query_bytes=160, max_patterns=2))
    short = "SELECT * {{ ?s <urn:{}> ?o }}"
    assert [by_template(templates, short.format(n), "sparql") is not None for n in range(3)] == [False, True, True]
    assert by_template(templates, short.format("x" * 140), "sparql") is None
    tuples = "SELECT * WHERE " + " AND ".join(f"(?s, p, <a:{n}>)" for n in range(3))
    assert all(by_template(templates, tuples, "gql") is None for _ in range(6))
    with pytest.raises(TriplewireError, match="triple patterns"):
        parse(tuples, "gql", settings=Settings(max_patterns=2))


def test_what_cannot_be_cut() -> None:
    templates = Templates()
    for text in ("ASK { ?s ?p '\0' }", "ASK { ?s ?p '\ud800' }", "ASK { ?s ?p ?o }" * 10_000):
        assert [by_template(templates, text, "sparql") for _ in range(4)] == [None] * 4
    assert [by_template(templates, "p = 5", "predicates") for _ in range(4)] == [None] * 4


def test_gql_texts_of_several_tuples_are_composed() -> None:
    templates = Templates()
    found = [
        by_template(templates, f"SELECT * WHERE (?a, <a:{n}>, ?b) AND (?b, <b:{n}>, 'x')", "gql") for n in range(3)
    ]
    assert found[2] is not None
    assert isinstance(found[2][0], Conjunction)
