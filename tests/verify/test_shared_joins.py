"""Join steps that clauses share: equal components share all of them, each is solved once, and no answer changes."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from triplewire.encode.publications import encode
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, Literal, Triple
from triplewire.verify.kernels import columns as network
from triplewire.verify.kernels.columns import AT_HAND, COUNT_MASK, FIRST_STEP, KEPT_STEPS, KIND, ROW, StepColumns
from triplewire.verify.network import SharedJoins
from verify.columns import Columns
from verify.patterns import PREDICATES, TERMS, connected, query_of, renamed, world_of


def _publication(rng: random.Random, triples: int, number: int = 0) -> Publication:
    nodes = [IRI(term[1:-1]) for term in TERMS] + [IRI(f"urn:n{n}") for n in range(4)]
    predicates = [IRI(predicate[1:-1]) for predicate in PREDICATES]
    drawn = {Triple(rng.choice(nodes), rng.choice(predicates), rng.choice(nodes)) for _ in range(triples)}
    return Publication(f"urn:publication:{number}", tuple(drawn))


def _nodes(steps: StepColumns) -> list[int]:
    """Where the nodes begin."""
    begins, at = [], 0
    while at < len(steps.node):
        begins.append(at)
        at += -(-(FIRST_STEP + max(int(steps.node[at]) & COUNT_MASK, AT_HAND)) // ROW) * ROW
    return begins


@pytest.mark.parametrize("cap", [1000, 4])
@pytest.mark.parametrize("seed", range(4))
def test_outcomes_are_those_of_the_reference(seed: int, cap: int) -> None:
    rng, world = random.Random(seed), world_of(cap)
    publications = [_publication(rng, rng.randint(4, 24), number) for number in range(8)]
    subscriptions = [query_of(connected(rng, rng.randint(2, 5)), number) for number in range(40)]
    columns = Columns.of(publications, subscriptions, world, is_reversed=seed % 2 == 1)
    clauses = columns.clauses
    publication = np.repeat(np.arange(len(publications), dtype=np.int32), clauses.count)
    place = np.tile(np.arange(clauses.count, dtype=np.int32), len(publications))
    decided, _ = columns.columnar._shared.decide(columns.view, publication, place, cap)
    told = {
        (int(p), int(s)): bool(t)
        for p, s, t in zip(decided.publication, decided.subscription, decided.truncated, strict=True)
    }
    owner = clauses.facts.owner
    left = {(int(p), int(owner[c])) for p, c in zip(decided.left_publication, decided.left_clause, strict=True)}
    misses = truncated = 0
    for p, s in ((p, s) for p in range(len(publications)) for s in range(len(subscriptions))):
        if (p, s) in left:
            continue
        answer = evaluate(subscriptions[s], publications[p], world)
        assert bool(answer.bindings) == ((p, s) in told)
        if (p, s) in told:
            assert answer.truncated == told[p, s]
        misses += not answer.bindings
        truncated += answer.truncated
    assert told
    assert misses
    assert truncated or cap == 1000


@pytest.mark.parametrize("others", [0, 200])
@pytest.mark.parametrize("edge", [-1, 0, 1])
def test_truncation_is_exact(edge: int, others: int) -> None:
    """12 solutions: 3 first halves, 4 second ones; also where the halves are far apart in a large publication."""
    triples = [Triple(IRI(f"urn:s{n}"), IRI("urn:p"), IRI("urn:t0")) for n in range(3)]
    triples += [Triple(IRI("urn:t0"), IRI("urn:q"), IRI(f"urn:o{n}")) for n in range(4)]
    for n in range(others):
        triples.insert(n % 7 * (n // 7 + 1), Triple(IRI(f"urn:x{n % 20}"), IRI("urn:r"), IRI(f"urn:y{n}")))
    query = parse("SELECT * WHERE { ?a <urn:p> ?b . ?b <urn:q> ?c }", "sparql", id="x")
    world = world_of(12 + edge)
    columns = Columns.of([Publication("urn:x", tuple(triples))], [query], world)
    verdict = columns.verdict()
    assert verdict.truncated.tolist() == [edge < 0]


def test_what_clauses_share_is_solved_once() -> None:
    """A hundred clauses that differ in their last pattern only: their beginning is one step."""
    queries = [
        parse(f"SELECT * WHERE {{ ?a <urn:p> ?b . ?b <urn:q> ?c . ?c <urn:r> <urn:o{n}> }}", "sparql", id=str(n))
        for n in range(100)
    ]
    columns = Columns.of([_publication(random.Random(1), 20)], queries, world_of())
    columns.verdict()
    shared = columns.columnar._shared
    work = shared._scratch.idle[-1].parts[-1]
    solved = sum(
        int((memo[:, network.SOLVED] == work.state[network.STAMP]).sum()) for memo in (work.memo, work.node_memo)
    )
    assert work.state[network.VISITED] == solved - 1  # each of them once, but for the step ALWAYS, which is given
    always, patterns, links, nodes = 1, 2 + 100, 1, 1 + 100
    assert len(shared.network.step) == always + patterns + links
    assert len(_nodes(shared.network)) == nodes


def _within(low: int, high: int, number: int, ends: tuple[str, str] = (">=", "<")) -> Subscription:
    """A subscription to a place whose height lies between two numbers, of a thing of a class."""
    bounds = f"?y {ends[0]} {low} && ?y {ends[1]} {high}"
    return parse(
        f"SELECT * WHERE {{ ?m a <urn:Mint> . ?m <urn:at> ?l . ?l <urn:height> ?y FILTER({bounds}) }}",
        "sparql",
        id=str(number),
    )


def _placed(*heights: str) -> Publication:
    """A mint at places, each with a height."""
    mint, triples = IRI("urn:m"), [Triple(IRI("urn:m"), RDF_TYPE, IRI("urn:Mint"))]
    for number, height in enumerate(heights):
        place, datatype = IRI(f"urn:l{number}"), XSD + ("decimal" if "." in height else "integer")
        triples += [Triple(mint, IRI("urn:at"), place), Triple(place, IRI("urn:height"), Literal(height, datatype))]
    return Publication("urn:placed", tuple(triples))


def test_a_tree_begins_where_its_rarest_test_is() -> None:
    """A hundred clauses that differ in their bounds only have what is left and right of the edge in common, whatever
    constants there are: each takes one step and one node of its own."""
    columns = Columns.of([_placed("50.5")], [_within(n, n + 2, n) for n in range(100)], world_of())
    verdict = columns.verdict()
    assert sorted(verdict.subscription.tolist()) == [49, 50]
    shared = columns.columnar._shared
    always, patterns, links, nodes = 1, 2 + 100, 1, 1 + 100
    assert len(shared.network.step) == always + patterns + links
    assert len(_nodes(shared.network)) == nodes
    work = shared._scratch.idle[-1].parts[-1]
    assert work.state[network.VISITED] == patterns + links + nodes  # each once


def test_bounds_in_joins_are_those_of_the_reference() -> None:
    """Bounds of all kinds, of integers and decimals, in trees and where a tested value is that of two patterns."""
    rng, queries = random.Random(4), []
    for number in range(60):
        low, ends = rng.randrange(8), (rng.choice((">", ">=")), rng.choice(("<", "<=")))
        queries.append(_within(low, low + rng.randrange(4), number, ends))
    for number in range(60, 90):
        bound = rng.choice((f"?y > {number % 7}", f"?y <= {number % 7}.5", f"?y >= {number % 7} && ?y < 6.0"))
        body = f"?m <urn:at> ?l . ?m <urn:at> ?k . ?l <urn:height> ?y . ?k <urn:height> ?y FILTER({bound})"
        queries.append(parse(f"SELECT * WHERE {{ {body} }}", "sparql", id=str(number)))
    some = [
        _placed(*(rng.choice(("1", "3", "4.5", "5", "6.0")) for _ in range(rng.randrange(1, 4)))) for _ in range(12)
    ]
    columns, world = Columns.of(some, queries, world_of()), world_of()
    verdict = columns.verdict()
    told = set(zip(verdict.publication.tolist(), verdict.subscription.tolist(), strict=True))
    meant = {
        (p, s) for p, one in enumerate(some) for s, query in enumerate(queries) if evaluate(query, one, world).bindings
    }
    assert told == meant
    assert 100 < len(meant) < len(some) * len(queries)


def test_equal_clauses_take_no_further_steps() -> None:
    """The same clause under a hundred names and orders is solved in as many steps as one."""
    rng = random.Random(5)
    group = [("?a", "<urn:p>", "?b"), ("?b", "<urn:q>", "?c"), ("?c", "<urn:r>", "<urn:t1>")]
    visited = []
    for count in (1, 100):
        queries = [query_of(renamed(rng, group), number) for number in range(count)]
        columns = Columns.of([_publication(rng, 40, number) for number in range(8)], queries, world_of())
        columns.verdict()
        shared = columns.columnar._shared
        work = shared._scratch.idle[-1].parts[-1]
        visited.append(int(work.state[network.VISITED]))
        always, links, nodes = 1, 1, 2
        assert len(shared.network.step) == always + len(group) + links
        assert len(_nodes(shared.network)) == nodes
    assert 0 < max(visited) <= 8 * (len(group) + links + nodes)


def test_patterns_without_variables_are_not_looked_for_where_the_index_has_found_them() -> None:
    """They need no steps then. Without such an index, a pair that lacks one is no match."""
    group = [("?a", "<urn:p>", "?b"), ("?b", "<urn:q>", "<urn:t1>")]
    constants = [("<urn:t1>", "<urn:p>", "<urn:t2>"), ("<urn:t2>", "<urn:q>", "<urn:t2>")]
    query, rng = query_of(group + constants, 0), random.Random(3)
    publications = [_publication(rng, 120, number) for number in range(40)]
    steps, matches = [], []
    for proven in (False, True):
        columns = Columns.of(publications, [query], world_of(), proven)
        steps.append(len(columns.columnar.network.step))
        matches.append(set(columns.verdict().publication.tolist()))
    having = {Triple(*(IRI(term[1:-1]) for term in pattern)) for pattern in constants}
    have = {number for number, publication in enumerate(publications) if having <= set(publication.triples)}
    assert matches[0] == matches[1] & have
    assert matches[0] < matches[1]
    assert matches[0]
    assert steps[0] == steps[1] + len(constants)


@pytest.mark.parametrize("others", [0, 35])
def test_direct_nodes_have_the_solutions_of_the_reference(others: int) -> None:
    """Also where a publication has too many terms for the short way."""
    groups = [
        "?a <urn:p> <urn:t1>",
        "<urn:t1> <urn:p> ?a . ?a <urn:q> <urn:t2>",
        "?a <urn:p> <urn:t1> . ?a <urn:p> <urn:t2> . <urn:t3> <urn:q> ?a . ?a <urn:r> <urn:t4> . ?a <urn:r> <urn:t5>",
        "?a <urn:p> ?a . ?a <urn:q> <urn:t1>",
        "?a <urn:p> ?b . ?a <urn:q> <urn:t1> . <urn:t2> <urn:r> ?b",
        "?b <urn:p> ?a . <urn:t1> <urn:q> ?a . ?b <urn:r> <urn:t2>",
        "?a <urn:p> ?b . ?a <urn:q> <urn:t1>",
        "?b <urn:p> ?a . ?a <urn:q> <urn:t1> . <urn:t1> <urn:r> ?c",
    ]
    rng, world = random.Random(7), world_of(6)
    queries = [parse(f"SELECT * {{ {group} }}", "sparql", id=str(number)) for number, group in enumerate(groups)]
    spare = tuple(Triple(IRI(f"urn:x{n}"), IRI("urn:r"), IRI(f"urn:y{n}")) for n in range(others))
    publications = [_publication(rng, 20 + 5 * number, number) for number in range(40)]
    publications = [Publication(graph.id, graph.triples + spare) for graph in publications]
    columns, matches = Columns.of(publications, queries, world), set()
    verdict = columns.verdict()
    told = dict(zip(zip(verdict.publication, verdict.subscription, strict=True), verdict.truncated, strict=True))
    for p, s in itertools.product(range(len(publications)), range(len(queries))):
        answer = evaluate(queries[s], publications[p], world)
        assert bool(answer.bindings) == ((p, s) in told)
        if answer.bindings:
            assert answer.truncated == told[p, s]
            matches.add((s, answer.truncated))
    assert {s for s, _ in matches} == set(range(len(queries)))
    assert {truncated for _, truncated in matches} == {False, True}
    steps = columns.columnar.network
    assert sum(int(steps.node[begin] >> KIND > 0) for begin in _nodes(steps)) >= len(queries) - 1


@pytest.mark.parametrize("length", [2, 9])
def test_steps_that_take_the_place_of_others_have_their_own_values(length: int) -> None:
    """There are more of them than there are places for their values, and nodes have few or many."""
    world, count = world_of(6), 2 * KEPT_STEPS // length + 40
    groups = [" . ".join(f"?a <urn:p{k}> <urn:t{n}>" for k in range(length)) for n in range(count)]
    queries = [parse(f"SELECT * {{ {group} }}", id=str(n)) for n, group in enumerate(groups)]
    colliding = [3, 3 + KEPT_STEPS // length, 4, 4 + KEPT_STEPS // length, count - 1]
    publications = []
    for number, lacks in enumerate((None, 3, count - 1)):
        told = [(n, k) for n in colliding for k in range(length) if n != lacks or k != length - 1]
        facts = [Triple(IRI("urn:x"), IRI(f"urn:p{k}"), IRI(f"urn:t{n}")) for n, k in told]
        publications.append(Publication(f"urn:{number}", tuple(facts)))
    columns = Columns.of(publications, queries, world)
    verdict, expected = columns.verdict(), [set(colliding), set(colliding) - {3}, set(colliding) - {count - 1}]
    for p, wanted in enumerate(expected):
        assert set(np.asarray(verdict.subscription)[np.asarray(verdict.publication) == p].tolist()) == wanted
        assert all(evaluate(queries[n], publications[p], world).bindings for n in wanted)
    steps = columns.columnar.network
    assert all(int(steps.node[begin] >> KIND > 0) for begin in _nodes(steps))


CLASSES = Taxonomy.build(
    [("urn:C1", "urn:C0"), ("urn:C2", "urn:C0")], [(f"urn:n{n}", f"urn:C{n % 3}") for n in range(3)]
)
TESTS = [
    "?{v} ISA <= <urn:C0>",
    "?{v} ISA <= <urn:C1>",
    "?{v} ISA = <urn:C2>",
    "?{v} > 3",
    "?{v} < 5",
    "?{v} >= 2 AND ?{v} < 4",
]
TESTS += ['?{v} FTCONTAINS "red"', '?{v} FTCONTAINS "red" ftAND "blue"', '?{v} CONTAINS "blu"']


def _tested(rng: random.Random, number: int) -> Subscription:
    """A chain or a star whose variables have tests."""
    shape = rng.choice(["(?a, <urn:p>, ?b) AND (?b, <urn:q>, ?c)", "(?a, <urn:p>, ?b) AND (?a, <urn:q>, ?b)",
                        "(?b, <urn:p>, ?a) AND (?b, <urn:q>, ?c) AND (?a, <urn:r>, ?c)",
                        "(?a, <urn:p>, ?b) AND (?b, <urn:r>, <urn:n1>)"])  # fmt: skip
    names = [name for name in "abc" if f"?{name}" in shape]
    tests = [rng.choice(TESTS).format(v=rng.choice(names)) for _ in range(rng.randint(1, 2))]
    return parse(f"SELECT * WHERE ({shape}) SUCHTHAT ({' AND '.join(tests)})", "gql", id=str(number))


def _tested_publication(rng: random.Random, number: int, words: str) -> Publication:
    """Nodes that have classes here or in the taxonomy, numbers and texts."""
    nodes = [IRI(f"urn:n{n}") for n in range(6)]
    values = [Literal(str(n), XSD + "integer") for n in range(1, 7)] + [
        Literal("red"),
        Literal("the blue and red"),
        Literal(words),
    ]
    predicates = [IRI(predicate[1:-1]) for predicate in PREDICATES]
    drawn = {Triple(rng.choice(nodes), rng.choice(predicates), rng.choice([*nodes, *values])) for _ in range(30)}
    drawn |= {Triple(rng.choice(nodes), RDF_TYPE, IRI(f"urn:C{rng.randint(0, 2)}")) for _ in range(3)}
    drawn.add(Triple(nodes[0], predicates[0], Literal(words)))
    return Publication(f"urn:publication:{number}", tuple(drawn))


@pytest.mark.parametrize(("seed", "words"), [(0, 0), (1, 0), (2, 0), pytest.param(0, 1100, marks=pytest.mark.slow)])
def test_tests_hold_as_the_reference_says(seed: int, words: int) -> None:
    """Classes, by the taxonomy and by the publication, ranges, words and substrings; also where more tests hold of a
    publication's terms than are listed."""
    rng, world = random.Random(seed), World(CLASSES)
    many = [parse(f'SELECT ?a WHERE ((?a, <urn:p>, ?b) SUCHTHAT (?b FTCONTAINS "w{n}"))', "gql") for n in range(words)]
    text = " ".join(f"w{n}" for n in range(words))
    subscriptions = [_tested(rng, number) for number in range(60)] + many
    publications = [_tested_publication(rng, number, text) for number in range(6)]
    columns = Columns.of(publications, subscriptions, world)
    verdict = columns.verdict()
    told = set(zip(verdict.publication.tolist(), verdict.subscription.tolist(), strict=True))
    expected = {
        (p, s)
        for p, publication in enumerate(publications)
        for s, subscription in enumerate(subscriptions[:60])
        if evaluate(subscription, publication, world).bindings
    }
    assert {pair for pair in told if pair[1] < 60} == expected
    assert len(expected) > 10
    shared = columns.columnar._shared
    work = shared._scratch.idle[-1].parts[-1]
    assert bool(work.state[network.LISTED]) == (words < network.MOST_TESTS)


