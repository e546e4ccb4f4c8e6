"""Whatever a reader gives, `to_nquads` writes, and N-Quads are read back equal.

The documents are of odd addresses, languages, types and characters.
"""

from __future__ import annotations

import json
import random
from xml.sax.saxutils import escape, quoteattr

import pytest

from triplewire.model.terms import RDF, XSD
from triplewire.read import read_document, to_nquads

ADDRESSES = (
    "http://a/1", "a b", "http://a b/", "http://[::1]/", "http://[x]/", "http://a:b:c/", "http://a/%zz", "urn:", "x:y",
    "http://a/\u00e9\ue000", "//a/b", "?q=<>", "#f#g", "mailto:a@b", "javascript:x()", "C:\\x", "http://a/\ufdd0",
    ":", "",
    "http://%41/", "http://a/{b}|c^`", "tag:a,2004:\"1\"",
)  # fmt: skip
TEXTS = (
    "",
    " ",
    "a\n\t\r b",
    "\\u0041",
    '"',
    "\u0085\u2028\ufffe",
    "\U0010ffff",
    "\x7f",
    "<b>x</b>",
    "&amp;#0;",
    "_:b .",
)
LANGUAGES = ("", "de", "PT-br", "x-klingon", "e_n", "abcdefghi", "en--ltr", "i-default")
TYPES = (
    RDF + "langString",
    XSD + "integer",
    "xsd:integer",
    "no type",
    "#t",
    RDF + "XMLLiteral",
    RDF + "HTML",
    XSD + "string",
)


def _rdf_xml(pick: random.Random) -> str:
    language = f" xml:lang={quoteattr(pick.choice(LANGUAGES))}" * pick.randrange(2)
    datatype = f" rdf:datatype={quoteattr(pick.choice(TYPES))}" * pick.randrange(2)
    return (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://e/" xml:lang={quoteattr(pick.choice(LANGUAGES))}>'
        f"<C rdf:about={quoteattr(pick.choice(ADDRESSES))} plain={quoteattr(pick.choice(TEXTS))}>"
        f"<p{language}{datatype}>{escape(pick.choice(TEXTS))}</p><q rdf:resource={quoteattr(pick.choice(ADDRESSES))}/>"
        "</C></rdf:RDF>"
    )


def _json_ld(pick: random.Random) -> str:
    value = {"@value": pick.choice(TEXTS)}
    value |= {"@type": pick.choice(TYPES)} if pick.randrange(2) else {}
    value |= {"@language": pick.choice(LANGUAGES)} if pick.randrange(2) else {}
    context = {"@language": pick.choice(LANGUAGES) or None, "t": {"@id": "http://e/t", "@type": pick.choice(TYPES)}}
    node = {"@id": pick.choice(ADDRESSES), "http://e/p": value, "t": "x", "http://e/q": {"@id": pick.choice(ADDRESSES)}}
    return json.dumps({"@context": context, **node})


def _rss(pick: random.Random) -> str:
    parts = "".join(
        f"<{name}>{escape(pick.choice(TEXTS))}</{name}>" for name in ("title", "description", "pubDate", "x")
    )
    address, domain, namespace = (quoteattr(pick.choice(ADDRESSES) or "urn:o") for _ in range(3))
    home, guid, link = (escape(pick.choice(ADDRESSES)) for _ in range(3))
    return (
        f"<rss xmlns:o={namespace}><channel><link>{home}</link><item><guid>{guid}</guid><link>{link}</link>{parts}"
        f"<enclosure url={address} length='1'/><category domain={domain}>c</category><o:p>v</o:p></item></channel>"
        "</rss>"
    )


def _atom(pick: random.Random) -> str:
    relation, language = quoteattr(pick.choice(ADDRESSES)), quoteattr(pick.choice(LANGUAGES))
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom" xml:base={quoteattr(pick.choice(ADDRESSES))} xml:lang={language}>'
        f"<link rel='self' href={quoteattr(pick.choice(ADDRESSES))}/><entry><id>{escape(pick.choice(ADDRESSES))}</id>"
        f"<link rel={relation} href={quoteattr(pick.choice(ADDRESSES))}/><title>{escape(pick.choice(TEXTS))}</title>"
        f"<author><name>n</name><uri>{escape(pick.choice(ADDRESSES))}</uri></author></entry></feed>"
    )


def _json_feed(pick: random.Random) -> str:
    item = {"id": pick.choice(ADDRESSES), "url": pick.choice(ADDRESSES), "title": pick.choice(TEXTS)}
    item |= {pick.choice(ADDRESSES): pick.choice(TEXTS), "attachments": {"url": pick.choice(ADDRESSES)}}
    return json.dumps(
        {"version": "https://jsonfeed.org/version/1.1", "feed_url": pick.choice(ADDRESSES), "items": [item]}
    )


@pytest.mark.parametrize("make", [_rdf_xml, _json_ld, _rss, _atom, _json_feed])
def test_what_is_read_is_written_and_read_again(make: object) -> None:
    pick, count = random.Random(60), 0
    for number in range(60):
        text = make(pick)  # type: ignore[operator]
        source = f"http://d/{number}"
        found = read_document(text.encode("utf-8"), source, on_refusal=lambda refusal: None)
        written = "".join(to_nquads(publication) for publication in found)
        again = read_document(written.encode("utf-8"), "again.nq") if written else []
        assert "".join(map(to_nquads, again)) == written, text
        count += bool(written)
    assert count > 3
