"""Workloads that are hard for an index: each case has publications and subscriptions of its own.

One predicate with 100,000 distinct thresholds; patterns of variables alone; a publication of 10,000 triples; a literal
of 14,254 words (the longest of DBpedia); 100,000 subscriptions that are equal but for one word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from triplewire.bench.workloads import corpus, rtf
from triplewire.bench.workloads.corpus import TYPE, Document
from triplewire.bench.workloads.pieces import CHUNK, Pieces, Rows, SubscriptionRows, quoted, write_rows
from triplewire.bench.workloads.rtf_queries import RtfQueries
from triplewire.bench.workloads.vocabulary import ZipfDraws, iri, word

MANY_TRIPLES, MANY_WORDS = 10_000, 14_254
_VALUE, _TEXT = iri("hard", "value"), iri("hard", "text")


def thresholds(path: Path, count: int, seed: int) -> list[Document]:
    """`?v > c` with another c in each subscription; the values hold for a tenth, a half and nine tenths of them."""
    pieces = Pieces()
    head = f"SELECT ?s WHERE {{ ?s {_VALUE} ?v FILTER(?v > "
    _write(path, pieces, SubscriptionRows(pieces, "sparql", "t", head, ") }"), pieces.add_all(map(str, range(count))))
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    values = (count // 10, count // 2, count * 9 // 10)
    return [_single(f"v{n}", [(_VALUE, f'"{value}"{integer}')]) for n, value in enumerate(values)]


def variables(path: Path, count: int, seed: int) -> list[Document]:
    """One to four patterns of variables alone: chains, stars and pairs that share no variable, over 60 triples."""
    shapes = [
        "?a ?b ?c",
        "?a ?b ?c . ?c ?d ?e",
        "?a ?b ?c . ?a ?d ?e . ?a ?f ?g",
        "?a ?b ?c . ?d ?e ?f",
        "?a ?b ?c . ?c ?b ?d",
        "?a ?b ?c . ?d ?b ?e . ?f ?b ?g",
        "?a ?b ?c . ?c ?d ?e . ?e ?f ?a",
        "?a ?b ?a",
        "?a ?b ?c . ?c ?d ?e . ?e ?f ?g . ?g ?h ?i",
    ]
    pieces = Pieces()
    row = SubscriptionRows(pieces, "sparql", "v", "SELECT * WHERE { ", " }")
    _write(path, pieces, row, pieces.add_all(shapes)[np.arange(count) % len(shapes)])
    nodes = [iri("hard", f"n{n}") for n in range(20)]
    facts = [(nodes[n % 20], iri("hard", f"p{n % 3}"), nodes[(7 * n + n // 20) % 20]) for n in range(60)]
    return [(iri("hard", "variables"), list(dict.fromkeys(facts)))]


def many_triples(path: Path, count: int, seed: int) -> list[Document]:
    """RTF queries against one publication that holds what many others say."""
    documents = rtf.publications(1_500, seed)
    RtfQueries(corpus.build(documents), 0.5).write(path, count, seed)
    statements = dict.fromkeys(s for _, parts in documents for s in parts)
    return [(iri("hard", "triples"), list(statements)[:MANY_TRIPLES])]


def long_literal(path: Path, count: int, seed: int) -> list[Document]:
    """RTF queries, all of them with words, against one publication with one very long abstract."""
    documents = rtf.publications(500, seed)
    RtfQueries(corpus.build(documents), 1.0).write(path, count, seed)
    ranks = ZipfDraws(100_000, 1.04, 2.0).draw(np.random.default_rng(seed), MANY_WORDS)
    name, statements = next(d for d in documents if any(p == rtf.ABSTRACT for _, p, _ in d[1]))
    text = f'"{" ".join(map(word, ranks.tolist()))}"@en'
    return [(name, [(s, p, text if p == rtf.ABSTRACT else o) for s, p, o in statements])]


def one_word(path: Path, count: int, seed: int) -> list[Document]:
    """Subscriptions that are equal but for one word of two; the texts hold the common word and a few of the others."""
    pieces = Pieces()
    head = f'SELECT * WHERE {{ ?s {TYPE} {iri("hard", "Page")} . ?s {_TEXT} ?t FILTER ftcontains(?t, "common" ftAND "'
    other = pieces.add_all(quoted(word(n)) for n in range(1_000, 1_000 + count))
    _write(path, pieces, SubscriptionRows(pieces, "sparql", "w", head, '") }'), other)
    dice = np.random.default_rng(seed)
    out: list[Document] = []
    for number in range(20):
        chosen = dice.integers(1_000, 1_000 + count, 40).tolist()
        text = f'"common {" ".join(map(word, chosen))}"@en'
        out.append(_single(f"w{number}", [(TYPE, iri("hard", "Page")), (_TEXT, text)]))
    return out


CASES: dict[str, tuple[int, Callable[[Path, int, int], list[Document]]]] = {
    "100,000 distinct thresholds of one predicate": (100_000, thresholds),
    "patterns of variables alone": (900, variables),
    "a publication of 10,000 triples": (10_000, many_triples),
    "a literal of 14,254 words": (10_000, long_literal),
    "equal but for one word": (100_000, one_word),
}
"""Label -> the full number of subscriptions, and a function that writes them and returns the publications."""


def _single(local: str, facts: list[tuple[str, str]]) -> Document:
    subject = iri("hard", local)
    return subject, [(subject, predicate, value) for predicate, value in facts]


def _write(path: Path, pieces: Pieces, row: SubscriptionRows, queries: Rows) -> None:
    """Rows whose query is one piece between head and tail."""

    def chunks() -> Iterator[Rows]:
        for first in range(0, len(queries), CHUNK):
            yield row.around(queries[first : first + CHUNK, None], first)

    write_rows(path, pieces, chunks())
