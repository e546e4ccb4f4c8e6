"""The walk through the tries: work follows what is there, and there is room for all. The law: `test_every_index`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from built import Built, accepted, clauses_of

from engine.generated import WORLD
from triplewire import Publication, parse
from triplewire import memory as pool
from triplewire.engine.segments import arena
from triplewire.ir.evaluation.evaluate import evaluate
from triplewire.ir.subscription import Subscription
from triplewire.model.terms import IRI, XSD, Literal, Triple
from triplewire.select.index import Selected
from triplewire.select.trie import build as atom_tables
from triplewire.select.trie import index as trie_index
from triplewire.select.trie import index as walk
from triplewire.select.trie.index import TrieIndex, Workspace


def index_of(subscriptions: list[Subscription]) -> Built:
    return Built.of(clauses_of(subscriptions))


def selected(built: Built, some: list[Publication], cap: int = 1_000) -> Selected:
    return built.selected(some, cap)


def about(*objects: object) -> Publication:
    terms = [o if isinstance(o, IRI | Literal) else Literal(str(o)) for o in objects]
    return Publication("p", tuple(Triple(IRI("urn:s"), IRI("urn:p"), term) for term in terms))


@pytest.mark.parametrize("count", [10, 3_000])
def test_equal_but_for_a_word(count: int) -> None:
    texts = [f'SELECT * {{ ?s <urn:p> ?o FILTER ftcontains(?o, "common" ftAND "w{n}") }}' for n in range(count)]
    index = index_of([parse(text, id=str(n)) for n, text in enumerate(texts)])
    found = selected(index, [about("common w3 w7 others"), about("w1"), about("common")])
    assert [accepted(found, row) for row in range(3)] == [[3, 7], [], []]
    assert found.nodes < 20


@pytest.mark.parametrize("size", [1, 3, 1_025])
def test_parts_of_a_batch_select_what_the_whole_does(size: int) -> None:
    """Words, numbers and classes; and a clause that has to be checked."""
    words = [(f'SELECT * {{ ?s <urn:p> ?o FILTER ftcontains(?o, "w{n}") }}', "sparql") for n in range(9)]
    others = [(f"SELECT * WHERE (?s, <urn:p>, ?o) SUCHTHAT (?o {op} {n})", "gql") for op in "<>=" for n in range(5)]
    others += [("SELECT * WHERE (?s, <urn:p>, ?o) SUCHTHAT (?s ISA <= <urn:D>)", "gql")]
    joined = [('SELECT * { ?s <urn:p> ?o . ?t <urn:p> ?s FILTER ftcontains(?o, "w1") }', "sparql")]
    kind = Triple(IRI("urn:s"), IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), IRI("urn:C"))
    some = [about(f"w1 w{n % 9}", Literal(str(n % 7), XSD + "integer"), IRI("urn:s")) for n in range(size)]
    some = [Publication(one.id, (*one.triples, kind)[: 4 - number % 2]) for number, one in enumerate(some)]
    for texts, has_checks in ((words, False), (words + others, False), (joined, True)):
        built = index_of([parse(text, language, id=str(n)) for n, (text, language) in enumerate(texts)])
        view, index = built.view(some), built.index
        whole, prepared = index.select(view, None, 1_000, arena.Arena()), index.prepare(view)
        assert prepared is not None
        parts = []
        for first, last in pairwise(sorted({0, 1, size // 2, size})):
            part = view.part(view.batch.part(first, last), first, last)
            found = index.select(part, prepared.part(first, last), 1_000, arena.Arena())
            parts.append((found.subscription.tolist(), found.check_place.tolist(), found.atoms, found.nodes))
        assert [sum(columns, type(columns[0])()) for columns in zip(*parts, strict=True)] == [
            whole.subscription.tolist(), whole.check_place.tolist(), whole.atoms, whole.nodes
        ]  # fmt: skip
        assert (len(whole.check_place) > 0) == has_checks
        assert whole.candidates >= size


@pytest.mark.parametrize(("op", "below"), [(">", True), (">=", True), ("<", False), ("<=", False)])
def test_thresholds_are_runs_of_children(op: str, below: bool) -> None:
    count = 2_000
    texts = [f"SELECT * WHERE (?s, <urn:p>, ?o) SUCHTHAT (?o {op} {n}.5)" for n in range(count)]
    index = index_of([parse(text, "gql", id=str(n)) for n, text in enumerate(texts)])
    value = 5 if below else count - 5
    found = selected(index, [about(Literal(str(value), XSD + "integer"))])
    assert accepted(found, 0) == (list(range(5)) if below else list(range(count - 5, count)))
    assert found.nodes < 12


def test_ways_without_forks_end_where_clauses_do() -> None:
    """Clauses of several subjects: one is the beginning of another, two fork at their ends; and each star is needed."""
    stars = [f"<urn:s{n}> <urn:p> <urn:o{n}>" for n in range(8)]
    groups = [stars[:2], stars[:6], [*stars[:5], stars[6]], [*stars[:5], stars[7]], stars]
    index = index_of([parse(f"SELECT * {{ {' . '.join(group)} . ?x <urn:q> ?y }}") for group in groups])
    facts = [Triple(IRI(f"urn:s{n}"), IRI("urn:p"), IRI(f"urn:o{n}")) for n in range(8)]
    other = Triple(IRI("urn:x"), IRI("urn:q"), IRI("urn:y"))
    some = [{*range(8)}, {*range(6)}, {0, 1, 2, 3, 4, 6}, {0, 1}, {1, 2, 3, 4, 5}, {*range(8)} - {3}]
    publications = [Publication(f"p{n}", (*(facts[k] for k in sorted(own)), other)) for n, own in enumerate(some)]
    for built in (index, index.saved("trie")):
        answer = selected(built, publications)
        assert [accepted(answer, row) for row in range(len(some))] == [[0, 1, 2, 3, 4], [0, 1], [0, 2], [0], [], [0]]


def test_there_is_room_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f'SELECT * {{ ?s <urn:p> ?o FILTER ftcontains(?o, "w{n % 7}") }}' for n in range(500)]
    subscriptions = [parse(text, id=str(n)) for n, text in enumerate(texts)]
    some = [about(f"w{n}") for n in range(7)] + [about("w1 w2 w3")]
    whole = selected(index_of(subscriptions), some)
    monkeypatch.setattr(walk, "_ROOM", 1)
    monkeypatch.setattr(arena, "_FIRST", 1)
    monkeypatch.setattr(walk, "_KEYS", 1)
    narrow = index_of(subscriptions)
    for _ in range(2):  # what the first call made room for, the second one finds
        again = selected(narrow, some)
        assert whole.subscription.tolist() == again.subscription.tolist()
        assert len(accepted(again, 7)) == sum(n % 7 in (1, 2, 3) for n in range(500))


@pytest.mark.parametrize("room", range(1, 60, 7))
def test_there_is_room_for_the_atoms_of_many_predicates(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of their objects. What is written behind the end, `make bounds` shows."""
    count = 30
    monkeypatch.setattr(walk, "_ROOM", room)
    index = index_of([parse(f"SELECT ?s {{ ?s <urn:p{n}> ?o }}", id=str(n)) for n in range(count)])
    of_all = tuple(Triple(IRI("urn:s"), IRI(f"urn:p{n}"), Literal("x")) for n in range(count))
    found = selected(index, [Publication("few", of_all[:2]), Publication("p", of_all)])
    assert [accepted(found, row) for row in range(2)] == [[0, 1], list(range(count))]


