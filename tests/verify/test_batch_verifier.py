"""The columnar verifier gives the reference's answers: match, truncated, bindings, failures."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from amounts import usually
from solutions import wrong_rows
from triplewire.clauses.view import View
from triplewire.config import Settings
from triplewire.errors import LimitError
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, XSD, BlankNode, Literal, Node, Term, Triple
from triplewire.operators import function_operator
from triplewire.verify import solve
from triplewire.verify.kernels import search as solutions
from triplewire.verify.network import SharedJoins
from verify.columns import Columns

N = "http://e/"
TAXONOMY = Taxonomy.build(
    [(N + "Cat", N + "Animal"), (N + "Dog", N + "Animal"), (N + "Animal", N + "Thing")], [(N + "tom", N + "Cat")]
)
PREDICATES = [IRI(N + name) for name in "pqr"]
NODES: list[Node] = [*(IRI(N + name) for name in ("a", "b", "c", "tom")), BlankNode("x"), BlankNode("y")]
OBJECTS: list[Term] = [
    *NODES,
    IRI(N + "Cat"),
    IRI(N + "Dog"),
    *map(Literal, ("red car", "blue car", "car", "7", "")),
    Literal.tagged("red", "en"),
    *(Literal(number, XSD + "integer") for number in ("1", "2", "10", "-3")),
]
FILTERS = [  # indexed, ranges, lazy, conditions that clauses do not say
    'ftcontains(?{v}, "car")',
    'ftcontains(?{v}, "red" ftAND "car")',
    'ftcontains(?{v}, "red" ftOR "blue")',
    "?{v} > 1",
    "?{v} <= 2",
    "?{v} = 7 || ?{v} = 2",
    "STRLEN(STR(?{v})) > 3",
    'REGEX(STR(?{v}), "r.*d")',
    "ISLITERAL(?{v})",
    "!ISBLANK(?{v})",
    "?{v} != ?{w}",
    "ISIRI(?{v}) || ?{w} > 1",
]


def _publication(rng: random.Random, number: int) -> Publication:
    count = rng.choice((1, 3, 8, 20, 120))
    nodes = [*NODES, *(IRI(f"{N}n{i}") for i in range(12))] if count > 64 else NODES
    triples = {Triple(rng.choice(nodes), rng.choice(PREDICATES), rng.choice([*OBJECTS, *nodes])) for _ in range(count)}
    for node in rng.sample(NODES, rng.choice((0, 0, 2))):
        triples.add(Triple(node, RDF_TYPE, IRI(N + rng.choice(("Cat", "Dog")))))
    return Publication(f"p{number}", tuple(random.Random(number).sample(sorted(triples, key=str), len(triples))))


def _position(rng: random.Random, constants: list[str], chance: float) -> str:
    return f"?{rng.choice('xyzuv')}" if rng.random() < chance else rng.choice(constants)


def _group(rng: random.Random) -> tuple[str, list[str]]:
    patterns = []
    for _ in range(rng.choice((1, 2, 2, 3, 4))):
        subject = _position(rng, ["<http://e/a>", "<http://e/tom>"], 0.85)
        predicate = _position(rng, ["<http://e/p>", "<http://e/q>", "a"], 0.1)
        patterns.append(f"{subject} {predicate} {_position(rng, ['<http://e/b>', '7', '<http://e/Cat>'], 0.7)} .")
    text = " ".join(patterns)
    names = sorted({text[at + 1] for at in range(len(text)) if text[at] == "?"})
    if names and rng.random() < 0.6:
        text += f" FILTER({rng.choice(FILTERS).format(v=rng.choice(names), w=rng.choice(names))})"
    return text, names


def _query(rng: random.Random, number: int) -> Subscription:
    text, names = _group(rng)
    kind = rng.random()
    if kind < 0.25:
        more, others = _group(rng)
        text, names = f"{{ {text} }} UNION {{ {more} }}", sorted({*names, *others})
    elif kind < 0.35:
        text += f" OPTIONAL {{ {_group(rng)[0]} }}"
    elif kind < 0.45:
        text += f" FILTER NOT EXISTS {{ {_group(rng)[0]} }}"
    chosen = rng.sample(names, rng.randint(1, len(names))) if names else []
    form = "ASK" if not chosen or rng.random() < 0.15 else "SELECT " + " ".join(f"?{name}" for name in chosen)
    return parse(f"{form} {{ {text} }}", "sparql", id=f"s{number}")


def _gql(rng: random.Random, number: int) -> Subscription:
    relation = rng.choice(("<=", ">=", "="))
    cls = rng.choice(("Cat", "Animal", "Thing"))
    join = rng.choice(("", " AND (?y, q, ?z)", " AND (?x, r, red car)"))
    text = f"(?x, p, ?y) SUCHTHAT (?{rng.choice('xy')} ISA {relation} <{N}{cls}>{rng.choice(('', ' OR ?y > 1'))})"
    return parse(f"PREFIX : <{N}> SELECT * WHERE ({text}){join}", "gql", id=f"g{number}")


def _same(columns: Columns) -> tuple[int, int]:
    """Compare every pair with the reference; how many matched, how many of them were cut."""
    verdict = columns.verdict()
    assert verdict.failures == []
    pairs = list(zip(verdict.publication.tolist(), verdict.subscription.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    truncated = dict(zip(pairs, verdict.truncated.tolist(), strict=True))
    rows = dict(zip(pairs, columns.bindings(verdict), strict=True))
    for p, publication in enumerate(columns.publications):
        for s, subscription in enumerate(columns.subscriptions):
            answer = evaluate(subscription, publication, columns.world)
            told = subscription.text, [str(triple) for triple in publication.triples]
            assert ((p, s) in truncated) == bool(answer.bindings), told
            if answer.bindings:
                assert truncated[p, s] == answer.truncated, told
                assert wrong_rows(rows[p, s], answer, subscription, publication, columns.world) == "", told
    return len(pairs), sum(truncated.values())


@pytest.mark.parametrize("cap", [1000, 3])
@pytest.mark.parametrize("seed", range(usually(2, 4)))
def test_every_pair_has_the_answer_of_the_reference(seed: int, cap: int) -> None:
    rng = random.Random(seed)
    publications = [_publication(rng, number) for number in range(25)]
    subscriptions = [_query(rng, number) for number in range(120)] + [_gql(rng, number) for number in range(20)]
    world = World(TAXONOMY, settings=Settings(max_bindings=cap))
    matches, cut = _same(Columns.of(publications, subscriptions, world))
    assert matches > 300
    assert (cut > 100) == (cap == 3)


def _stars(rng: random.Random, number: int) -> Subscription:
    """Stars that share nothing, around variables and constants."""
    names, predicates, patterns = iter("abcdefgh"), iter("ijklmn"), []
    for subject in rng.sample(["?x", "?y", "<http://e/a>", "<http://e/tom>"], rng.choice((1, 1, 2))):
        for _ in range(rng.choice((1, 1, 2, 3))):
            variable = rng.random() < 0.8
            other = f"?{next(names)}" if variable else rng.choice(["<http://e/b>", '"car"'])
            predicate = rng.choice(("*", f"?{next(predicates)}")) if rng.random() < 0.2 else f"<{N}{rng.choice('pqr')}>"
            patterns.append(f"{subject} {predicate} {other} .")
    text = " ".join(patterns)
    found = sorted({text[at + 1] for at in range(len(text)) if text[at] == "?"})
    if found and rng.random() < 0.3:
        text += f" FILTER({rng.choice(FILTERS[:6]).format(v=rng.choice(found))})"
    chosen = rng.sample(found, rng.randint(1, len(found))) if found else []
    form = "ASK" if not chosen or rng.random() < 0.1 else "SELECT " + " ".join(f"?{name}" for name in chosen)
    return parse(f"{form} {{ {text} }}", "sparql", id=f"s{number}")


@pytest.mark.parametrize("cap", [1000, 3])
@pytest.mark.parametrize("seed", range(usually(1, 2)))
def test_stars_have_the_answers_of_the_reference(seed: int, cap: int) -> None:
    rng = random.Random(seed)
    publications = [_publication(rng, number) for number in range(30)]
    subscriptions = [_stars(rng, number) for number in range(150)]
    matches, cut = _same(Columns.of(publications, subscriptions, World(settings=Settings(max_bindings=cap))))
    assert matches > 1_000
    assert cut > (200 if cap == 3 else 0)


def test_stars_of_any_predicates_need_no_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solutions, "join", None)
    texts = (
        "SELECT ?x { ?x * ?a }",
        "SELECT * { ?x * ?a FILTER ftcontains(?a, 'car') }",
        "SELECT ?x ?a { ?x <http://e/p> ?a . ?x ?k ?b . ?x ?l 7 FILTER(?k = <http://e/q> && ?b > 1) }",
        "SELECT ?a ?y ?b { <http://e/a> * ?a . ?y ?k 'red car' . ?y ?l ?b }",
    )
    subscriptions = [parse(text, "sparql", id=str(number)) for number, text in enumerate(texts)]
    rng = random.Random(3)
    matches, cut = _same(Columns.of([_publication(rng, number) for number in range(40)], subscriptions, World()))
    assert matches > 60
    assert cut == 0


def test_matches_with_the_same_clauses_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = (
        "SELECT * { ?x <http://e/p> ?a }",
        "SELECT ?a ?y { ?a <http://e/p> ?y }",
        "SELECT ?a { ?x <http://e/p> ?a }",
    )
    subscriptions = [parse(text, "sparql", id=str(number)) for number, text in enumerate(texts * 100)]
    columns = Columns.of([_many(2), _many(3), _many(2)], subscriptions, World())
    verdict, listed, sizes = columns.verdict(), SharedJoins.listed, []

    def spy(self: SharedJoins, view: View, pairs: solve.Pairs, most: int, most_steps: int) -> solve.Solved:
        sizes.append(len(pairs))
        return listed(self, view, pairs, most, most_steps)

    monkeypatch.setattr(SharedJoins, "listed", spy)
    assert [len(rows) for rows in columns.bindings(verdict)] == [2] * 300 + [3] * 300 + [2] * 300
    assert sizes == [6]


def test_many_subjects_of_one_star() -> None:
    texts = ("SELECT * { ?x <http://e/p> ?a }", "SELECT ?a { ?x <http://e/p> ?a }", "SELECT ?x { ?x <http://e/p> ?a }")
    subscriptions = [parse(text, "sparql", id=str(number)) for number, text in enumerate(texts * 100)]
    nodes = [IRI(f"{N}n{number}") for number in range(30)]
    publication = _published(*((node, PREDICATES[0], value) for node in nodes for value in OBJECTS[-2:]))
    columns = Columns.of([publication], subscriptions, World())
    verdict = columns.verdict()
    assert [len(rows) for rows in columns.bindings(verdict)] == [60, 2, 30] * 100


def _published(*triples: tuple[Node, IRI, Term]) -> Publication:
    return Publication("p", tuple(Triple(*triple) for triple in triples))


def _many(count: int) -> Publication:
    """A node with `count` values of each predicate."""
    values = [Literal(str(number)) for number in range(count)]
    return _published(*((NODES[0], predicate, value) for predicate in PREDICATES for value in values))


def _typed(count: int) -> Publication:
    """The same with integers."""
    values = [Literal(str(number), XSD + "integer") for number in range(count)]
    return _published(*((NODES[0], predicate, value) for predicate in PREDICATES for value in values))


def test_parts_that_join_nothing_cost_their_sum() -> None:
    text = "SELECT ?x { ?x <http://e/p> ?a . ?y <http://e/q> ?b . ?z <http://e/r> ?c . ?z <http://e/r> ?d }"
    world = World(settings=Settings(max_steps=2_000))
    columns = Columns.of([_many(300)], [parse(text, "sparql", id="s")], world)
    verdict = columns.verdict()
    assert verdict.subscription.tolist() == [0]
    assert verdict.truncated.tolist() == [False]
    assert columns.bindings(verdict) == [[frozenset({("x", NODES[0])})]]


def test_values_that_hang_on_one_node_are_counted_apart() -> None:
    text = "SELECT * { ?x <http://e/p> ?a . ?x <http://e/q> ?b . ?x <http://e/r> ?c }"
    world = World(settings=Settings(max_steps=50_000, max_bindings=10**6))
    columns = Columns.of([_many(100), _many(101)], [parse(text, "sparql", id="s")], world)
    assert columns.verdict().truncated.tolist() == [False, True]


def test_a_pair_past_the_budget_fails_alone() -> None:
    circle = "ASK { ?a <http://e/p> ?b . ?b <http://e/p> ?c . ?c <http://e/p> ?d . ?d <http://e/p> ?a }"
    nodes = [IRI(f"{N}n{number}") for number in range(25)]
    order = _published(*((a, PREDICATES[0], b) for at, a in enumerate(nodes) for b in nodes[at + 1 :]))
    subscriptions = [parse(circle, "sparql", id="circle"), parse("ASK { ?a <http://e/p> ?b }", "sparql", id="edge")]
    verdict = Columns.of([order], subscriptions, World(settings=Settings(max_steps=500))).verdict()
    assert verdict.subscription.tolist() == [1]
    ((publication, subscription, error),) = verdict.failures
    assert (publication, subscription) == (0, 0)
    assert isinstance(error, LimitError)
    assert str(error).startswith("p: the evaluation takes more than 500 steps")
    enough = Columns.of([order], subscriptions, World()).verdict()
    assert (enough.subscription.tolist(), enough.failures) == ([1], [])


def test_rows_that_differ_in_what_is_not_selected_are_one() -> None:
    text = "SELECT ?x { ?x <http://e/p> ?a . ?x <http://e/q> ?b }"
    columns = Columns.of([_many(40)], [parse(text, "sparql", id="s")], World(settings=Settings(max_bindings=3)))
    verdict = columns.verdict()
    assert verdict.truncated.tolist() == [False]
    assert columns.bindings(verdict) == [[frozenset({("x", NODES[0])})]]


def test_a_lazy_test_is_asked_of_each_term_once() -> None:
    text = "SELECT ?x {{ ?x <http://e/p> ?a . FILTER(STRLEN(STR(?a)) = {}) }}"
    subscriptions = [parse(text.format(number), "sparql", id=str(number)) for number in range(4)]
    columns = Columns.of([_many(5), _many(12)], subscriptions, World())
    for _ in range(2):
        verdict = columns.verdict()
        assert list(zip(verdict.publication.tolist(), verdict.subscription.tolist(), strict=True)) == [
            (0, 1),
            (1, 1),
            (1, 2),
        ]
    assert len(columns.asked) == 4


def test_bindings_are_in_the_order_of_their_terms() -> None:
    texts = ["SELECT * { ?x <http://e/p> ?a }", "SELECT ?b ?a { { ?x <http://e/p> ?a } UNION { ?x <http://e/q> ?b } }"]
    subscriptions = [parse(text, "sparql", id=text) for text in texts]
    objects: list[Term] = [Literal("b"), Literal("a", XSD + "int"), Literal("a"), BlankNode("z"), IRI(N + "z")]
    publication = _published(
        *((node, PREDICATES[0], value) for node in NODES[1::-1] for value in objects),
        *((NODES[0], PREDICATES[1], value) for value in objects[:2]),
    )
    for publications in ([publication], [_many(3), publication]):
        columns = Columns.of(publications, subscriptions, World())
        verdict = columns.verdict()
        pairs = zip(verdict.publication.tolist(), verdict.subscription.tolist(), strict=True)
        of_pair = dict(zip(pairs, columns.bindings(verdict), strict=True))
        first, second = (of_pair[len(publications) - 1, number] for number in range(2))
        values = [objects[3], objects[4], objects[1], objects[2], objects[0]]
        assert first == [frozenset({("x", node), ("a", value)}) for node in NODES[:2] for value in values]
        assert second == [
            *(frozenset({("a", value)}) for value in values),
            *(frozenset({("b", value)}) for value in (objects[1], objects[0])),
        ]


def test_lazy_tests_of_many_terms() -> None:
    texts = ["SELECT ?a { ?x <http://e/p> ?a . FILTER(STRLEN(STR(?a)) = 9) }", "SELECT ?a { ?x <http://e/p> ?a }"]
    subscriptions = [parse(text, "sparql", id=text) for text in texts]
    columns = Columns.of([_many(5_000)], subscriptions, World(settings=Settings(max_bindings=6_000)))
    verdict = columns.verdict()
    assert verdict.subscription.tolist() == [1]
    assert len(columns.bindings(verdict)[0]) == 5_000


def test_rows_of_many_pairs() -> None:
    text = "SELECT * {{ ?x <http://e/p> ?a . ?x <http://e/q> ?b . ?y <http://e/r> ?c . FILTER(?c < {}) }}"
    subscriptions = [parse(text.format(number), "sparql", id=str(number)) for number in (1, 2, 3)]
    columns = Columns.of([_typed(18), _typed(20)], subscriptions, World())
    verdict = columns.verdict()
    assert verdict.truncated.tolist() == [False, False, False, False, False, True]
    assert [len(set(rows)) for rows in columns.bindings(verdict)] == [324, 648, 972, 400, 800, 1000]


def test_a_lazy_test_that_needs_the_publication_is_asked_in_each() -> None:
    text = f"PREFIX : <{N}> SELECT * WHERE (?x, p, ?y) SUCHTHAT (NOT (?x ISA <= <{N}Cat>))"
    cat = _published((NODES[0], PREDICATES[0], NODES[1]), (NODES[0], RDF_TYPE, IRI(N + "Cat")))
    dog = _published((NODES[0], PREDICATES[0], NODES[1]), (NODES[0], RDF_TYPE, IRI(N + "Dog")))
    columns = Columns.of([cat, dog, cat], [parse(text, "gql", id="s")], World(TAXONOMY))
    assert columns.verdict().publication.tolist() == [1]


def test_pairs_that_call_operators_are_left_to_them() -> None:
    def fails(publication: Publication, arguments: object) -> bool:
        raise RuntimeError("no answer")

    operators = {"bad": function_operator("bad", ["x"], fails)}
    texts = [
        "{ ?x <http://e/p> ?a CALL bad(?a) }",
        "{ { ?x <http://e/p> ?a } UNION { ?x <http://e/p> ?a CALL bad(?a) } }",
    ]
    subscriptions = [
        parse(f"SELECT ?x {text}", "sparql", id=str(at), operators=operators) for at, text in enumerate(texts)
    ]
    verdict = Columns.of([_many(1)], subscriptions, World(operators=operators)).verdict()
    assert (verdict.subscription.tolist(), verdict.failures) == ([], [])
    assert verdict.waiting == [(0, 0), (0, 1)]


def test_the_kernels_run_as_plain_python() -> None:
    code = (
        "import random, verify.test_batch_verifier as t\n"
        "from triplewire.ir.evaluation.evaluate import World\n"
        "rng = random.Random(9)\n"
        "publications = [t._publication(rng, number) for number in range(6)]\n"
        "subscriptions = [t._query(rng, number) for number in range(40)]\n"
        "for cap in (1000, 2):\n"
        "    world = World(t.TAXONOMY, settings=t.Settings(max_bindings=cap))\n"
        "    matches, cut = t._same(t.Columns.of(publications, subscriptions, world))\n"
        "    assert matches > 10, matches\n"
        "assert cut > 3, cut\n"
    )
    tests = Path(__file__).parents[1]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{tests.parent / 'src'}{os.pathsep}{tests}"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
