"""The small figures of the papers are what the matchers' data structures hold: `tests/cases/structures/papers.toml`.

And what no figure shows: tries depend on the order of insertion, answers do not; what is inserted one by one is what is
built at once; what is deleted is not named any more.
"""

from __future__ import annotations

import random
import re
import tomllib
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built import Built, accepted, clauses_of

from amounts import OF_PAPERS
from triplewire import Publication, parse
from triplewire.clauses.clauses import merge
from triplewire.engine import Engine
from triplewire.read import read

FILE = Path(__file__).resolve().parents[1] / "cases" / "structures" / "papers.toml"
CASES = tomllib.loads(FILE.read_text(encoding="utf-8"))["case"]
BASE = "http://figure.example/"
Rows = list[list[Any]]


def subscriptions_of(case: dict[str, Any]) -> dict[str, Any]:
    return {name: parse(text, base=BASE) for name, text in case["subscriptions"].items()}


def built_of(case: dict[str, Any]) -> Built:
    return Built.of(clauses_of(list(subscriptions_of(case).values())), case["matcher"])


def publication_of(case: dict[str, Any]) -> Publication:
    (publication,) = read(case["publication"].encode(), base=BASE)
    return publication


class Shown:
    """The structure of a matcher in the words of the figures."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.built, self.names = built_of(case), list(case["subscriptions"])
        self.index: Any = self.built.index
        self.structure = self.index.store.structure

    def node(self, code: int, star: str = "*") -> str:
        """A term of the subscriptions without the base, or a star."""
        text = self.built.clauses.constants[code].decode() if code >= 0 else star
        return text.removeprefix(BASE)

    def key(self, table: Any, row: int) -> tuple[int, int]:
        return int(table.key[row, 0]), int(table.key[row, 1])

    def members(self, lists: Any, number: int) -> list[int]:
        """The values of a list."""
        values, entry = [], int(lists.first[number])
        while entry >= 0:
            values.append(int(lists.value[entry]))
            entry = int(lists.next[entry])
        return values

    def named(self, clauses: list[int]) -> str:
        return " ".join(self.names[clause] for clause in clauses)

    def word(self, number: int) -> str:
        """A word, by the matcher's own number of its test."""
        (test,) = np.flatnonzero(self.index.number == number).tolist()
        return self.built.clauses.tests.specs[test].decode().removeprefix("w")

    def edges(self) -> list[tuple[str, str, str]]:
        """The edges of G_M: subject, label, object."""
        table, edges = self.structure.edge, []
        for row in range(int(table.used[0])):
            first, second = self.key(table, row)
            if hasattr(self.structure, "pair"):
                ends, label = self.key(self.structure.pair, first), second
            else:
                ends, label = (second >> 32, (second + 2**31) % 2**32 - 2**31), self.key(self.structure.label, first)[0]
            stars = [f"*{-1 - code}" if code < -1 else "*" for code in ends]
            subject, target = (self.node(code, star) for code, star in zip(ends, stars, strict=True))
            edges.append((subject, self.node(label), target))
        return edges

    def rows(self) -> Rows:
        """The rows of the figure."""
        if hasattr(self.structure, "pair"):
            clauses = self.structure.clauses
            return [
                [subject, target, label, self.named(self.members(clauses, edge))]
                for edge, (subject, label, target) in enumerate(self.edges())
            ]
        return self.constraints() if hasattr(self.structure, "ends") else self.paths()

    def constraints(self) -> Rows:
        """Constraint tables: of each list its entries in their order, those of one constant together."""
        structure, rows = self.structure, []
        for edge, (subject, label, target) in enumerate(self.edges()):
            place = [label, subject, target]
            if free := self.members(structure.patterns, structure.free[edge]):
                rows.append([*place, "", "", "", self.named(structure.clause[free].tolist())])
            for side, end in enumerate(("subject", "object")):
                lists = self.members(structure.ends, 2 * edge + side)
                for row in range(int(structure.equal.used[0])):
                    if self.key(structure.equal, row)[0] == 2 * edge + side:
                        lists.append(int(structure.equal_list[row]))
                for number in lists:
                    rows += [[*place, end, *row] for row in self.entries(self.members(structure.patterns, number))]
        return rows

    def entries(self, patterns: list[int]) -> Rows:
        """The entries of a list: operator, constant and subscriptions."""
        rows: Rows = []
        for pattern in patterns:
            lead = self.structure.lead[pattern]
            spec = self.built.clauses.tests.specs[self.built.clauses.table.test[lead]].decode()
            operator, constant = re.search(r'"([<>=!]+)".*?(\d+)', spec).groups()  # type: ignore[union-attr]
            name = self.named([int(self.structure.clause[pattern])])
            if rows and rows[-1][:2] == [operator, constant]:
                rows[-1][2] += f" {name}"
            else:
                rows.append([operator, constant, name])
        return rows

    def paths(self) -> Rows:
        """Tries: the path of each node at which tuples end."""
        offset, rows = self.built.clauses.table.pattern_offset, []
        for node in range(int(self.structure.nodes.used[0])):
            if tuples := self.members(self.structure.tuples, node):
                clauses = self.structure.clause[tuples].tolist()
                named = [f"{self.names[c]}.{i - offset[c] + 1}" for i, c in zip(tuples, clauses, strict=True)]
                rows.append([self.path(node), " ".join(named)])
        return rows

    def path(self, node: int) -> str:
        """From the root to a node."""
        steps: list[int] = []
        while node >= 0:
            parent, content = self.key(self.structure.nodes, node)
            steps.insert(0, content)
            node = parent
        shape = 3 if node == -1 else 0
        words = [self.word(number) for number in steps[shape:]]
        return " ".join([*map(self.node, steps[:shape]), *(["FT"] if words else []), *words])

    def tables(self, publication: Publication) -> Rows:
        """The binding tables of a publication: subject, label, object, rows."""
        self.built.selected([publication])
        room = self.index.store.room
        return [
            [*edge, int(room.size[number])]
            for number, edge in enumerate(self.edges())
            if room.stamp[number] == room.state[0]
        ]


