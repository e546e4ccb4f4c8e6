"""What a taxonomy answers: cases as data (`tests/cases/taxonomy/holds.toml`), a naive twin, deep hierarchies."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import tomllib
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import ROOT
from triplewire.errors import TaxonomyError
from triplewire.ir.nodes import Label, Relation
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.publication import Graph
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Literal, Term, Triple, made_iri
from triplewire.read import read_document
from triplewire.read.taxonomy import load_taxonomy

EX = "http://example.org/"
CASES = tomllib.loads((ROOT / "tests/cases/taxonomy/holds.toml").read_text(encoding="utf-8"))["case"]
PREFIXES = f"PREFIX : <{EX}>\n" + "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREDECLARED.items())
QUESTION = re.compile(
    r"(?P<node>\".*?\"|\S+) (?P<relation>subclass of|<=|>=|=) (?P<cls>'.*?'\S*|\S+)(?: => (?P<path>.*))?"
)
NO_GRAPH = Graph(())


def term(text: str) -> IRI | Literal | BlankNode:
    if text.startswith('"'):
        return Literal(text[1:-1])
    return BlankNode(text[2:]) if text.startswith("_:") else made_iri(EX + text[1:])


def class_name(text: str) -> IRI | Label:
    label = re.fullmatch(r"'(.*)'(?:\(:(\w+)\))?", text)
    return Label(label[1], EX + label[2] if label[2] else "") if label else IRI(EX + text[1:])


def path(text: str) -> tuple[str, ...]:
    parts = re.findall(r'".*?"|\S+', text)
    return tuple(EX + part[1:] if part.startswith(":") else part.strip('"') for part in parts)


def graph(text: str) -> Graph:
    """The triples of a Turtle text; its blank nodes keep their labels."""
    found = read_document((PREFIXES + text).encode(), "x.ttl") if text else []
    return Graph(triple for publication in found for triple in publication.triples)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any], tmp_path: Any) -> None:
    file = tmp_path / "taxonomy.ttl"
    file.write_text(PREFIXES + case["taxonomy"], encoding="utf-8")
    taxonomy = load_taxonomy(file)
    publication = graph(case.get("publication", ""))
    for line in case["questions"].strip().splitlines():
        question = QUESTION.fullmatch(line)
        assert question, line
        node, cls = term(question["node"]), class_name(question["cls"])
        relation = Relation(question["relation"])
        shown = path(question["path"]) if question["path"] else None
        for known in (taxonomy, Taxonomy.from_json(json.loads(json.dumps(taxonomy.to_json())))):
            assert known.holds(node, relation, cls, publication) == bool(shown), line
            assert known.path(node, relation, cls, publication) == shown, line


def test_what_a_name_resolves_to() -> None:
    taxonomy = Taxonomy.build(
        [("urn:C", "urn:B"), ("Dog", "Animal")], [("urn:x", "urn:D")], [("urn:C", "See"), ("urn:D", "See")]
    )
    assert taxonomy.resolve(IRI("urn:C")) == {"urn:C"}
    assert taxonomy.resolve(Label("See")) == {"urn:C", "urn:D"}
    assert taxonomy.resolve(Label("See", "urn:B")) == {"urn:B"}
    assert taxonomy.resolve(Label("Dog")) == {"Dog"}
    assert taxonomy.resolve(IRI("urn:unheard")) == taxonomy.resolve(Label("unheard", "urn:unheard")) == frozenset()
    assert taxonomy.resolve(IRI("urn:x")) == frozenset(), "an instance is no class"
    assert EMPTY.resolve(Label("See")) == frozenset()


CYCLES = {
    "two": ([("a", "b"), ("b", "a")], {"a -> b -> a", "b -> a -> b"}),
    "three, behind a stalk": ([("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")], {"a -> b -> c -> a"}),
    "beside a tree": ([("t", "r"), ("s", "r"), ("r", "q"), ("q", "s")], {"r -> q -> s -> r", "s -> r -> q -> s"}),
}


@pytest.mark.parametrize("name", CYCLES)
def test_a_cycle_is_refused_by_its_name(name: str) -> None:
    pairs, told = CYCLES[name]
    with pytest.raises(TaxonomyError) as caught:
        Taxonomy.build(pairs)
    assert caught.value.what.removeprefix("the classes form a cycle: ") in told
    assert "remove one" in caught.value.remedy


@pytest.mark.slow
def test_a_long_cycle_is_told_in_short() -> None:
    pairs = [(f"c{n}", f"c{(n + 1) % 50_000}") for n in range(50_000)]
    with pytest.raises(TaxonomyError, match=r"c0 -> c1 -> .* \.\.\. \(49981 more\) \.\.\. -> .* -> c0") as caught:
        Taxonomy.build(pairs)
    assert len(str(caught.value)) < 1_000


def test_a_diamond_is_no_cycle() -> None:
    layers = 40  # 2 ** 40 ways from the bottom to the top
    pairs = [(f"{n}{side}", f"{n + 1}{upper}") for n in range(layers) for side in "ab" for upper in "ab"]
    taxonomy = Taxonomy.build(pairs)
    assert taxonomy.holds(made_iri("0a"), Relation.DESCENDANT, made_iri(f"{layers}b"), NO_GRAPH)
    assert len(taxonomy.path(made_iri("0a"), Relation.DESCENDANT, made_iri(f"{layers}b"), NO_GRAPH) or ()) == layers + 1


# --- changes ---------------------------------------------------------------------------------------------------------

IRIS = st.sampled_from([f"c{n}" for n in range(6)])
PAIRS = st.lists(st.tuples(IRIS, IRIS), max_size=5)
STATEMENTS = st.fixed_dictionaries(dict.fromkeys(("subclasses", "instances", "names", "domains"), PAIRS))


def statements(taxonomy: Taxonomy) -> set[tuple[str, str, str]]:
    return {
        (table, key, value) for table, rows in taxonomy.to_json().items() for key, of in rows.items() for value in of
    }


def upwards(pairs: dict[str, list[tuple[str, str]]]) -> Taxonomy:
    """The taxonomy of pairs; a class is below those with higher numbers only."""
    return Taxonomy.build(**{**pairs, "subclasses": [(min(pair), max(pair)) for pair in pairs["subclasses"]]})


@given(start=STATEMENTS, steps=st.lists(st.tuples(STATEMENTS, STATEMENTS, st.lists(IRIS, max_size=1)), max_size=3))
def test_changes_add_and_remove_statements(start: Any, steps: Any) -> None:
    taxonomy = upwards(start)
    expected = statements(taxonomy)
    for adds, removes, drop in steps:
        add, remove = upwards(adds), upwards(removes)
        before, kept = taxonomy, statements(taxonomy)
        taxonomy = taxonomy.changed(add=add, remove=remove, drop=drop)
        expected -= statements(remove)
        gone = {(t, k, v) for t, k, v in expected if v in drop or (k in drop and t != "names")}  # its keys are texts
        expected = (expected - gone) | statements(add)
        assert statements(taxonomy) == expected
        assert statements(before) == kept
        anew = Taxonomy.from_json(taxonomy.to_json())
        assert taxonomy == anew
        for table in ("subclasses", "instances"):  # also where they are those of the taxonomy before, changed
            known = {cls: of for cls, of in getattr(taxonomy, table).items() if of}
            assert known == getattr(anew, table)


@given(start=PAIRS, added=PAIRS)
def test_a_change_that_closes_a_cycle_is_refused(start: Any, added: Any) -> None:
    taxonomy = upwards({"subclasses": start})
    try:
        expected = Taxonomy.build([*((a, b) for a, of in taxonomy.superclasses.items() for b in of), *added])
    except TaxonomyError:
        try:
            add = Taxonomy.build(added)
        except TaxonomyError:
            return
        with pytest.raises(TaxonomyError, match="cycle") as caught:
            taxonomy.changed(add=add)
        way = caught.value.what.removeprefix("the classes form a cycle: ").split(" -> ")
        edges = {*((a, b) for a, of in taxonomy.superclasses.items() for b in of), *added}
        assert way[0] == way[-1]
        assert edges.issuperset(itertools.pairwise(way))
    else:
        assert taxonomy.changed(add=Taxonomy.build(added)) == expected


@pytest.mark.slow
def test_a_very_deep_chain() -> None:
    depth = 50_000
    taxonomy = Taxonomy.build(((f"c{n}", f"c{n + 1}") for n in range(depth)), [("x", "c0"), ("y", f"c{depth}")])
    top, bottom = made_iri(f"c{depth}"), made_iri("c0")
    assert taxonomy.holds(made_iri("x"), Relation.DESCENDANT, top, NO_GRAPH)
    assert taxonomy.holds(made_iri("y"), Relation.ANCESTOR, bottom, NO_GRAPH)
    assert not taxonomy.holds(made_iri("y"), Relation.DESCENDANT, bottom, NO_GRAPH)
    assert len(taxonomy.path(made_iri("x"), Relation.DESCENDANT, top, NO_GRAPH) or ()) == depth + 2
    assert Taxonomy.from_json(taxonomy.to_json()) == pickle.loads(pickle.dumps(taxonomy)) == taxonomy


def test_the_ancestors_of_many_deep_classes_take_little_memory() -> None:
    """1,200 classes of a chain of 3,500 have 3.5 million ancestors together: some 180 MB, where all are kept."""
    depth, asked = 3_500, 1_200
    taxonomy = Taxonomy.build((f"c{n}", f"c{n + 1}") for n in range(depth))
    top = made_iri(f"c{depth}")
    tracemalloc.start()
    try:
        for n in reversed(range(asked)):
            assert taxonomy.holds(made_iri(f"c{n}"), Relation.DESCENDANT, top, NO_GRAPH)
            assert len(taxonomy.at_or_above(f"c{n}")) == depth - n + 1
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


# --- the naive twin: the definitions of semantics, section 4, over sets of pairs -------------------------------------

CLASSES = [f"c{n}" for n in range(6)]
INSTANCES = ["i0", "i1"]
edges = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda pair: (CLASSES[min(pair)], CLASSES[max(pair)]))
typings = st.tuples(st.sampled_from([*INSTANCES, "c0", "c5"]), st.sampled_from(CLASSES))


def ancestors(subclasses: list[tuple[str, str]], cls: str) -> set[str]:
    found = {cls}
    while not found >= {b for a, b in subclasses if a in found}:
        found |= {b for a, b in subclasses if a in found}
    return found


def naive(
    subclasses: list[tuple[str, str]], types: list[tuple[str, str]], known: set[str], node: str, op: str, cls: str
) -> bool:
    direct = {c for i, c in types if i == node}
    is_class = node in known
    if op == "<=":
        return any(cls in ancestors(subclasses, d) for d in direct) or (is_class and cls in ancestors(subclasses, node))
    if op == "=":
        return cls in direct or (is_class and node != cls and (node, cls) in subclasses)
    return any(d in ancestors(subclasses, cls) for d in direct) or (is_class and node in ancestors(subclasses, cls))


@pytest.mark.slow
@given(st.lists(edges, max_size=8), st.lists(typings, max_size=4), st.lists(typings, max_size=3))
def test_as_the_naive_twin(
    subclasses: list[tuple[str, str]], instances: list[tuple[str, str]], own: list[tuple[str, str]]
) -> None:
    taxonomy = Taxonomy.build(subclasses, instances)
    publication = Graph(Triple(made_iri(i), RDF_TYPE, made_iri(c)) for i, c in own)
    known = {c for a, b in subclasses if a != b for c in (a, b)} | {c for _, c in instances}
    for node in [*INSTANCES, *CLASSES]:
        for op in ("<=", "=", ">="):
            for cls in CLASSES:
                wanted = naive(subclasses, instances + own, known, node, op, cls)
                found = taxonomy.path(made_iri(node), Relation(op), made_iri(cls), publication)
                assert taxonomy.holds(made_iri(node), Relation(op), made_iri(cls), publication) == wanted
                assert (found is not None) == wanted
                if found is not None:
                    assert found[0] == node
                    assert found[-1] == cls
        assert taxonomy.holds(made_iri(node), Relation.SUBCLASS, made_iri("c5"), publication) == (
            "c5" in ancestors(subclasses, node)
        )


NO_TAXONOMY: dict[str, Any] = {
    "a table is missing": {"superclasses": {}, "names": {}},
    "a table is a list": {"superclasses": [], "classes_of": {}, "names": {}},
    "a class is a text": {"superclasses": {"a": "bc"}, "classes_of": {}, "names": {}},
    "a class is a number": {"superclasses": {"a": [1]}, "classes_of": {}, "names": {}},
    "a cycle": {"superclasses": {"a": ["b"], "b": ["a"]}, "classes_of": {}, "names": {}},
}


@pytest.mark.parametrize("name", NO_TAXONOMY)
def test_what_is_saved_is_checked(name: str) -> None:
    with pytest.raises((KeyError, ValueError, TaxonomyError)):
        Taxonomy.from_json(NO_TAXONOMY[name])


def test_literals_and_blank_nodes_never_fail() -> None:
    nodes: list[Term] = [Literal("c0"), Literal("1", "urn:type"), Literal.tagged("c0", "en"), BlankNode("b")]
    taxonomy = Taxonomy.build([("c0", "c1")])
    for relation in Relation:
        found = [taxonomy.holds(node, relation, made_iri("c1"), NO_GRAPH) for node in nodes]
        named = relation in (Relation.DESCENDANT, Relation.DIRECT)
        assert found == [named, False, named, False]


def test_classes_that_are_the_same_are_one_and_no_cycle() -> None:
    pairs = [("a:Boat", "a:Vehicle"), ("b:Ship", "b:Thing"), ("a:Dinghy", "a:Boat")]
    taxonomy = Taxonomy.build(pairs, instances=[("a:1", "a:Dinghy")], equivalents=[("a:Boat", "b:Ship")])
    assert taxonomy.at_or_above("a:Dinghy") == {"a:Dinghy", "a:Boat", "a:Vehicle", "b:Ship", "b:Thing"}
    assert taxonomy.at_or_above("b:Ship") == {"a:Boat", "a:Vehicle", "b:Ship", "b:Thing"}
    assert Taxonomy.from_json(taxonomy.to_json()) == taxonomy
    with pytest.raises(TaxonomyError, match="cycle: a:Boat -> a:Dinghy -> a:Boat"):
        taxonomy.changed(add=Taxonomy.build([("b:Ship", "a:Dinghy")]))
    parted = taxonomy.changed(remove=Taxonomy.build([], equivalents=[("b:Ship", "a:Boat")]))
    assert parted == Taxonomy.build(pairs, instances=[("a:1", "a:Dinghy")])
    assert parted.changed(add=Taxonomy.build([("b:Thing", "a:Boat")])).at_or_above("b:Ship") >= {"a:Vehicle"}


def test_ways_up_through_many_classes_that_are_the_same_end() -> None:
    same = [(f"c:{n}", f"c:{n + 1}") for n in range(1_200)]
    taxonomy = Taxonomy.build([("c:0", "top")], equivalents=same)
    assert len(taxonomy.at_or_above("c:600")) == 1_202


def test_what_is_stated_of_a_namespace() -> None:
    taxonomy = Taxonomy.build(
        [("a:X", "b:Y"), ("b:Y", "b:Z")],
        instances=[("urn:1", "a:X"), ("urn:1", "b:Y")],
        names=[("a:X", "ex"), ("b:Y", "ex")],
        classes=["a:W", "b:V"],
        equivalents=[("a:X", "c:Q"), ("c:Q", "c:R")],
    )
    part = taxonomy.restricted(lambda iri: iri.startswith("a:"))
    assert part.superclasses == {"a:X": {"b:Y", "c:Q"}, "c:Q": {"a:X"}}
    assert (part.classes_of["urn:1"], part.names, set(part.classes_of)) == ({"a:X"}, {"ex": {"a:X"}}, {"urn:1", "a:W"})
    assert part.equivalents == {"a:X": {"c:Q"}, "c:Q": {"a:X"}}
