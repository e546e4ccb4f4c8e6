"""Names in query texts: resolution against a base, labels in a namespace. The predeclared prefixes are in `model`."""

from __future__ import annotations

from urllib.parse import quote, urljoin, urlsplit

from triplewire.model.namespaces import PREDECLARED as PREDECLARED
from triplewire.model.namespaces import RSS as RSS


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
