"""Names in query texts: the predeclared prefixes, expansion of prefixed names, resolution against a base."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import quote, urljoin, urlsplit

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
        "rss": RSS,
        "content": "http://purl.org/rss/1.0/modules/content/",
        "prov": "http://www.w3.org/ns/prov#",
        "dcat": "http://www.w3.org/ns/dcat#",
        "as": "https://www.w3.org/ns/activitystreams#",
        "op": "urn:triplewire:operator:",
    }
)
"""Known in all four languages without a declaration; a declaration of the same name wins. `op:` names operators."""


def resolve(reference: str, base: str) -> str:
    """An IRI reference against a base (RFC 3986, 5.2); without a base, as it stands."""
    if not base or urlsplit(reference).scheme:
        return reference
    if urlsplit(base).scheme in ("http", "https", "file", "ftp", ""):
        return urljoin(base, reference)
    # urljoin knows only hierarchical schemes: a URN base joins by its last / # or :
    if reference.startswith("#"):
        return base.partition("#")[0] + reference
    cut = max(base.rfind("/"), base.rfind("#"), base.rfind(":")) + 1
    return base[:cut] + reference


def label_iri(text: str, namespace: str) -> str:
    """The IRI of a bare label in a namespace: appended, with what an IRI cannot hold percent-encoded."""
    return namespace + quote(text, safe="-._~!$&'()*+,;=:@/#%") if namespace else ""
