"""Qualifies the RDF attributes of early RSS 1.0: `<rdf:li resource="...">` becomes `<rdf:li rdf:resource="...">`.

RDF/XML (section 6.1.4) allows a reader to accept the unqualified ones; pyoxigraph does not.
"""

from __future__ import annotations

import re

_TAG = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<[A-Za-z_](?:"[^"]*+"|'[^']*+'|[^<>"'])*+>""", re.DOTALL
)
_ATTRIBUTE = re.compile(rb"""(\s)(about|resource|ID)(?=\s*=)|"[^"]*+"|'[^']*+'""")
_RDF = rb"""xmlns:([\w.-]+)\s*=\s*["']http://www\.w3\.org/1999/02/22-rdf-syntax-ns#["']"""


def qualified(data: bytes) -> bytes:
    """The well-formed document with `about`, `resource` and `ID` in RDF's namespace wherever they have no prefix."""
    prefix = re.search(_RDF, data)
    if prefix is None:
        return data
    name = prefix[1] + b":"

    def attribute(match: re.Match[bytes]) -> bytes:
        return match[1] + name + match[2] if match[2] else match[0]

    def tag(match: re.Match[bytes]) -> bytes:
        return match[0] if match[0][1:2] in b"!?" else _ATTRIBUTE.sub(attribute, match[0])

    return _TAG.sub(tag, data)