@pytest.mark.parametrize("case", CASES, ids=[case["figure"] for case in CASES])
def test_figure(case: dict[str, Any]) -> None:
    shown = Shown(case)
    # entries of one list stay in their order
    assert sorted(shown.rows(), key=lambda row: row[:-2] or row[:1]) == case["structure"]
    if "publication" in case:
        publication = publication_of(case)
        assert sorted(shown.tables(publication)) == case["tables"]
        engine = Engine(matcher=case["matcher"])
        for name, text in case["subscriptions"].items():
            engine.subscribe(text, id=name, base=BASE)
        found = {
            match.subscription: sorted(
                str(getattr(row["x"], "value", None) or row["x"].lexical).removeprefix(BASE) for row in match.bindings
            )
            for match in engine.match(publication)
        }
        assert found == case["matches"]


WORDS = "abcde"
TEXTS = [
    "SELECT * { ?s <p> ?t FILTER ftcontains(?t, 'a' ftAND 'b') }",
    "SELECT * { ?s <p> ?t ; <q> ?o FILTER ftcontains(?t, 'b' ftAND 'c' ftAND 'a') FILTER(?o > 2) }",
    "SELECT * { ?s <p> ?t ; <q> ?o FILTER(?o > 1 && ?o < 4) }",
    "SELECT * { ?s ?r <x> . ?s <q> ?o FILTER(?o != 2) }",
    "ASK { ?s <p> ?t FILTER ftcontains(?t, 'd' ftAND 'b') }",
    "SELECT ?s { ?s <r> <y> . <y> <q> ?o FILTER(?o < 3) }",
]


def drawn(chance: random.Random) -> Publication:
    """A publication with a few of the properties that the texts ask for."""
    nodes, parts = ["x", "y"], []
    for _ in range(6):
        words = " ".join(chance.sample(WORDS, 3))
        value = chance.choice([f'<p> "{words}"', f"<q> {chance.randrange(5)}", f"<r> <{chance.choice(nodes)}>"])
        parts.append(f"<{chance.choice(nodes)}> {value} .")
    (publication,) = read(" ".join(parts).encode(), base=BASE)
    return publication


