"""The bindings of matches: one order for all matchers, filters before products, and a word where bindings are cut."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from amounts import MATCHERS, usually
from engine.samples import EX, iri
from triplewire import Engine, Publication, Settings, Triple
from triplewire.encode.schema import to_batch
from triplewire.engine import MatchResult
from triplewire.engine.stats import Stats
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.languages import parse
from triplewire.model.match import Match, bindings_text, row_key
from triplewire.model.terms import BlankNode, Literal, Node, Term

PREFIX = f"PREFIX : <{EX}> "
PUFFINS = PREFIX + 'SELECT ?a ?b { ?s :q ?a ; :r ?b FILTER ftcontains(?b, "puffin") }'


def star(first: int, second: int, puffins: int = 1) -> Publication:
    """A subject with so many values of :q and of :r, a few of the latter with the word."""
    texts = [f"b{number}" for number in range(second - puffins)] + [f"puffin {number}" for number in range(puffins)]
    triples = [Triple(iri("s"), iri("q"), Literal(f"a{number}")) for number in range(first)]
    triples += [Triple(iri("s"), iri("r"), Literal(text)) for text in texts]
    return Publication("p", tuple(random.Random(first).sample(triples, len(triples))))


def said(found: MatchResult, engine: Engine, publications: Sequence[Publication]) -> list[bool]:
    """What the matches say of their bindings; the objects, the columns and the counts say the same."""
    matches = list(found)
    truncated = [match.truncated for match in matches]
    assert found.truncated == found.stats.truncated == sum(truncated)
    assert [flag for part in found.parts for flag in part.truncated.tolist()] == truncated
    assert [match.to_json()["truncated"] for match in matches] == truncated
    for table in (engine.match(publications).to_arrow(), engine.match_batch(to_batch(list(publications)))):
        assert table.column("truncated").to_pylist() == truncated
        texts = [bindings_text(match.bindings) for match in matches]
        assert list(map(json.loads, table.column("bindings").to_pylist())) == list(map(json.loads, texts))
    totals = Stats()
    totals.add(found.stats)
    assert totals.to_json()["truncated"] == sum(truncated)
    return truncated


def test_a_filter_goes_before_the_product_that_it_is_in(matcher: str) -> None:
    """4,500,000 rows without the filter, more than `max_steps`; 900 with it."""
    publication = star(900, 5_000)
    engine = Engine(matcher=matcher)
    engine.subscribe(PUFFINS, id="puffins")
    found = engine.match(publication)
    assert found.refusals == []
    assert said(found, engine, [publication]) == [False]
    assert [binding["b"] for binding in found[0].bindings] == [Literal("puffin 0")] * 900
    wanted = sorted(f"a{number}" for number in range(900))
    assert [str(binding["a"]).strip('"') for binding in found[0].bindings] == wanted


@pytest.mark.parametrize("group", ["?s :q ?a", "?s :q ?a OPTIONAL { ?s :none ?n }", "?s :q ?a . BIND(STR(?a) AS ?t)"])
def test_no_binding_can_be_changed(matcher: str, group: str) -> None:
    """However it is found; else whoever changes one changes those of later matches that share it."""
    engine = Engine(matcher=matcher)
    engine.subscribe(f"{PREFIX}SELECT * {{ {group} }}", id="all")
    (match,) = engine.match(star(1, 1))
    with pytest.raises(TypeError, match="cannot be changed"):
        match.bindings[0]["a"] = Literal("other")  # type: ignore[index]  # what it is typed as, neither


GROUPS = (
    ("?s :q ?a ; :r ?b", ""),
    ("?s :q ?a . ?t :r ?b", ""),
    ("?s :q ?a ; :r ?b ; :r ?c", 'FILTER ftcontains(?c, "puffin")'),
    ("?s :q ?a . ?a :next ?n . ?s :r ?b", ""),
    ("?s :q ?a OPTIONAL { ?s :none ?n } ?s :r ?b", ""),
    ("?s :q ?a FILTER EXISTS { ?s :r ?e FILTER ftcontains(?e, 'puffin') } ?s :r ?b", ""),
)
CONDITIONS = (
    'ftcontains(?b, "puffin")',
    'STRSTARTS(?b, "puffin")',
    'REGEX(?b, "^puff.n")',
    'STRLEN(?b) > 7 && ftcontains(?b, "puff*")',
    '?b >= "p"',
    '?b IN ("puffin 0", "puffin 1")',
)


def generated(chance: random.Random) -> tuple[Publication, str]:
    """Products that a filter makes small."""
    publication = star(chance.randint(40, 90), chance.randint(150, 400), chance.choice((1, 2)))
    more = [Triple(iri("x"), iri("next"), Literal("y"))]
    if chance.random() < 0.5:
        more += [Triple(iri("s"), iri("q"), node) for node in (iri("x"), BlankNode("b"))]
    select = chance.choice(("?a ?b", "?b ?a", "*", "?a", "?b"))
    patterns, condition = chance.choice(GROUPS)
    text = f"{PREFIX}SELECT {select} {{ {patterns} FILTER({chance.choice(CONDITIONS)}) {condition} }}"
    return Publication("p", (*publication.triples, *more)), text


def frozen(match: Match) -> list[frozenset[tuple[str, Term]]]:
    return [frozenset(binding.items()) for binding in match.bindings]


@pytest.mark.parametrize("steps", [5_000, 1_200, 500])
def test_generated_products(matcher: str, steps: int) -> None:
    """With 5,000 steps, fewer than most of the products without their filters have rows, all bindings are there. With
    fewer steps they may be cut, or the pair refused; what is cut is a part, in order, and said to be cut."""
    chance, cut, refused = random.Random(f"{steps}"), 0, 0
    cases = [generated(chance) for _ in range(usually(10, 25))]
    for publication, text in cases:
        world = World(settings=Settings(max_steps=steps, max_bindings=500))
        engine = Engine(matcher=matcher, settings=world.settings)
        engine.subscribe(text, id="s")
        found = engine.match(publication)
        whole = evaluate(parse(text), publication, World(settings=Settings(max_bindings=500)))
        if found.refusals:
            refused += 1
            assert "max_steps" in found.refusals[0].remedy
            assert len(found) == 0
            continue
        assert len(found) == bool(whole.bindings), text
        for match, truncated in zip(found, said(found, engine, [publication]), strict=True):
            rows, every = frozen(match), [frozenset(binding.items()) for binding in whole.bindings]
            assert rows == (every if not truncated else [row for row in every if row in set(rows)]), text
            cut += truncated
    if steps == 5_000:
        assert (cut, refused) == (0, 0)
    else:
        assert cut + refused > 0


def test_what_is_cut_while_bindings_are_listed_is_said() -> None:
    """The index counts 900 bindings without looking at them; 700 steps list a part. Other matches keep all."""
    more = [Triple(iri("s"), iri("other"), Literal(str(number))) for number in range(300)]
    publication = Publication("p", (*star(30, 30).triples, *more))
    engine = Engine(matcher="trie", settings=Settings(max_steps=700))
    engine.subscribe(PREFIX + "SELECT ?a { ?s :q ?a }", id="few")
    engine.subscribe(PREFIX + "SELECT ?a ?b { ?s :q ?a ; :r ?b }", id="product")
    engine.settle()
    found = engine.match(publication)
    assert found.stats.tiers["compiled"] == 1
    assert found.refusals == []
    assert said(found, engine, [publication]) == [False, True]
    assert len(found[0].bindings) == 30
    assert 0 < len(found[1].bindings) < 900


NODES: list[Node] = [iri("n1"), iri("n0"), BlankNode("b1"), BlankNode("b0")]
VALUES: list[Term] = [
    *NODES,
    *map(Literal, ("b", "a", "B", "é", "\U0001f600", "\uffff", "")),
    *(Literal("a", EX + name) for name in ("t1", "t0")),
    *(Literal.tagged("a", tag) for tag in ("en", "de")),
]


def test_one_order_whatever_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the selected variables in turn; what is unbound comes first. For all matchers, and the interpreted tier."""
    chance = random.Random(5)
    triples = [Triple(chance.choice(NODES), iri("q"), value) for value in VALUES for _ in range(2)]
    triples += [Triple(node, iri("r"), chance.choice(VALUES)) for node in NODES[1:]]
    texts = [
        "SELECT ?s ?o { ?s :q ?o }",
        "SELECT ?o ?s { ?s :q ?o }",
        "SELECT * { ?s :q ?o OPTIONAL { ?s :r ?p } }",
        "SELECT ?p ?o { { ?s :q ?o } UNION { ?s :r ?p } }",
        "SELECT ?p ?s { ?s :q ?o ; :r ?p FILTER(?o != ?p) }",
    ]
    orders = []
    for name, tier in [*((name, "compiled") for name in MATCHERS), ("trie", "interpreted")]:
        monkeypatch.setenv("TRIPLEWIRE_TIER", tier)
        engine = Engine(matcher=name)
        for number, text in enumerate(texts):
            engine.subscribe(PREFIX + text, id=f"s{number}")
        for _ in range(2):
            chance.shuffle(triples)
            found = engine.match(Publication("p", tuple(triples)))
            orders.append([[list(binding.items()) for binding in match.bindings] for match in found])
    assert len(orders[0]) == len(texts)
    assert all(order == orders[0] for order in orders)
    for text, rows in zip(texts, orders[0], strict=True):
        select = parse(PREFIX + text).select
        keys = [row_key([dict(row).get(name) for name in select]) for row in rows]
        assert keys == sorted(keys)
        assert len(keys) > 2


