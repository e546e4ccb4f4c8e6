"""Identifiers: the IRI of a document (semantics, section 1); and publications as N-Quads.

There each is a named graph whose name is its id (`triplewire.model.references.id_iri`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

from triplewire.model.publication import Publication
from triplewire.model.references import PLAIN, id_iri, is_absolute, is_url
from triplewire.model.terms import IRI, BlankNode, Term

INPUT = "urn:triplewire:input"
STDIN = "urn:triplewire:stdin"

_SCOPED = re.compile(r"p[0-9]+\.")
_ILLEGAL = re.compile(rf"%(?![0-9A-Fa-f]{{2}})|[^{PLAIN}:@/?%]")


def document_iri(source: str) -> str:
    """The IRI of the document that was read from `source`: a path, an IRI, or "" for bytes without a name."""
    if not source:
        return INPUT
    if source.startswith("file:"):
        path = "/" + source.removeprefix("file:").lstrip("/")
        return "file://" + quote(unquote(path, errors="surrogateescape"), errors="surrogateescape")
    if is_url(source):
        return legal(source)
    return "file://" + quote(os.fsencode(Path(os.path.abspath(source)).as_posix()))


def legal(address: str) -> str:
    """`address` with everything percent-encoded that an IRI may not hold where it stands; brackets stay in a host."""
    host = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", address)
    start = host.end() if host and is_absolute(host[0]) else 0
    before, mark, fragment = address[start:].partition("#")
    return address[:start] + _encoded(before) + mark + _encoded(fragment.replace("#", "%23"))


def _encoded(text: str) -> str:
    """The text with illegal characters percent-encoded."""
    return _ILLEGAL.sub(lambda m: quote(m[0], safe="", errors="surrogatepass"), text)


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