def test_an_exploding_clause_is_left_and_the_others_are_not() -> None:
    """A cycle over a dense graph passes the bound of rows; the clause beside it is decided."""
    nodes = [IRI(f"urn:n{n}") for n in range(15)]
    dense = tuple(Triple(a, IRI("urn:p"), b) for a in nodes for b in nodes)
    cycle = parse("SELECT * WHERE { ?a <urn:p> ?b . ?b <urn:p> ?c . ?c <urn:p> ?d . ?d <urn:p> ?a }", "sparql", id="x")
    path = parse("SELECT * WHERE { ?a <urn:p> ?b . ?b <urn:p> <urn:n3> }", "sparql", id="y")
    columns = Columns.of([Publication("urn:x", dense)], [cycle, path], world_of())
    pairs = np.zeros(2, np.int32), np.arange(2, dtype=np.int32)
    decided, _ = columns.columnar._shared.decide(columns.view, *pairs, 1000)
    assert decided.left_clause.tolist() == [0]
    assert decided.subscription.tolist() == [1]


def test_a_scratch_that_is_used_up_is_not_kept() -> None:
    query = parse("SELECT * WHERE { ?a <urn:p> ?b . ?b <urn:q> ?c }", "sparql", id="x")
    columns = Columns.of([_publication(random.Random(1), 9)], [query], world_of())
    shared: SharedJoins = columns.columnar._shared
    columns.verdict()
    shared._scratch.idle[0].parts[-1].state[network.STAMP] = 0x7FFFFFF0
    columns.verdict()
    assert not shared._scratch.idle
    assert columns.verdict().subscription.tolist() == columns.verdict().subscription.tolist()


