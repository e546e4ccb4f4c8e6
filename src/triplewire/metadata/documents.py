"""Documents as rows (MDV paper, section 3.2): what one says, as resources, their classes and their statements.

Any syntax that Triplewire reads; relative IRIs, as those of `rdf:ID`, resolve against the document's IRI. Figure 1 of
the paper is read as it is printed: attributes without a prefix are properties of the namespace around them, with a
warning that names their lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.metadata.dictionary import numbers_of
from triplewire.metadata.tables import ANY, SUBJECT
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Literal, Term, Triple
from triplewire.read import read_documents


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document that was read. `warnings`: it is ill-formed in these places."""

    iri: str
    triples: tuple[Triple, ...]
    warnings: tuple[Refusal, ...] = ()


def parsed(iri: str, content: bytes, settings: Settings) -> Parsed:
    """Read a document. Raises `ReadError` where a part of it cannot be read."""
    (document,) = all_parsed([(iri, content)], settings)
    if isinstance(document, ReadError):
        raise document
    return document


def all_parsed(documents: Iterable[tuple[str, bytes]], settings: Settings) -> Iterator[Parsed | ReadError]:
    """Read documents, given by their IRIs and contents; or why a part of one cannot be read."""
    told: list[Refusal] = []
    documents = list(documents)
    pairs = ((content, iri) for iri, content in documents)
    read = read_documents(pairs, split="document", settings=settings, on_refusal=told.append)
    for (iri, _), publications in zip(documents, read, strict=True):
        triples = tuple(triple for publication in publications for triple in publication.triples)
        refused = next((refusal for refusal in told if not refusal.is_warning), None)
        if refused is not None:
            remedy = "" if "max_iri_bytes" in refused.remedy else refused.remedy  # databases set that limit
            yield ReadError(refused.reason, source=refused.where, remedy=remedy)
        elif any(isinstance(value, Literal) and "\x00" in value.lexical for _, _, value in triples):
            yield ReadError("a text holds U+0000, which databases do not take", source=iri, remedy="leave it out")
        else:
            yield Parsed(iri, triples, tuple(told))
        told.clear()


@dataclass
class Rows:
    """The rows of documents, each once: (document, resource, property, value) and (document, resource, class)."""

    statements: set[tuple[int, int, int, int]] = field(default_factory=set)
    types: set[tuple[int, int, int]] = field(default_factory=set)


def rows_of(connection: Connection, documents: Iterable[tuple[int, Sequence[Triple]]]) -> Rows:
    """The rows of documents, given by their numbers. A row says of each resource that it is there."""
    named = [(number, [_named(number, triple) for triple in triples]) for number, triples in documents]
    numbers = numbers_of(connection, {term for _, triples in named for triple in triples for term in triple})
    rows, is_type = Rows(), numbers.get(RDF_TYPE)
    for document, triples in named:
        for triple in triples:
            resource, property_, value = (numbers[term] for term in triple)
            rows.statements |= {(document, resource, property_, value), (document, resource, SUBJECT, resource)}
            rows.types.add((document, resource, ANY))
            if property_ == is_type:
                rows.types.add((document, resource, value))
    return rows


def _named(document: int, triple: Triple) -> tuple[Term, IRI, Term]:
    """The triple with names of blank nodes that no other document has."""
    subject, property_, value = triple
    return _of(document, subject), property_, _of(document, value)


def _of(document: int, term: Term) -> Term:
    return BlankNode(f"d{document}.{term.label}") if isinstance(term, BlankNode) else term
