"""What the papers say of complexity, in counts: look-ups (`nodes`), rows that joins tried, entries of lists read.

And what the matchers of G-ToPSS and of the cluster paper accept by their own joins is not verified.
"""

from __future__ import annotations

import pytest
from built import Built, clauses_of

from amounts import OF_PAPERS
from triplewire import Engine, Publication, Settings, parse
from triplewire.read import read
from triplewire.select.index import Selected

JOINING = ["naive", "ops", "gtopss", "gtopss-greedy", "constraint-tables"]
TRIPLES = 12


def publication(triples: int = TRIPLES) -> Publication:
    """Of some mints, each in a place that has a height and a name."""
    parts = [
        f'<urn:m{n}> <urn:at> <urn:l{n}> . <urn:l{n}> <urn:height> {n} ; <urn:name> "hill {n} bay" .'
        for n in range(triples // 3)
    ]
    (one,) = read("".join(parts).encode())
    return one


def selected(matcher: str, texts: list[str], triples: int = TRIPLES) -> Selected:
    """What a matcher does for the publication, with a subscription for each text."""
    return Built.of(clauses_of([parse(text) for text in texts]), matcher).selected([publication(triples)])


def others(count: int) -> list[str]:
    """Subscriptions of which the publication has no edge, and no label but <urn:at>."""
    return [f"ASK {{ <urn:none{n}> <urn:at> ?x . ?x <urn:p{n}> <urn:q{n}> }}" for n in range(count)]


PATH = "SELECT * {{ ?m <urn:at> <urn:l{0}> . <urn:l{0}> <urn:height> ?h }}"


def test_gtopss_looks_up_m_k_squared_edges_however_many_subscriptions_there_are() -> None:
    """000, section 4.3: O(m k^2) for m triples and k stars. A hit adds the look-up of its label."""
    few, many = (selected("gtopss", [PATH.format(1), *others(count)]) for count in (10, 1_000))
    assert few.nodes == many.nodes
    assert few.list_steps == many.list_steps
    assert few.comparisons == many.comparisons == 2 + 0  # one row of each of two tables
    stars = 2
    assert TRIPLES * stars * (stars - 1) <= few.nodes <= 2 * TRIPLES * (stars + 1) ** 2
    once, twice = (selected("gtopss", [PATH.format(1)], triples) for triples in (TRIPLES, 2 * TRIPLES))
    assert twice.nodes - once.nodes == TRIPLES * stars * (stars - 1), "nodes that no subscription has are not looked up"
    chain = " . ".join(f"?v{n} <urn:at> ?v{n + 1}" for n in range(6))
    assert selected("gtopss", [PATH.format(1), f"ASK {{ {chain} }}"]).nodes >= TRIPLES * 7 * 6


def test_ops_joins_what_gtopss_tells_apart_beforehand() -> None:
    """000, figure 10a: where all nodes are variables, each subscription whose labels are there is joined."""
    texts = [PATH.format(n) for n in range(500, 1_500)]
    ops, gtopss = selected("ops", texts), selected("gtopss", texts)
    assert gtopss.comparisons == 0
    assert ops.comparisons >= len(texts)
    assert ops.nodes == TRIPLES + 2 * TRIPLES / 3, "any label, and that of each triple, unless no subscription has it"


def test_naive_looks_at_all_subscriptions() -> None:
    """000, figure 10b. Each tries all triples at least once."""
    few, many = (selected("naive", [PATH.format(1), *others(count)]) for count in (10, 1_000))
    assert few.comparisons >= 10 * TRIPLES
    assert many.comparisons - few.comparisons == 990 * TRIPLES
    assert (few.nodes, few.list_steps) == (0, 0)


@pytest.mark.parametrize("operator", ["<", ">"])
def test_constraints_before_joins(operator: str) -> None:
    """001, section 4.5: a list is read up to the first constraint that does not hold, and what is not satisfied is not
    joined."""
    holding = 3 if operator == "<" else 0  # of `4 < constant` the three largest, of `4 > constant` none
    constants = range(1, 8) if operator == "<" else range(10, 1_010)
    texts = [f"ASK {{ ?l <urn:height> ?h FILTER(?h {operator} {c}) }}" for c in constants]
    found = Built.of(clauses_of([parse(text) for text in texts]), "constraint-tables")
    (one,) = read(b"<urn:l> <urn:height> 4 .")
    seen = found.selected([one])
    assert len(seen.subscription) == seen.comparisons == holding
    assert seen.list_steps == holding + 1, "one that does not hold ends the list"
    late = Built.of(found.clauses, "gtopss").selected([one])
    assert late.list_steps == late.comparisons == len(texts), "each is joined before its constraint is asked"
    assert late.subscription.tolist() == sorted(seen.subscription.tolist())


def test_one_structure_with_other_constraints_is_not_visited() -> None:
    """001, section 5.1 and figure 9b: the work is that of the subscriptions that match, however many others differ from
    them in their constraints alone."""
    texts = [f"ASK {{ ?m <urn:at> ?l . ?l <urn:height> ?h FILTER(?h > {c}) }}" for c in (1, 2, *range(10, 1_010))]
    few, many = (selected("constraint-tables", texts[:count]) for count in (10, len(texts)))
    assert few.subscription.tolist() == many.subscription.tolist() == [0, 1]
    assert (few.nodes, few.list_steps, few.comparisons) == (many.nodes, many.list_steps, many.comparisons)


def test_what_is_equal_is_looked_up() -> None:
    texts = [f"ASK {{ ?l <urn:height> ?h FILTER(?h = {c}) }}" for c in range(1_000)]
    seen = selected("constraint-tables", texts)
    rows = TRIPLES / 3
    assert len(seen.subscription) == seen.list_steps == rows
    assert seen.comparisons <= rows * rows, "the table of the edge is for all"


@pytest.mark.parametrize("matcher", ["rtf-m", "rtf-s"])
def test_words_that_are_not_there_are_not_reached(matcher: str) -> None:
    """004, section 3.2: depth first, as long as words are in the text."""
    hit = "SELECT * { ?l <urn:name> ?n FILTER ftcontains(?n, 'hill' ftAND '3') }"
    misses = [f"SELECT * {{ ?l <urn:name> ?n FILTER ftcontains(?n, 'w{n}' ftAND 'v{n}') }}" for n in range(1_000)]
    few, many = (selected(matcher, [hit, *misses[:count]]) for count in (10, 1_000))
    assert (few.nodes, few.list_steps) == (many.nodes, many.list_steps)
    assert few.check_place.tolist() == [0]


def test_words_below_two_structures_are_shared_in_one_forest() -> None:
    """004, section 3.1: RTFs has fewer nodes where structures have the same words."""
    texts = [f"SELECT * {{ ?l <urn:p{n}> ?n FILTER ftcontains(?n, 'hill' ftAND 'bay') }}" for n in range(100)]
    clauses = clauses_of([parse(text) for text in texts])
    per_structure, shared = (Built.of(clauses, name).index.nodes for name in ("rtf-m", "rtf-s"))  # type: ignore[attr-defined]
    assert per_structure - shared == 99 * 2


def test_ibroker_looks_at_whole_buckets() -> None:
    """004, section 3.3: all queries that have an attribute of the publication, wherever they begin."""
    few, many = (selected("ibroker", [PATH.format(1), *others(count)]) for count in (10, 1_000))
    assert few.check_place.tolist() == many.check_place.tolist() == [0]
    assert many.list_steps - few.list_steps == 990
    assert many.comparisons - few.comparisons == 990 * TRIPLES / 3


def test_a_greedy_mapping_of_stars_makes_the_graph_sparser() -> None:
    """000, section 4.1, what it leaves to the future: the same patterns, with the variables in another order."""
    texts = [
        f"SELECT * {{ ?a <urn:p{n}> <urn:x> . ?b <urn:q> ?a }}"
        if n % 2
        else f"SELECT * {{ ?b <urn:q> ?a . ?a <urn:p{n}> <urn:x> }}"
        for n in range(100)
    ]
    clauses = clauses_of([parse(text) for text in texts])
    arbitrary, greedy = (Built.of(clauses, name).index.edges for name in ("gtopss", "gtopss-greedy"))  # type: ignore[attr-defined]
    assert (arbitrary, greedy) == (102, 101)


EXACT = [
    "SELECT * { ?m <urn:at> ?l . ?l <urn:height> ?h FILTER(?h > 1) }",
    "SELECT ?h { ?m <urn:at> <urn:l2> . <urn:l2> <urn:height> ?h FILTER(?h != 3) }",
    "ASK { ?l ?p ?n FILTER ftcontains(?n, 'hill' ftAND 'bay') }",
    "SELECT ?l { ?l <urn:name> ?n ; <urn:height> ?h FILTER(?h >= 1 && ?h < 3) }",
]
LEFT = [
    "SELECT * { ?m <urn:at> ?l OPTIONAL { ?l <urn:height> ?h } }",
    "SELECT * { ?l <urn:name> ?n FILTER ftcontains(?n, 'hill 2') }",
]


@pytest.mark.parametrize("matcher", OF_PAPERS)
def test_what_is_accepted_is_not_verified(matcher: str) -> None:
    engine, plain = Engine(matcher=matcher), Engine(matcher="reference")
    for number, text in enumerate(EXACT):
        for each in (engine, plain):
            each.subscribe(text, id=f"exact {number}")
    engine.settle()
    result = engine.match(publication())
    assert len(result) == len(plain.match(publication())) == len(EXACT)
    stats = result.stats
    if matcher in JOINING:
        assert (stats.verified, stats.join_steps, stats.network_rows) == (0, 0, 0)
        assert stats.comparisons > 0
        assert engine.left_to_verification == []
    else:
        assert stats.verified >= len(EXACT)
        assert engine.left_to_verification == [f"exact {n}" for n in range(len(EXACT))]
    for number, text in enumerate(LEFT):
        for each in (engine, plain):
            each.subscribe(text, id=f"left {number}")
    engine.unsubscribe("left 0")
    result = engine.match(publication())
    assert len(result) == len(EXACT) + 1
    assert result.stats.verified == (1 if matcher in JOINING else len(result))
    assert [name for name in engine.left_to_verification if name.startswith("left")] == ["left 1"]


@pytest.mark.parametrize("matcher", JOINING)
def test_more_solutions_than_a_match_may_have_are_left_to_verification(matcher: str) -> None:
    engine = Engine(matcher=matcher, settings=Settings(max_bindings=3))
    engine.subscribe("SELECT * { ?m <urn:at> ?l }", id="four")
    engine.subscribe("ASK { ?m <urn:at> ?l }", id="ask")
    engine.settle()
    result = engine.match(publication())
    assert {match.subscription: match.truncated for match in result} == {"four": True, "ask": False}
    assert result.stats.verified == 1


@pytest.mark.parametrize("matcher", JOINING)
def test_a_join_that_takes_too_long_is_left_to_verification(matcher: str) -> None:
    """Whether a graph of 40 nodes, all joined with each other, has a clique of nine: nothing but trying tells."""
    nodes = [f"?v{n}" for n in range(8)]
    patterns = [f"{a} <urn:p> {b}" for n, a in enumerate(nodes) for b in nodes[:n]]
    text = "".join(f"<urn:n{a}> <urn:p> <urn:n{b}> ." for a in range(24) for b in range(24) if a % 6 != b % 6)
    (one,) = read(text.encode())
    built = Built.of(clauses_of([parse(f"ASK {{ {' . '.join(patterns)} }}")]), matcher)
    assert built.selected([one]).check_place.tolist() == [0]
    assert built.selected([one]).comparisons < 100_000