def named(built: Built, numbers: list[int], some: list[Publication]) -> list[tuple[set[int], set[int]]]:
    """What is accepted, and what is to be checked, of each publication, by `numbers` of subscriptions."""
    selected = built.selected(some)
    return [
        ({numbers[n] for n in accepted(selected, row)}, {numbers[n] for n in built.to_check(selected, row)})
        for row in range(len(some))
    ]


@pytest.mark.parametrize("matcher", OF_PAPERS)
def test_the_order_of_insertion_changes_no_answer(matcher: str) -> None:
    chance = random.Random(7)
    some, subscriptions = [drawn(chance) for _ in range(20)], [parse(text, base=BASE) for text in TEXTS]
    orders = [list(order) for order in chance.sample(list(permutations(range(len(TEXTS)))), 20)]
    answers = [named(Built.of(clauses_of([subscriptions[n] for n in order]), matcher), order, some) for order in orders]
    assert all(answer == answers[0] for answer in answers)
    assert any(sure or maybe for sure, maybe in answers[0])


@pytest.mark.parametrize("matcher", OF_PAPERS)
def test_inserted_one_by_one(matcher: str) -> None:
    """The numbers of tests and ranges change meanwhile; the indexes before go on to answer as they did."""
    chance = random.Random(8)
    some, numbers = [drawn(chance) for _ in range(20)], list(range(5 * len(TEXTS)))
    subscriptions = [parse(TEXTS[n % len(TEXTS)].replace("2", str(n)), base=BASE) for n in numbers]
    built, before, stores = Built.of(clauses_of(subscriptions[:1]), matcher), [], []
    for count in range(2, len(numbers) + 1):
        fresh = clauses_of(subscriptions[count - 1 : count])
        clauses = merge([(built.clauses, np.arange(count - 1)), (fresh, np.arange(1))])
        before.append((built, named(built, numbers, some)))
        built = Built(clauses, built.index.inserted(clauses, count - 1))  # type: ignore[attr-defined]
        stores.append(id(built.index.store))  # type: ignore[attr-defined]
    assert named(built, numbers, some) == named(Built.of(built.clauses, matcher), numbers, some)
    assert all(named(earlier, numbers, some) == said for earlier, said in before)
    assert len(set(stores)) <= 6, "the room is doubled, not made for each"
    other = before[5][0]
    clauses = merge([(other.clauses, np.arange(6)), (fresh, np.arange(1))])
    branch = Built(clauses, other.index.inserted(clauses, 6))  # type: ignore[attr-defined]
    assert named(branch, numbers, some) == named(Built.of(clauses, matcher), numbers, some)
    assert named(built, numbers, some) == named(Built.of(built.clauses, matcher), numbers, some)


@pytest.mark.parametrize("matcher", OF_PAPERS)
def test_more_room_keeps_publications_apart(matcher: str) -> None:
    """The first publication after there is more room is not taken for the first one before."""
    chance, numbers = random.Random(8), list(range(2 * len(TEXTS)))
    fresh = clauses_of([parse(text, base=BASE) for text in TEXTS])
    clauses = merge([(fresh, np.arange(len(TEXTS))), (fresh, np.arange(len(TEXTS)))])
    for one in [drawn(chance) for _ in range(5)]:
        built = Built.of(fresh, matcher)
        assert named(built, numbers, [one]) != [(set(), set())]
        grown = Built(clauses, built.index.inserted(clauses, len(TEXTS)))  # type: ignore[attr-defined]
        assert named(grown, numbers, [one]) == named(Built.of(clauses, matcher), numbers, [one])


@pytest.mark.parametrize("matcher", [name for name in OF_PAPERS if name != "naive"])
def test_what_is_deleted_is_not_named(matcher: str) -> None:
    chance = random.Random(9)
    some, numbers = [drawn(chance) for _ in range(20)], list(range(2 * len(TEXTS)))
    built = Built.of(clauses_of([parse(text, base=BASE) for text in TEXTS + TEXTS]), matcher)
    everything, index = named(built, numbers, some), built.index
    for gone in (0, 8, 3):
        assert 0 < index.delete(gone) <= 3 * len(numbers)  # type: ignore[attr-defined]  # each has one clause
    left = [(sure - {0, 8, 3}, maybe - {0, 8, 3}) for sure, maybe in everything]
    assert named(built, numbers, some) == left != everything
