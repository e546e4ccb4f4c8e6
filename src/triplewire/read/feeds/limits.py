"""Checks the limits of publications that were made from feeds. Those of RDF are checked while it is parsed:
`triplewire.read.rdf.parse`."""

from __future__ import annotations

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal
from triplewire.read.rdf.parse import check_length
from triplewire.read.rdf.split import too_many


def characters(publication: Publication) -> int:
    """The characters of its literals."""
    return sum(len(triple.object.lexical) for triple in publication.triples if isinstance(triple.object, Literal))


def over_limit(publication: Publication, settings: Settings) -> ReadError | None:
    """The error for a publication with too many triples or too long a term; None for one within the limits."""
    if len(publication.triples) > settings.max_triples:
        return too_many(settings)
    try:
        for triple in publication.triples:
            for term in triple:
                if isinstance(term, Literal):
                    check_length("literal", term.lexical, settings.max_literal_bytes, "max_literal_bytes")
                elif isinstance(term, IRI):
                    check_length("IRI", term.value, settings.max_iri_bytes, "max_iri_bytes")
    except ReadError as error:
        return error
    return None
