"""The syntaxes that are read. Which one a document is in: `triplewire.read.sniff`."""

from __future__ import annotations

import enum


class Syntax(enum.Enum):
    """A way to write publications down; the value is its name in messages."""

    N_QUADS = "N-Quads"  # N-Triples as well, which is N-Quads without graph names
    TURTLE = "Turtle"
    TRIG = "TriG"
    RDF_XML = "RDF/XML"
    JSON_LD = "JSON-LD"
    RSS_1 = "RSS 1.0"  # a feed that is RDF/XML
    FEED = "XML feed"  # RSS 0.9x and 2.0, Atom, and what feedparser makes of worse
    JSON_FEED = "JSON Feed"
