"""Which hub pushes a feed: the discovery of WebSub (W3C Recommendation of 23 January 2018, section 4).

The header Link comes first; where it names no hub, the link elements of a feed, or of the head of a page.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin

_HEAD = 1 << 18  # characters of a document that are looked at
_LINK = re.compile(r"<([^<>]*)>((?:[^,\"]|\"(?:[^\"\\]|\\.)*\")*)")  # RFC 8288, section 3
_RELATION = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)
_ITEMS = ("item", "entry", "body")  # where what is said of the feed itself has ended


class Offer(NamedTuple):
    """A feed that hubs push: their addresses, and the one that the feed has for them."""

    hubs: tuple[str, ...]
    topic: str


def offer_of(link: str, body: bytes, address: str) -> Offer | None:
    """What a document offers that came from an address with this header Link; None for nothing."""
    links = [(target, relation) for target, text in _LINK.findall(link) for relation in _relations(text)]
    if not any(relation == "hub" for _, relation in links):
        reader = _Links()
        reader.feed(body[:_HEAD].decode("utf-8", "replace"))
        links = reader.links
    hubs = dict.fromkeys(urljoin(address, target) for target, relation in links if relation == "hub")
    topic = next((urljoin(address, target) for target, relation in links if relation == "self"), "")
    return Offer(tuple(hubs), topic) if hubs and topic else None


def _relations(parameters: str) -> list[str]:
    """The relations of one link: of several parameters `rel`, the first counts (RFC 8288, section 3.3)."""
    relation = _RELATION.search(parameters)
    return (relation[1] or relation[2] or "").lower().split() if relation else []


class _Links(HTMLParser):
    """The link elements of a page or of a feed, whatever its prefix for Atom, up to the first item. It reads any text,
    and resolves no entity but those of characters."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self._has_ended = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        name = tag.rpartition(":")[2]
        if name in _ITEMS:
            self._has_ended = True
        if name == "link" and not self._has_ended:
            values = dict(attrs)
            self.links += [
                ((values.get("href") or "").strip(), relation)
                for relation in (values.get("rel") or "").lower().split()
                if values.get("href")
            ]
