"""All four languages at once: a third each of RTF queries, graph tuples and MDV rules, and a few operator predicates.

Operators are Python code, so there are few subscriptions with calls: many would dominate the time. The publications of
the four languages alternate. Those for the operator predicates are places with coordinates.
"""

from __future__ import annotations

import random as plain_random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

import numpy as np

from bench.workloads import corpus, graphs, rtf
from bench.workloads.corpus import (
    CHUNK,
    NAMESPACE,
    TYPE,
    Document,
    Pieces,
    Rows,
    Statement,
    SubscriptionRows,
    iri,
    quoted,
    word,
    write_rows,
)
from bench.workloads.rtf import RtfQueries, documents

# --- metadata --------------------------------------------------------------------------------------------------------
# The four rule types of the MDV paper (figure 10): OID, COMP, PATH and JOIN, each over documents of two resources.


RULE_TYPES = ("OID", "COMP", "PATH", "JOIN")
COMP_SHARE = 0.1
_SCHEMA = "schema"
_INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


def providers(count: int, rules: int) -> list[Document]:
    """Documents as in figure 1: a cycle provider and what is known of its server. With `rules` rules of each type."""
    out: list[Document] = []
    for number in range(count):
        rule = number * rules // count  # the rule of each type that matches it
        provider, server = iri("provider", f"p{rule}"), iri("provider", f"p{rule}#info")
        facts = (
            (provider, TYPE, iri(_SCHEMA, "CycleProvider")),
            (provider, iri(_SCHEMA, "serverHost"), f'"{word(3_000 + rule)}.uni-passau.de"'),
            (provider, iri(_SCHEMA, "serverPort"), f'"5874"{_INTEGER}'),
            (provider, iri(_SCHEMA, "synthValue"), f'"{round(rules * COMP_SHARE)}"{_INTEGER}'),
            (provider, iri(_SCHEMA, "serverInformation"), server),
            (server, TYPE, iri(_SCHEMA, "ServerInformation")),
            (server, iri(_SCHEMA, "memory"), f'"{rule}"{_INTEGER}'),
            (server, iri(_SCHEMA, "cpu"), f'"600"{_INTEGER}'),
        )
        out.append((provider, facts))
    return out


def write_rules(path: Path, rules: int, *, types: tuple[str, ...] = RULE_TYPES) -> int:
    """Write `rules` rules of each type. Returns their number."""
    pieces = Pieces()
    head = f"PREFIX s: <{NAMESPACE}{_SCHEMA}/>\nsearch s:CycleProvider c register c where c"
    row = SubscriptionRows(pieces, "mdv", "m", head)
    middle = {
        "OID": f" = <{NAMESPACE}provider/p",
        "COMP": ".s:synthValue > ",
        "PATH": ".s:serverInformation.s:memory = ",
        "JOIN": ".s:serverHost contains 'uni-passau.de' and c.s:serverInformation.s:cpu = 600"
        " and c.s:serverInformation.s:memory = ",
    }
    before = pieces.add_all(quoted(middle[kind]) for kind in types)
    after = pieces.add_all(">" if kind == "OID" else "" for kind in types)
    number = pieces.add_all(str(n) for n in range(rules))

    def chunks() -> Iterator[Rows]:
        for first in range(0, rules * len(types), CHUNK):
            at = np.arange(first, min(first + CHUNK, rules * len(types)))
            kind, rule = at % len(types), at // len(types)
            yield row.around(np.stack([before[kind], number[rule], after[kind]], axis=1), first)

    return write_rows(path, pieces, chunks())


# --- mixed ------------------------------------------------------------


CALLING = 20  # subscriptions that call operators
_LANGUAGES = ("en", "de", "fr", "el")
_GEO = "<http://www.w3.org/2003/01/geo/wgs84_pos#"


def write_mixed(path: Path, subscriptions: int, publications: int, seed: int) -> list[Document]:
    """Write the subscriptions to `path`; returns the publications."""
    calls = max(1, min(CALLING, subscriptions // 4))
    share, turn = max(1, (subscriptions - calls) // 3), max(1, publications // 4)
    parts = [path.with_suffix(f".{language}") for language in ("sparql", "gql", "mdv", "predicates")]
    articles = rtf.publications(turn, seed)
    RtfQueries(corpus.build(articles), 0.5).write(parts[0], share, seed)
    pieces = graphs.write_graphs(graphs.CLUSTER_MANY, parts[1], share, seed)[:turn]
    rules = max(1, share // len(RULE_TYPES))
    write_rules(parts[2], rules)
    _write_predicates(parts[3], calls, seed)
    with path.open("wb") as stream:
        for part in parts:
            stream.write(part.read_bytes())
            part.unlink()
    turns = zip_longest(articles, pieces, providers(min(turn, rules), rules), _places(turn, seed))
    return [document for document in chain.from_iterable(turns) if document is not None]


def _places(count: int, seed: int) -> list[Document]:
    dice = plain_random.Random(seed)
    out: list[Document] = []
    for number in range(count):
        subject = iri("place", f"p{number}")
        label = f'"{word(dice.randrange(9_000))}"@{_LANGUAGES[number % len(_LANGUAGES)]}'
        latitude, longitude = f'"{dice.uniform(-60, 70):.4f}"', f'"{dice.uniform(-170, 170):.4f}"'
        where = [(subject, f"{_GEO}lat>", latitude), (subject, f"{_GEO}long>", longitude)]
        out.append((subject, [*where, (subject, iri("place", "name"), label)]))
    return out


def _write_predicates(path: Path, count: int, seed: int) -> None:
    dice, pieces = plain_random.Random(seed), Pieces()
    row = SubscriptionRows(pieces, "predicates", "p")
    texts = []
    for _ in range(count):
        south, west = dice.randint(-60, 40), dice.randint(-170, 100)
        box = f"locIn({south}, {west}, {south + dice.randint(1, 30)}, {west + dice.randint(1, 60)})"
        texts.append(box + dice.choice(("", *(f", language({code})" for code in _LANGUAGES))))
    queries: Rows = pieces.add_all(texts)
    write_rows(path, pieces, [row.around(queries[:, None], 0)])


# --- documents -------------------------------------------------------------------------------------------------------
# The `graph` workload: GQL subscriptions cut from documents of several subjects, as the G-ToPSS paper does it.


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
