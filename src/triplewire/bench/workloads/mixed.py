"""All four languages at once: a third each of RTF queries, graph tuples and MDV rules, and a few operator predicates.

Operators are Python code, so there are few subscriptions with calls: many would dominate the time. The publications of
the four languages alternate. Those for the operator predicates are places with coordinates.
"""

from __future__ import annotations

import random as plain_random
from itertools import chain, zip_longest
from pathlib import Path

from triplewire.bench.workloads import corpus, graphs, metadata, rtf
from triplewire.bench.workloads.corpus import Document
from triplewire.bench.workloads.pieces import Pieces, Rows, SubscriptionRows, write_rows
from triplewire.bench.workloads.rtf_queries import RtfQueries
from triplewire.bench.workloads.vocabulary import iri, word

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
    rules = max(1, share // len(metadata.RULE_TYPES))
    metadata.write_rules(parts[2], rules)
    _write_predicates(parts[3], calls, seed)
    with path.open("wb") as stream:
        for part in parts:
            stream.write(part.read_bytes())
            part.unlink()
    turns = zip_longest(articles, pieces, metadata.providers(min(turn, rules), rules), _places(turn, seed))
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
