"""The workloads that all systems are given, as folders.

For them these are `queries.jsonl` and `publications.jsonl`, for the engine the same as `subscriptions.jsonl` and
`publications.nq`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from bench.peers.serving import Query, Statement
from bench.workloads.catalogue import Case, Place, document_case, rtf_case
from triplewire.config import Settings
from triplewire.errors import TriplewireError, raise_refusal
from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import Analyzer, FullText, Variable, Word
from triplewire.ir.normal_form import Position, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.files import read_rows
from triplewire.model.publication import Publication
from triplewire.model.terms import Literal
from triplewire.read import read

_PLAIN = ("http://www.w3.org/2001/XMLSchema#string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")


def mixed(place: Place, count: int, publications: int) -> Path:
    """Structure and, in half of the queries, words."""
    return _written(place, f"mixed-{count}", rtf_case(place, 50, count), publications, lambda query: query)


def text(place: Place, count: int, publications: int) -> Path:
    """The one tuple with words of each query that has one."""

    def only_text(query: Query) -> Query:
        return [wanted for wanted in query if len(wanted) > 3]

    return _written(place, f"text-{count}", rtf_case(place, 100, count), publications, only_text)


def graph(place: Place, count: int, publications: int) -> Path:
    """Pieces of graphs, whose edges join."""
    return _written(place, f"graph-{count}", document_case(place, count), publications, lambda query: query)


def _written(place: Place, name: str, case: Case, most: int, part: Callable[[Query], Query]) -> Path:
    """The folder of a case, with at most so many publications; of each query, what `part` keeps."""
    folder = place.work / f"peers-{name}"
    if folder.exists():
        return folder
    part_of = folder.with_suffix(".part")
    part_of.mkdir(exist_ok=True)
    parsed = read_rows([case.subscriptions], settings=Settings(), on_refusal=raise_refusal)
    queries = [(its.row.id, part(tuples_of(its.subscription))) for its in parsed]
    _rows(part_of / "queries.jsonl", queries)
    sparql = ({"id": id, "language": "sparql", "query": to_sparql(query)} for id, query in queries)
    _rows(part_of / "subscriptions.jsonl", sparql)
    publications = list(islice(read(case.publications), most))
    _rows(part_of / "publications.jsonl", ((one.id, statements_of(one)) for one in publications))
    lines = (f"{s} {p} {o} <{one.id}> .\n" for one in publications for s, p, o in one.triples)
    (part_of / "publications.nq").write_text("".join(lines), encoding="utf-8")
    part_of.rename(folder)
    return folder


def _rows(path: Path, rows: Iterable[object]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def statements_of(publication: Publication) -> list[Statement]:
    """The triples of a publication, with the words of texts."""
    statements: list[Statement] = []
    for subject, predicate, value in publication.triples:
        is_text = isinstance(value, Literal) and value.datatype in _PLAIN
        words = list(analyse(value.lexical, Analyzer())) if is_text and isinstance(value, Literal) else None
        statements.append((str(subject), str(predicate), str(value), words))
    return statements


def tuples_of(subscription: Subscription) -> Query:
    """The tuples of a subscription of patterns and, of its variables, words that are all needed. Raises
    `TriplewireError` where it asks for more."""
    (clause,) = normal_form(subscription, most=1).clauses
    words: dict[str, list[str]] = {}
    for name, test in clause.tests:
        if not isinstance(test, FullText) or not isinstance(test.expression, Word):
            raise TriplewireError(f"{subscription.id} asks for more than patterns and words")
        words.setdefault(name, []).append(test.expression.word)

    def written(position: Position) -> str:
        if isinstance(position, Variable):
            return "*" if position.name.startswith("*") else f"?{position.name}"
        return str(position)

    def tuples() -> Iterator[list[object]]:
        for subject, predicate, value in clause.patterns:
            asked = words.get(value.name) if isinstance(value, Variable) else None
            yield [written(subject), written(predicate), written(value), *([asked] if asked else [])]

    return list(tuples())


def to_sparql(query: Query) -> str:
    """A query in SPARQL; `*` is known there, too."""
    parts: list[str] = []
    for number, (subject, predicate, value, *words) in enumerate(query):
        place = f"?any{number}" if words and value == "*" else value
        parts.append(f"{subject} {predicate} {place} .")
        if words:
            conditions = " ftAND ".join(f'"{word}"' for word in words[0])
            parts.append(f"FILTER ftcontains({place}, {conditions})")
    return f"SELECT * WHERE {{ {' '.join(parts)} }}"
