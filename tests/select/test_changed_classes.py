"""Class tests under a taxonomy that has changed: only what the change touches is found out again."""

from __future__ import annotations

import numpy as np
import pytest

from triplewire.clauses.node_tests.classes import Classes, ClassIndex
from triplewire.ir.nodes import Relation
from triplewire.ir.taxonomy import Taxonomy

N = "http://example.org/"
FAMILIES, KINDS = 40, 25
TAXONOMY = Taxonomy.build(
    [
        *((f"{N}family{f}", N + "bird") for f in range(FAMILIES)),
        *((f"{N}kind{f}.{k}", f"{N}family{f}") for f in range(FAMILIES) for k in range(KINDS)),
    ],
    [(f"{N}ada{f}", f"{N}kind{f}.0") for f in range(FAMILIES)],
    [(f"{N}kind{f}.{k}", f"kind {f} {k}") for f in range(FAMILIES) for k in range(KINDS)],
)
ASKED = [
    *((Relation.DESCENDANT.value, f"{N}family{f}") for f in range(FAMILIES)),
    (Relation.DIRECT.value, N + "bird"),
    (Relation.ANCESTOR.value, N + "kind7.0"),
    (Relation.SUBCLASS.value, N + "family3"),
    (Relation.DESCENDANT.value, N + "mammal"),
]


def classes_of(asked: list[tuple[str, str]]) -> Classes:
    return Classes(tuple(asked), np.arange(len(asked) + 1), np.arange(len(asked), dtype=np.int32))


def known_sets(index: ClassIndex) -> dict[str, frozenset[int]]:
    """The tests of each IRI of which they are known."""
    names, sets = index.names[0], index.sets_of_iris.tolist()
    return {names[row].decode(): index.sets.tests(number) for row, number in enumerate(sets) if number >= 0}


def touched_names(*families: int) -> set[str]:
    """All names below some families."""
    kinds = [(f, k) for f in families for k in range(KINDS)]
    own = {f"{N}family{f}" for f in families} | {f"{N}ada{f}" for f in families}
    return own | {f"{N}kind{f}.{k}" for f, k in kinds} | {f"kind {f} {k}" for f, k in kinds}


CHANGES = {
    "nothing": (TAXONOMY.changed(), set()),
    "a class of another branch": (
        TAXONOMY.changed(add=Taxonomy.build([(N + "whale", N + "sea mammal")])),
        {N + "whale", N + "sea mammal"},
    ),
    "a family below another class": (
        TAXONOMY.changed(add=Taxonomy.build([(N + "family5", N + "mammal")])),
        touched_names(5) | {N + "mammal"},
    ),
    "an edge less": (
        TAXONOMY.changed(remove=Taxonomy.build([(N + "kind9.3", N + "family9")])),
        {N + "kind9.3", "kind 9 3"},
    ),
    "an instance": (TAXONOMY.changed(add=Taxonomy.build((), [(N + "bob", N + "kind2.1")])), {N + "bob"}),
    "a name": (TAXONOMY.changed(add=Taxonomy.build((), (), [(N + "kind2.1", "auk")])), {"auk"}),
    "a class that is gone": (
        TAXONOMY.changed(drop=[N + "kind4.0"]),
        {N + "kind4.0", "kind 4 0", N + "ada4"},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_only_what_a_change_touches_is_found_out_again(name: str) -> None:
    taxonomy, touched = CHANGES[name]
    classes = classes_of(ASKED)
    classes.index(TAXONOMY).prepare(1 << 20)
    classes.change(TAXONOMY, taxonomy)
    index, anew = classes.index(taxonomy), ClassIndex(taxonomy, classes.tests())
    anew.prepare(1 << 20)
    known, expected = known_sets(index), known_sets(anew)
    assert expected.keys() - known.keys() == touched & expected.keys()
    assert known.items() <= expected.items()
    index.prepare(1 << 20)
    known = known_sets(index)
    assert {name: known[name] for name in expected} == expected
    assert not any(known[name] for name in known.keys() - expected.keys()), "of a name that is none any more"


def test_an_index_that_was_not_asked_for_is_not_made() -> None:
    classes, taxonomy = classes_of(ASKED), TAXONOMY.changed(drop=[N + "kind4.0"])
    classes.change(Taxonomy(), taxonomy)
    assert not taxonomy.caches


def test_another_test_of_a_class_touches_what_is_below_it() -> None:
    """A label means the class of its name: another one, after the change."""
    classes = Classes(((Relation.DESCENDANT.value, "", "auk"),), np.array([0, 1]), np.zeros(1, np.int32))
    before = TAXONOMY.changed(add=Taxonomy.build((), (), [(N + "family1", "auk")]))
    after = TAXONOMY.changed(add=Taxonomy.build((), (), [(N + "family2", "auk")]))
    classes.index(before).prepare(1 << 20)
    classes.change(before, after)
    index = classes.index(after)
    assert index.set_of(N + "ada2", True) == index.sets.number(frozenset([0]))
    assert known_sets(index).keys().isdisjoint(touched_names(1, 2))
    assert N + "ada3" in known_sets(index)