def test_publications_of_no_triples_have_no_solutions() -> None:
    query = parse("SELECT * WHERE { ?a <urn:p> ?b . ?b <urn:q> ?c }", "sparql", id="x")
    columns = Columns.of([Publication("urn:x", ())], [query], world_of())
    assert len(encode(columns.publications)) == 1
    assert not len(columns.verdict().subscription)


@pytest.mark.parametrize("size", [4, 40, 200])
def test_what_leads_nowhere_is_no_match(size: int) -> None:
    """Whatever a residual predicate says: where it decides, the pair is left to it."""
    rng = random.Random(size)
    publications = [_publication(rng, size, number) for number in range(20)]
    bodies = [f"?a <urn:p> ?b . ?b {p} ?c . ?c <urn:r> ?d" for p in (*PREDICATES, "?x")]
    bodies += [f"?a {p} ?b . ?b <urn:q> ?c FILTER regex(str(?a), 't.$')" for p in PREDICATES]
    subscriptions = [parse(f"SELECT ?a {{ {body} }}") for body in bodies]
    columns = Columns.of(publications, subscriptions, world_of())
    pairs = [(p, s) for p in range(len(publications)) for s in range(len(subscriptions))]
    publication, clause = np.array(pairs, np.int32).T.copy()
    decided, _ = columns.columnar._shared.decide(columns.view, publication, clause, 1000)
    told = set(zip(decided.publication.tolist(), decided.subscription.tolist(), strict=True))
    left = set(zip(decided.left_publication.tolist(), decided.left_clause.tolist(), strict=True))
    for p, s in pairs:
        matches = bool(evaluate(subscriptions[s], publications[p], world_of()).bindings)
        assert (p, s) in left or matches == ((p, s) in told), subscriptions[s].text
    assert left
    assert len(left) < len(pairs) or size > 4


