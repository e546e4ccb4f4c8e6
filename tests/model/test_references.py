"""Resolution of IRI references: the examples of RFC 3986, section 5.4, and bases without slashes."""

from __future__ import annotations

import pytest

from triplewire.model.namespaces import label_iri
from triplewire.model.references import resolve

BASE = "http://a/b/c/d;p?q"

NORMAL = """
g:h g:h | g http://a/b/c/g | ./g http://a/b/c/g | g/ http://a/b/c/g/ | /g http://a/g | //g http://g
?y http://a/b/c/d;p?y | g?y http://a/b/c/g?y | #s http://a/b/c/d;p?q#s | g#s http://a/b/c/g#s
g?y#s http://a/b/c/g?y#s | ;x http://a/b/c/;x | g;x http://a/b/c/g;x | g;x?y#s http://a/b/c/g;x?y#s
. http://a/b/c/ | ./ http://a/b/c/ | .. http://a/b/ | ../ http://a/b/ | ../g http://a/b/g | ../.. http://a/
../../ http://a/ | ../../g http://a/g
"""
ABNORMAL = """
../../../g http://a/g | ../../../../g http://a/g | /./g http://a/g | /../g http://a/g | g. http://a/b/c/g.
.g http://a/b/c/.g | g.. http://a/b/c/g.. | ..g http://a/b/c/..g | ./../g http://a/b/g | ./g/. http://a/b/c/g/
g/./h http://a/b/c/g/h | g/../h http://a/b/c/h | g;x=1/./y http://a/b/c/g;x=1/y | g;x=1/../y http://a/b/c/y
g?y/./x http://a/b/c/g?y/./x | g?y/../x http://a/b/c/g?y/../x | g#s/./x http://a/b/c/g#s/./x
g#s/../x http://a/b/c/g#s/../x | http:g http:g
"""
EXAMPLES = [
    tuple(pair.split()) for line in (NORMAL + ABNORMAL).splitlines() for pair in line.split("|") if pair.strip()
]


@pytest.mark.parametrize(("reference", "iri"), EXAMPLES)
def test_rfc_3986(reference: str, iri: str) -> None:
    assert resolve(reference, BASE) == iri


@pytest.mark.parametrize(
    ("reference", "base", "iri"),
    [
        ("", BASE, BASE),
        ("", BASE + "#f", BASE),
        ("#", BASE, BASE + "#"),  # an empty fragment or query is kept: namespaces end so
        ("x#", BASE, "http://a/b/c/x#"),
        ("x?", BASE, "http://a/b/c/x?"),
        ("g", "http://a", "http://a/g"),
        ("", "", ""),
        ("g", "", "g"),
        ("#f", "urn:x:doc", "urn:x:doc#f"),
        ("#f", "urn:x:doc#g", "urn:x:doc#f"),
        ("g", "urn:x:doc", "urn:x:g"),
        ("//[", BASE, "http://["),  # nothing is too odd to be resolved
        ("é", "http://a/ü/", "http://a/ü/é"),
    ],
)
def test_other_bases(reference: str, base: str, iri: str) -> None:
    assert resolve(reference, base) == iri


def test_labels() -> None:
    assert label_iri("Arno Jacobsen", "http://x/") == "http://x/Arno%20Jacobsen"
    assert label_iri("a#b", "http://x/") == "http://x/a#b"
    assert label_iri("a", "") == ""
