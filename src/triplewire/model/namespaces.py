"""Predeclared prefixes, which query texts may use and output shortens IRIs by, and IRIs made from plain labels.

Resolution of references against a base: `triplewire.model.references`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import quote

RSS = "http://purl.org/rss/1.0/"

PREDECLARED: Mapping[str, str] = MappingProxyType(
    {
        "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "owl": "http://www.w3.org/2002/07/owl#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
        "foaf": "http://xmlns.com/foaf/0.1/",
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "dc": "http://purl.org/dc/elements/1.1/",
        "dcterms": "http://purl.org/dc/terms/",
        "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "org": "http://www.w3.org/ns/org#",
        "schema": "http://schema.org/",
        "schemas": "https://schema.org/",
        "rss": RSS,
        "content": "http://purl.org/rss/1.0/modules/content/",
        "prov": "http://www.w3.org/ns/prov#",
        "dcat": "http://www.w3.org/ns/dcat#",
        "as": "https://www.w3.org/ns/activitystreams#",
        "op": "urn:triplewire:operator:",
    }
)
"""Known in all languages without a declaration; a declaration of the same name wins. `op:` names operators."""

_LOCAL = re.compile(r"[A-Za-z_](?:[\w.-]*[\w-])?|", re.ASCII)
_NAMESPACE = re.compile(r".*[/#:]", re.DOTALL)
_PREFIX_OF = {namespace: prefix for prefix, namespace in PREDECLARED.items()}


def shorten(iri: str) -> str | None:
    """`iri` as a prefixed name under the predeclared prefixes, or None where none fits."""
    match = _NAMESPACE.match(iri)
    prefix = _PREFIX_OF.get(match[0]) if match else None
    if match is None or prefix is None or not _LOCAL.fullmatch(iri, match.end()):
        return None
    return f"{prefix}:{iri[match.end() :]}"


def label_iri(text: str, namespace: str) -> str:
    """The IRI of a bare label in a namespace, with illegal characters percent-encoded; "" without a namespace."""
    return namespace + _encoded(text) if namespace else ""


def beside(text: str, other: str, iri: str) -> str:
    """The IRI of the label `text` in the namespace in which the label `other` has the IRI `iri`; "" if there is
    none."""
    end = _encoded(other)
    return iri[: len(iri) - len(end)] + _encoded(text) if end and iri.endswith(end) else ""


def _encoded(text: str) -> str:
    return quote(text, safe="-._~!$&'()*+,;=:@/#%", errors="replace")