@pytest.mark.parametrize("cells", [0, 1, 1_000])
def test_atoms_are_found_wherever_they_lie(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    words, nodes = [f"w{n}" for n in range(40)], [f"urn:o{n}" for n in range(40)]
    subscriptions = [
        parse(f"SELECT * {{ {subject} {predicate} ?o {test} }}", id=f"{subject} {predicate} {test}")
        for subject in ("?s", "<urn:s3>")
        for predicate in ("?p", "<urn:p1>", "<urn:p2>")
        for test in ("", *[f'FILTER ftcontains(?o, "{word}")' for word in words])
    ]
    subscriptions += [
        parse(f"SELECT * {{ ?s {predicate} <{node}> }}", id=f"{predicate} {node}")
        for predicate in ("?p", "<urn:p1>")
        for node in nodes
    ]
    monkeypatch.setattr(atom_tables, "_CELLS", cells)
    monkeypatch.setattr(atom_tables, "_LEAST", 0)
    index = index_of(subscriptions)
    assert isinstance(index.index, TrieIndex)
    assert (len(index.index.trie.dense) > 1) == (cells > 0)
    some = [
        Publication(
            str(n),
            (
                Triple(IRI(f"urn:s{n}"), IRI("urn:p1"), Literal(f"w{n} w{n + 1} w{n}")),
                Triple(IRI(f"urn:s{n}"), IRI("urn:p1"), IRI(f"urn:o{n}")),
                Triple(IRI(f"urn:s{n}"), IRI("urn:p3"), Literal(f"w{n + 1} w{n + 2}")),
                Triple(IRI("urn:s"), IRI("urn:p2"), IRI(f"urn:o{n + 1}")),
            ),
        )
        for n in range(12)
    ]
    found = selected(index, some)
    for row, publication in enumerate(some):
        meant = [n for n, one in enumerate(subscriptions) if evaluate(one, publication, WORLD).bindings]
        assert set(accepted(found, row)) <= set(meant) <= {*accepted(found, row), *index.to_check(found, row)}
        assert meant


def test_marks_begin_anew_before_they_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f'SELECT * {{ ?s <urn:p> ?o FILTER ftcontains(?o, "w{n % 7}") }}' for n in range(50)]
    index = index_of([parse(text, id=str(n)) for n, text in enumerate(texts)])
    monkeypatch.setattr(walk, "_MOST_MARKS", 40)
    for at in range(20):
        found = selected(index, [about(f"w{at % 7} w{(at + 1) % 7}"), about("w8")])
        assert accepted(found, 0) == [n for n in range(50) if n % 7 in (at % 7, (at + 1) % 7)]
        assert accepted(found, 1) == []


