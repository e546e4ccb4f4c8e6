"""A publication as N-Quads: a named graph whose name is the publication's id. The way back: `triplewire.read.read`."""

from __future__ import annotations

from triplewire.model.publication import Publication
from triplewire.model.terms import IRI
from triplewire.read.names import id_iri


def to_nquads(publication: Publication) -> str:
    """One line a triple, in the publication's order, each once; "" for a publication without triples."""
    graph = IRI(id_iri(publication.id))
    return "".join(f"{s} {p} {o} {graph} .\n" for s, p, o in dict.fromkeys(publication.triples))
