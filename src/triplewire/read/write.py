"""Writes publications as N-Quads: each is a named graph whose name is its id. Reading: `triplewire.read.read`."""

from __future__ import annotations

import re

from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Term
from triplewire.read.names import id_iri

_SCOPED = re.compile(r"p[0-9]+\.")


def to_nquads(publication: Publication, number: int = 1) -> str:
    """One line a triple, in the publication's order, each once; "" for a publication without triples.

    A blank node's label is local to its publication, but in a file it names one node throughout. So labels are made
    distinct: `number` is the place of the publication in its file, from 1, and the labels of all but the first
    publication become `pNUMBER.label`.
    """
    graph = IRI(id_iri(publication.id))

    def written(term: Term) -> str:
        if isinstance(term, BlankNode) and (number > 1 or _SCOPED.match(term.label)):
            return f"_:p{number}.{term.label}"
        return str(term)

    return "".join(f"{written(s)} {p} {written(o)} {graph} .\n" for s, p, o in dict.fromkeys(publication.triples))