def test_two_subjects_give_one_row() -> None:
    text = "SELECT * { ?s <urn:p> ?o }"
    index = index_of([parse(text, id="s")])
    one = Publication("p", tuple(Triple(IRI(f"urn:{n}"), IRI("urn:p"), Literal("x")) for n in range(3)))
    assert accepted(selected(index, [one]), 0) == [0]
    assert index.to_check(selected(index, [one], cap=2), 0) == {0}


def test_a_workspace_is_kept_unless_it_has_grown_large(monkeypatch: pytest.MonkeyPatch) -> None:
    built = index_of([parse('SELECT * { ?s <urn:p> ?o FILTER ftcontains(?o, "word") }', id="a")])
    index, clauses = built.index, built.clauses
    assert isinstance(index, TrieIndex)
    workspaces = index._workspaces
    for _ in range(3):
        assert accepted(selected(built, [about("word")]), 0) == [0]
        assert len(workspaces.idle) == 1
    first = workspaces.idle[0]
    workspaces.idle.extendleft([Workspace(index.trie, clauses) for _ in range(pool.MOST - 1)])
    workspaces.give(Workspace(index.trie, clauses))
    assert len(workspaces.idle) == pool.MOST
    workspaces.idle.clear()
    workspaces.give(first)
    monkeypatch.setattr(trie_index, "_LARGEST", len(first.checks) - 1)
    assert accepted(selected(built, [about("word")]), 0) == [0]
    assert not workspaces.idle
