"""The walk through the tries: never too few; what is accepted is a match; work follows what is there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.generated import WORLD, groups, publications
from triplewire import Publication, UnsupportedQuery, parse
from triplewire.encode.publications import encode
from triplewire.ir.evaluate import World, evaluate
from triplewire.ir.evidence import evidence
from triplewire.ir.nodes import And
from triplewire.ir.normalize import check
from triplewire.ir.subscription import Subscription
from triplewire.model.terms import IRI, XSD, Literal, Triple
from triplewire.select import asked, idle, walk
from triplewire.select import index as indexes
from triplewire.select import room as rooms
from triplewire.select.features import features
from triplewire.select.index import Index, IndexBuilder
from triplewire.select.merge import merge
from triplewire.select.room import Room
from triplewire.select.walk import Selected, Workspace

CAP = 3


def index_of(subscriptions: list[Subscription]) -> Index:
    builder = IndexBuilder()
    for one in subscriptions:
        builder.add(evidence(one, most=WORLD.settings.max_branches), one.select, one.ask)
    return builder.build()


def selected(index: Index, some: list[Publication], cap: int = 1_000, world: World = WORLD) -> Selected:
    batch = encode(some)
    return index.select(batch, features(batch, index.terms, index.tests, world), cap, Room())


def accepted(found: Selected, publication: int) -> list[int]:
    slice_ = found.subscription[found.offset[publication] : found.offset[publication + 1]]
    return sorted(slice_.tolist())


def to_check(index: Index, found: Selected, publication: int) -> set[int]:
    clauses = found.check_clause[found.check_offset[publication] : found.check_offset[publication + 1]]
    return set(index.trie.owner[clauses].tolist())


def registered(tree: And, ask: bool) -> Subscription | None:
    one = Subscription("s", "sparql", "", () if ask else ("x", "y"), tree, ask)
    try:
        check(one, WORLD.settings)
    except UnsupportedQuery:  # nothing positive is asked for
        return None
    return one


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    trees=st.lists(st.tuples(groups, st.booleans()), min_size=1, max_size=12),
    some=st.lists(publications, min_size=1, max_size=4),
    kept=st.sets(st.integers(0, 11)),
    least=st.sampled_from([0, asked._LEAST]),  # 0: more atoms lie in the hash table
)
def test_never_too_few(trees: list[tuple[And, bool]], some: list[Publication], kept: set[int], least: int) -> None:
    subscriptions = [one for tree in trees if (one := registered(*tree)) is not None]
    numbers = [n for n in range(len(subscriptions)) if n not in kept]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asked, "_LEAST", least)
        index = index_of(subscriptions)
        merged = merge([(index, np.array(numbers, np.int64)), (index, np.arange(len(subscriptions)))])
    for candidate, meant in ((index, subscriptions), (merged, [subscriptions[n] for n in numbers] + subscriptions)):
        again = Index.from_arrays(candidate.arrays())
        found = selected(again, some, CAP)
        for row, publication in enumerate(some):
            sure, maybe = accepted(found, row), to_check(again, found, row)
            assert len(set(sure)) == len(sure)
            for number, one in enumerate(meant):
                answer = evaluate(one, publication, WORLD)
                many = len(answer.bindings) > CAP or answer.truncated
                if number in sure:
                    assert answer.bindings, one.where
                    assert not many, one.where
                elif answer.bindings:
                    assert number in maybe, one.where


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


@pytest.mark.parametrize(("op", "below"), [(">", True), (">=", True), ("<", False), ("<=", False)])
def test_thresholds_are_runs_of_children(op: str, below: bool) -> None:
    count = 2_000
    texts = [f"SELECT * WHERE (?s, <urn:p>, ?o) SUCHTHAT (?o {op} {n}.5)" for n in range(count)]
    index = index_of([parse(text, "gql", id=str(n)) for n, text in enumerate(texts)])
    value = 5 if below else count - 5
    found = selected(index, [about(Literal(str(value), XSD + "integer"))])
    assert accepted(found, 0) == (list(range(5)) if below else list(range(count - 5, count)))
    assert found.nodes < 12


def test_there_is_room_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f'SELECT * {{ ?s <urn:p> ?o FILTER ftcontains(?o, "w{n % 7}") }}' for n in range(500)]
    subscriptions = [parse(text, id=str(n)) for n, text in enumerate(texts)]
    some = [about(f"w{n}") for n in range(7)] + [about("w1 w2 w3")]
    whole = selected(index_of(subscriptions), some)
    monkeypatch.setattr(walk, "_ROOM", 1)
    monkeypatch.setattr(rooms, "_FIRST", 1)
    monkeypatch.setattr(walk, "_KEYS", 1)
    narrow = index_of(subscriptions)
    for _ in range(2):  # what the first call made room for, the second one finds
        again = selected(narrow, some)
        assert whole.subscription.tolist() == again.subscription.tolist()
        assert len(accepted(again, 7)) == sum(n % 7 in (1, 2, 3) for n in range(500))


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
    monkeypatch.setattr(asked, "_CELLS", cells)
    monkeypatch.setattr(asked, "_LEAST", 0)
    index = index_of(subscriptions)
    assert (len(index.trie.dense) > 1) == (cells > 0)
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
        assert set(accepted(found, row)) <= set(meant) <= {*accepted(found, row), *to_check(index, found, row)}
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
    assert to_check(index, selected(index, [one], cap=2), 0) == {0}


def test_a_workspace_is_kept_unless_it_has_grown_large(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of([parse('SELECT * { ?s <urn:p> ?o FILTER ftcontains(?o, "word") }', id="a")])
    for _ in range(3):
        assert accepted(selected(index, [about("word")]), 0) == [0]
        assert len(index._spaces.kept) == 1
    kept = index._spaces.kept[0]
    index._spaces.kept.extend([Workspace(index.trie, len(index)) for _ in range(idle.MOST)])  # as many threads would
    selected(index, [about("word")])
    assert len(index._spaces.kept) == idle.MOST
    assert index._spaces.kept[0] is kept
    del index._spaces.kept[1:]
    monkeypatch.setattr(indexes, "_KEPT", len(kept.checks) - 1)
    assert accepted(selected(index, [about("word")]), 0) == [0]
    assert index._spaces.kept == []
