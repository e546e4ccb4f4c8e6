"""The namespaces and properties that feeds are mapped to, and the namespaces that feeds are written in."""

from __future__ import annotations

from triplewire.model.namespaces import PREDECLARED, RSS
from triplewire.model.terms import IRI

DC = PREDECLARED["dc"]
DCTERMS = PREDECLARED["dcterms"]
CONTENT = PREDECLARED["content"]
GEO = PREDECLARED["geo"]
GEORSS = "http://www.georss.org/georss/"
ENC = "http://purl.oclc.org/net/rss_2.0/enc#"
XHTML = "http://www.w3.org/1999/xhtml"
XML = "http://www.w3.org/XML/1998/namespace"
RELATION = "http://www.iana.org/assignments/relation/"
"""An Atom link's `rel` is a name below this (RFC 4287, 4.2.7.2)."""
JSON_FEED = "https://jsonfeed.org/version/1.1#"
"""Members of a JSON Feed that have no counterpart in other feeds become properties below this."""

ITEM, CHANNEL = IRI(RSS + "item"), IRI(RSS + "channel")
TITLE, LINK, DESCRIPTION = IRI(RSS + "title"), IRI(RSS + "link"), IRI(RSS + "description")
ENCODED = IRI(CONTENT + "encoded")
CREATOR, CONTRIBUTOR, RIGHTS = IRI(DC + "creator"), IRI(DC + "contributor"), IRI(DC + "rights")
DATE, SUBJECT, LANGUAGE = IRI(DC + "date"), IRI(DC + "subject"), IRI(DC + "language")
FORMAT, SOURCE = IRI(DC + "format"), IRI(DC + "source")
DC_TITLE, DC_DESCRIPTION = IRI(DC + "title"), IRI(DC + "description")
IS_PART_OF, CHANNEL_TITLE, CHANNEL_DESCRIPTION = (IRI(DCTERMS + n) for n in ("isPartOf", "title", "description"))
CREATED, ISSUED, MODIFIED, VALID = (IRI(DCTERMS + n) for n in ("created", "issued", "modified", "valid"))
AGENT, OTHER_AGENT = IRI(DCTERMS + "creator"), IRI(DCTERMS + "contributor")
TOPIC, FROM, ELSEWHERE = IRI(DCTERMS + "subject"), IRI(DCTERMS + "source"), IRI(DCTERMS + "hasFormat")
PAGE, NAME, MAILBOX, HOMEPAGE = (IRI(PREDECLARED["foaf"] + name) for name in ("page", "name", "mbox", "homepage"))
LABEL = IRI(PREDECLARED["rdfs"] + "label")
VALUE = IRI(PREDECLARED["rdf"] + "value")
SCHEME = IRI(PREDECLARED["skos"] + "inScheme")
ENCLOSURE, ENCLOSURE_LENGTH, ENCLOSURE_TYPE = IRI(ENC + "enclosure"), IRI(ENC + "length"), IRI(ENC + "type")
ENCLOSURE_ADDRESS = IRI(ENC + "url")

FEED_NAMESPACES = frozenset(
    {
        "",
        RSS,
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss2",
        "http://blogs.law.harvard.edu/tech/rss",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://my.netscape.com/publish/formats/rss-0.91.dtd",
        "http://purl.org/atom/ns#",
        "http://purl.org/net/rss1.1#",
        "http://purl.org/rss/1.0/modules/rss091#",
        "http://www.w3.org/2005/atom",
    }
)
"""The namespaces, in lower case, of RSS and Atom in all their versions."""

ATOM_NAMESPACES = frozenset({"http://purl.org/atom/ns#", "http://www.w3.org/2005/atom"})
ATOM = "http://www.w3.org/2005/Atom"
ITEM_NAMES = frozenset({"item", "entry"})
HEAD_NAMES = frozenset({"channel", "feed", "rdf", "rss"})
"""The elements around items, in lower case."""

WELL_KNOWN = {
    **{prefix: PREDECLARED[prefix] for prefix in ("rdf", "rdfs", "foaf", "skos", "dc", "dcterms", "geo", "content")},
    "rss": RSS,
    "atom": ATOM,
    "xhtml": XHTML,
    "georss": GEORSS,
    "gml": "http://www.opengis.net/gml",
    "enc": ENC,
    "media": "http://search.yahoo.com/mrss/",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "admin": "http://webns.net/mvcb/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "cc": "http://web.resource.org/cc/",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "xlink": "http://www.w3.org/1999/xlink",
}
"""What a prefix stands for that a feed uses and does not declare."""


def spelt(namespace: str) -> str:
    """A well-known namespace as it is, whatever feeds vary of it: case, the slash at its end, the "s" of https; any
    other as it is written."""
    return _SPELT.get(_bare(namespace), namespace)


def _bare(namespace: str) -> str:
    return namespace.lower().rstrip("/").replace("https:", "http:", 1)


_SPELT = {_bare(namespace): namespace for namespace in WELL_KNOWN.values()}


def is_feed_namespace(namespace: str) -> bool:
    """Does RSS or Atom, in any version, use it?"""
    return namespace.lower() in FEED_NAMESPACES
