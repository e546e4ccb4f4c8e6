"""Documents as rows (MDV paper, section 3.2): what one says, as resources, their classes and their statements.

Any syntax that Triplewire reads; relative IRIs, as those of `rdf:ID`, resolve against the document's IRI. Figure 1 of
the paper is read as it is printed: attributes without a prefix are properties of the namespace around them, with a
warning that names their lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.metadata.dictionary import numbers_of
from triplewire.metadata.tables import ANY, SUBJECT
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Literal, Term, Triple
from triplewire.read import read_document


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document that was read. `warnings`: it is ill-formed in these places."""

    iri: str
    triples: tuple[Triple, ...]
    warnings: tuple[Refusal, ...] = ()


def parsed(iri: str, content: bytes, settings: Settings) -> Parsed:
    """Read a document. Raises `ReadError` where a part of it cannot be read."""
    told: list[Refusal] = []
    publications = read_document(content, iri, base=iri, split="document", settings=settings, on_refusal=told.append)
    for refusal in told:
        if not refusal.is_warning:
            raise ReadError(refusal.reason, source=refusal.where, remedy=refusal.remedy)
    triples = tuple(triple for publication in publications for triple in publication.triples)
    for _, _, value in triples:
        if isinstance(value, Literal) and "\x00" in value.lexical:
            raise ReadError("a text holds U+0000, which databases do not take", source=iri, remedy="leave it out")
    return Parsed(iri, triples, tuple(told))


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