def test_a_poisonous_subscription_is_refused_and_the_others_answer(matcher: str) -> None:
    """Sixty REPLACE in two kilobytes, each over a literal of a megabyte, in a filter."""
    nested = "?v"
    for _ in range(60):
        nested = f'REPLACE({nested}, "a", "a")'
    engine = Engine(matcher=matcher, settings=Settings(max_steps=50_000))
    engine.subscribe(f'{PREFIX}SELECT * {{ ?s :p ?v FILTER (CONTAINS({nested}, "b")) }}', id="poison")
    engine.subscribe(PREFIX + "SELECT ?s { ?s :p ?v FILTER (STRLEN(?v) > 2) }", id="other")
    long = Publication("long", (Triple(iri("s"), iri("p"), Literal("a" * (1 << 20))),))
    short = Publication("short", (Triple(iri("s"), iri("p"), Literal("aab")),))
    found = engine.match([long, short])
    assert [(match.publication, match.subscription) for match in found] == [
        ("long", "other"),
        ("short", "other"),
        ("short", "poison"),
    ]
    assert [refusal.subject for refusal in found.refusals] == ["long poison"]
    assert "more than 50000 steps" in found.refusals[0].reason
    assert "max_steps" in found.refusals[0].remedy


def test_what_tests_cost_together_is_bounded_for_each_publication(matcher: str) -> None:
    """No test passes the limit for one literal, but for all of a publication. The outcome does not depend on which
    publications are matched together."""
    text = PREFIX + 'SELECT ?v { ?s :p ?v FILTER (STRLEN(REPLACE(REPLACE(?v, "a", "b"), "b", "c")) > 3) }'
    engine = Engine(matcher=matcher, settings=Settings(max_steps=20_000, max_bindings=50))

    def publication(name: str, count: int) -> Publication:
        values = [Literal(f"{name}{number}" + "a" * 100) for number in range(count)]
        return Publication(name, tuple(Triple(iri("s"), iri("p"), value) for value in values))

    engine.subscribe(text, id="s")
    many = [publication(f"p{number}", 40 if number % 5 else 60) for number in range(12)]
    alone = [engine.match(one) for one in many]
    together = engine.match(many)
    assert [match.bindings for match in together] == [match.bindings for result in alone for match in result]
    assert [str(r) for r in together.refusals] == [str(r) for result in alone for r in result.refusals]
    assert 0 < len(together) < len(many)
