"""Parses an XML feed into a tree of elements, behind the guard; an ill-formed one is repaired before.

Feeds come in any encoding; feedparser finds out which. The tree is that of Python's ElementTree, whose parser is Expat:
it fetches nothing, and its time is linear in the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html.entities import name2codepoint
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLParser

from feedparser.encodings import convert_to_utf8

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.namespaces import RSS
from triplewire.read import guard
from triplewire.read.decoded import Problem, warning
from triplewire.read.feeds.repair import repaired
from triplewire.read.feeds.vocabulary import ATOM, HEAD_NAMES, ITEM_NAMES, is_feed_namespace
from triplewire.read.rdf.surrogates import NOTE, replaced_in_xml
from triplewire.read.sniff import ascii_view

_DECLARATION = b"<?xml version='1.0' encoding='utf-8'?>\n"
_DECLARATION_BYTES = 1024  # an XML declaration is not longer
_HTML_ENTITIES = {name: chr(code) for name, code in name2codepoint.items()}  # for documents whose type is elsewhere


@dataclass(frozen=True, slots=True)
class Tree:
    """A feed: its root element, the well-formed XML in UTF-8 that it was parsed from, and what was mended or lost."""

    root: Element
    data: bytes
    problems: list[Problem]

    @property
    def items(self) -> list[Element]:
        """The items, at any depth."""
        return [element for element in self.root.iter() if is_item(element)]


def is_item(element: Element) -> bool:
    """Is it an item of RSS or an entry of Atom?"""
    namespace, local = split_name(element.tag)
    return local.lower() in ITEM_NAMES and is_feed_namespace(namespace)


def split_name(tag: str) -> tuple[str, str]:
    """The namespace ("" for none) and the local name of an element or attribute."""
    namespace, _, local = tag[1:].rpartition("}") if tag[:1] == "{" else ("", "", tag)
    return namespace, local


def children(element: Element) -> Iterator[tuple[str, str, Element]]:
    """The namespace, local name and element of each child."""
    for child in element:
        yield *split_name(child.tag), child


def parse_tree(data: bytes, settings: Settings) -> Tree:
    """The tree of a feed. Raises `ReadError` for one that the guard refuses, or in which there is no element."""
    data, problems = _in_utf8(data)
    entities = guard.check_feed(data, settings)
    try:
        return _known(Tree(_parsed(data), data, problems))
    except ParseError as error:
        line, column = error.position
        reason = str(error).rpartition(": line ")[0] or str(error)
        problems.append(warning(f"ill-formed XML, read as far as it can be: {reason}", line, column + 1))
    mended = repaired(data.decode("utf-8", "replace"), entities, settings.max_xml_depth)
    if mended.cut is not None:
        problems.append(Problem(mended.cut))
    data = mended.text.encode("utf-8")
    try:
        guard.check_feed(data, settings)
        return _known(Tree(_parsed(data), data, problems))
    except ParseError as error:
        what = f"not well-formed XML, and it cannot be repaired: {error}"
        raise ReadError(what, line=line, column=column + 1) from None


def _parsed(data: bytes) -> Element:
    """The root element. Raises `ParseError`."""
    parser = XMLParser(encoding="utf-8")
    parser.entity.update(_HTML_ENTITIES)
    parser.feed(data)
    root: Element = parser.close()
    return root


def _known(tree: Tree) -> Tree:
    """The tree with its items in a namespace of RSS or Atom, also of a feed whose namespace is misspelt."""
    names = [(element, *split_name(element.tag)) for element in tree.root.iter()]
    heads = {namespace for _, namespace, local in names if local.lower() in HEAD_NAMES}
    items = {namespace: local.lower() for _, namespace, local in names if local.lower() in ITEM_NAMES}
    has_known = any(map(is_feed_namespace, items))
    for namespace, item in items.items():
        if is_feed_namespace(namespace) or not heads or (has_known and namespace not in heads):
            continue
        known = ATOM if item == "entry" else RSS
        for element, of, local in names:
            if of == namespace:
                element.tag = f"{{{known}}}{local}"
        what = f"the items are in the namespace {namespace!r}, which is none of RSS or Atom: read as if it were"
        tree.problems.append(warning(what))
    return tree


def _in_utf8(data: bytes) -> tuple[bytes, list[Problem]]:
    """The feed in UTF-8, as feedparser decodes it, without references to surrogates; and what is to be said of that."""
    result: dict[str, Any] = {}
    problems = []
    view = ascii_view(data)
    if view.startswith(b"<?") and b"?>" not in view[:_DECLARATION_BYTES]:
        data = b" " + view  # feedparser would look for the end of the declaration, again and again
    data, written = convert_to_utf8({}, data, result), data
    if data.startswith(_DECLARATION) and not ascii_view(written).startswith(b"<?xml"):
        data = data.removeprefix(_DECLARATION)  # a line that feedparser adds, which would shift all positions
    if result.get("bozo"):
        problems.append(warning(f"ill-formed XML: {result['bozo_exception']}"))
    data, written = replaced_in_xml(data), data
    if data != written:
        problems.append(warning(NOTE))
    return data, problems
