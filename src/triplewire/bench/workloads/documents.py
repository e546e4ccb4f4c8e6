"""The `graph` workload: GQL subscriptions cut from documents of several subjects, as the G-ToPSS paper does it.

Publications are those of the RTF workload that describe several subjects. Half of the subscriptions (the overlap of the
cluster paper, section 5) are connected pieces of a few publications, the others of documents that are never published.
A piece has 3 to 10 edges, and two of its nodes are variables in nine of ten subscriptions.
"""

from __future__ import annotations

import random as plain_random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from triplewire.bench.workloads.corpus import Document, Statement
from triplewire.bench.workloads.pieces import quoted
from triplewire.bench.workloads.rtf import documents

PUBLICATIONS, UNPUBLISHED, POPULAR = 2_000, 2_000, 100
EDGES = (3, 10)
_VARIABLES, _WITH_VARIABLES = 2, 0.9
_LONGEST = 100  # characters of an object that a subscription repeats
_TRIES = 20
_ALIEN = "<urn:alien:"  # how an object begins that no document has


def write_documents(path: Path, subscriptions: int, seed: int, *, alien: int = 0) -> list[Document]:
    """Write the subscriptions to `path`, and `alien` more of which no publication has a piece; returns the
    publications."""
    source = documents(seed)
    published, others = list(islice(source, PUBLICATIONS)), list(islice(source, UNPUBLISHED))
    with path.open("w", encoding="utf-8") as out:
        for number, query in enumerate(_queries(published[:POPULAR], others, subscriptions, alien, seed)):
            out.write(f'{{"id": "d{number}", "language": "gql", "query": "{quoted(query)}"}}\n')
    return published


def _queries(
    popular: Sequence[Document], others: Sequence[Document], count: int, alien: int, seed: int
) -> Iterator[str]:
    """The texts of the subscriptions. An alien one has an object that no document has."""
    dice = plain_random.Random(seed)
    for number in range(count + alien):
        group = popular if number < count and number % 2 == 0 else others
        piece = _piece(dice, dice.choice(group)[1])
        if number >= count:
            piece[0] = (*piece[0][:2], f"{_ALIEN}{number}>")
        yield _gql(dice, piece)


def _piece(dice: plain_random.Random, statements: Sequence[Statement]) -> list[Statement]:
    """A connected piece of a graph."""
    usable = [statement for statement in statements if len(statement[2]) <= _LONGEST]
    by_node: dict[str, list[Statement]] = defaultdict(list)
    for statement in usable:
        by_node[statement[0]].append(statement)
        by_node[statement[2]].append(statement)
    chosen = {dice.choice(usable): None}
    wanted = min(dice.randint(*EDGES), len(usable))
    for _ in range(_TRIES * wanted):
        if len(chosen) == wanted:
            break
        subject, _, value = dice.choice(list(chosen))
        chosen.setdefault(dice.choice(by_node[dice.choice((subject, value))]))
    return list(chosen)


def _gql(dice: plain_random.Random, piece: Sequence[Statement]) -> str:
    """The piece as a query, with some nodes as variables. Blank nodes are variables always, and alien ones never."""
    every = dict.fromkeys(node for subject, _, value in piece for node in (subject, value))
    nodes = [node for node in every if not node.startswith(_ALIEN)]
    wanted = [node for node in nodes if node.startswith("_:")]
    if dice.random() < _WITH_VARIABLES:
        wanted += dice.sample(nodes, min(_VARIABLES, len(nodes)))
    name = {node: f"?x{number}" for number, node in enumerate(dict.fromkeys(wanted))}
    edges = (f"({name.get(subject, subject)}, {label}, {name.get(value, value)})" for subject, label, value in piece)
    return f"SELECT * WHERE {' AND '.join(edges)}"
