"""Checks the limits of publications that were made from feeds. Those of RDF are checked while it is parsed:
`triplewire.read.rdf.parse`."""

from __future__ import annotations

from collections.abc import Iterable

from triplewire.config import Settings
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal
from triplewire.read.rdf.parse import check_length
from triplewire.read.rdf.split import too_many


def check_limits(publications: Iterable[Publication], settings: Settings) -> None:
    """Raises `ReadError` for a publication with too many triples or too long a term."""
    for publication in publications:
        if len(publication.triples) > settings.max_triples:
            raise too_many(settings)
        for triple in publication.triples:
            for term in triple:
                if isinstance(term, Literal):
                    check_length("literal", term.lexical, settings.max_literal_bytes, "max_literal_bytes")
                elif isinstance(term, IRI):
                    check_length("IRI", term.value, settings.max_iri_bytes, "max_iri_bytes")
