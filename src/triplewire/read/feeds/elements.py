"""Finds what feedparser drops or flattens in a feed's items: elements of unknown namespaces, and authors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from triplewire.read.feeds.items import CONTENT, DC, RSS

# Namespaces that are mapped by `triplewire.read.feeds.rss_atom`: RSS and Atom in all their versions, XHTML, content.
KNOWN = frozenset(
    {
        "",
        CONTENT,
        RSS,
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss2",
        "http://blogs.law.harvard.edu/tech/rss",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://purl.org/atom/ns#",
        "http://purl.org/rss/1.0/modules/rss091#",
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "http://www.w3.org/2005/atom",
    }
)
MAPPED_DC = frozenset({"author", "creator", "date", "description", "language", "subject", "title"})
_AUTHORS = frozenset({"author", "creator"})
_ITEMS = frozenset({"item", "entry"})


def is_unknown(namespace: str, local: str) -> bool:
    """Does an element of this name become a triple of its own?"""
    if namespace == DC:
        return local not in MAPPED_DC
    return namespace.lower() not in KNOWN


@dataclass(slots=True)
class Elements:
    """The elements of one item: (namespace + local name, text) of the unknown ones, and the texts of RSS and DC
    authors."""

    unknown: list[tuple[str, str]] = field(default_factory=list)
    authors: list[str] = field(default_factory=list)


def item_elements(data: bytes) -> list[Elements] | None:
    """The elements of each item, in order; None if the feed is ill-formed.

    Elements inside unknown elements count as well, elements inside known ones (XHTML content) do not.
    """
    walk = _Walk()
    try:
        walk.parser.Parse(data, True)
    except expat.ExpatError:
        return None
    return walk.items


def person(text: str) -> str:
    """The name in `mail@host (Name)` or `Name <mail@host>`; the text itself where it is neither."""
    match = re.fullmatch(r"[^\s()]+@[^\s()]+\s*\(([^()]+)\)", text) or re.fullmatch(
        r"([^<>]+?)\s*<[^\s<>]+@[^\s<>]+>", text
    )
    return match[1].strip() if match else text


class _Walk:
    """An Expat parser that collects the elements of each item."""

    def __init__(self) -> None:
        self.items: list[Elements] = []
        self.parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._item_depth = 0  # depth of the open item, 0 outside of one
        self._known_depth = 0  # depth of the open known child of an item
        self._depth = 0
        self._open: list[tuple[str, list[str]]] = []

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        namespace, _, local = name.rpartition(" ")
        if not self._item_depth:
            if local.lower() in _ITEMS and namespace.lower() in KNOWN:
                self._item_depth = self._depth
                self.items.append(Elements())
        elif not self._known_depth:
            if is_unknown(namespace, local) or (namespace in (DC, "") and local.lower() in _AUTHORS):
                self._open.append((namespace + local, []))
            else:
                self._known_depth = self._depth

    def _text(self, text: str) -> None:
        if self._open and not self._known_depth:
            self._open[-1][1].append(text)

    def _end(self, name: str) -> None:
        if self._depth == self._item_depth:
            self._item_depth = 0
        elif self._depth == self._known_depth:
            self._known_depth = 0
        elif self._open and not self._known_depth:
            predicate, texts = self._open.pop()
            text = "".join(texts).strip()
            if text and predicate.removeprefix(DC).lower() in _AUTHORS:
                self.items[-1].authors.append(person(text))
            elif text:
                self.items[-1].unknown.append((predicate, text))
        self._depth -= 1