@pytest.mark.parametrize("condition", ["?c != 3", "3.0 != ?c", "?c != 3 && ?c != 4", "?c > 1 && ?c < 6 && ?c != 3"])
def test_unequal_values_are_left_to_nobody(condition: str) -> None:
    """The join network decides `!=` with a number, and the index does not name a clause by it."""
    values = [Literal(str(n), XSD + "integer") for n in range(8)] + [
        Literal("3"),
        IRI("urn:3"),
        Literal("x", XSD + "byte"),
    ]
    publications = [
        Publication(
            f"urn:{n}", (Triple(IRI("urn:a"), IRI("urn:p"), IRI("urn:b")), Triple(IRI("urn:b"), IRI("urn:q"), value))
        )
        for n, value in enumerate(values)
    ]
    query = parse(f"SELECT * WHERE {{ ?a <urn:p> ?b . ?b <urn:q> ?c FILTER({condition}) }}", "sparql", id="x")
    columns = Columns.of(publications, [query], world_of())
    assert not columns.clauses.tests.is_residual.any()
    every = np.arange(len(publications), dtype=np.int32)
    decided, _ = columns.columnar._shared.decide(columns.view, every, np.zeros(len(every), np.int32), 1000)
    assert not len(decided.left_clause)
    meant = [n for n in every.tolist() if evaluate(query, publications[n], world_of()).bindings]
    assert sorted(decided.publication.tolist()) == meant
    assert 0 < len(meant) < len(every)
