"""Parses an XML feed into a tree of elements, behind the guard.

An ill-formed one is made well-formed before, so that what it says is read, with all names as written. Feeds come in any
encoding (`triplewire.read.charsets`). The tree is that of Python's ElementTree, whose parser is Expat: it fetches
nothing, and its time is linear in the document.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.entities import name2codepoint
from xml.etree.ElementTree import Element, ParseError, XMLParser
from xml.sax.saxutils import escape, quoteattr

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.namespaces import RSS
from triplewire.read import charsets, guard
from triplewire.read.decoded import Problem, warning
from triplewire.read.feeds.markup import unwrapped
from triplewire.read.feeds.vocabulary import ATOM, HEAD_NAMES, ITEM_NAMES, WELL_KNOWN, is_feed_namespace
from triplewire.read.rdf.split import JOINED, NOTE, joined_in_xml, replaced_in_xml

_NAME_START = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u0131\u0391-\u03a1\u03a3-\u03ce\u0410-\u044f"
    "\u3041-\u3094\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
)
_PART = rf"[{_NAME_START}][{_NAME_START}0-9.-]*+"
_NAME = rf"{_PART}(?::{_PART})?+"  # of those that Expat knows, the usual ones
_QUOTED = r""""[^"<]*+"|'[^'<]*+'|"[^">]*+"|'[^'>]*+'"""
_TAG = re.compile(rf"<(/?)({_NAME})(?=[\s/>\ufffd])((?:[^<>\"']++|{_QUOTED})*+)>")
_BROKEN_TAG = re.compile(rf"<(/?)({_NAME})(?=[\s/<>\ufffd]|\Z)([^<>]*+)(>?+)")
_ATTRIBUTE = re.compile(rf"""({_NAME})(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++))|(?=[\s/]|\Z))""")
_EMPTY = re.compile(r"""(?:\A|[\s"'])/\s*\Z""")
_DOCTYPE = re.compile(r"""<!DOCTYPE[^\[<>]*+(?:\[[^\]]*+\]\s*+)?>""", re.IGNORECASE)
_REFERENCE = re.compile(rf"&(?:#([0-9]{{1,7}});|#[xX]([0-9a-fA-F]{{1,6}});|({_PART});)?")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PREDEFINED = frozenset({"lt", "gt", "amp", "apos", "quot"})
_VOID = frozenset({"area", "br", "col", "hr", "img", "input", "wbr"})  # HTML's elements without an end tag
_ENDS_ITSELF = frozenset({"dd", "dt", "li", "option", "p", "td", "tr"})  # of HTML: the next one ends it
_CHANNELS = frozenset({"channel", "feed", "rdf"})
_TEXTS = frozenset({"title", "link", "description", "summary", "content", "guid", "id", "pubdate", "updated"})
_LINES = frozenset({"title", "link", "guid", "id", "pubdate", "updated"})  # in which no element of a feed stands
_KNOWN = ITEM_NAMES | HEAD_NAMES | _TEXTS
_EXPANSION = 1024 * 1024  # characters that references to declared entities may add, or ten times the document
UNDECLARED = "urn:triplewire:prefix:"
"""Before the name of a prefix that a feed does not declare and that is not well known: its namespace."""


@dataclass(slots=True)
class _Open:
    """An element that is open: where its start tag begins in the source, and among the pieces of the result."""

    name: str
    start: int
    piece: int
    is_item: bool
    prefixes: dict[str, str] = field(default_factory=dict)  # that it declares

    @property
    def local(self) -> str:
        return _local(self.name)


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


class _Repair:
    """One repair: the pieces of the result, and the elements that are open. `entities` are those that the feed declares
    itself."""

    def __init__(self, text: str, entities: Mapping[str, str], max_depth: int) -> None:
        self._text = _ILLEGAL.sub("\ufffd", text)
        self._max_depth = max_depth
        self._entities = entities
        self._room = max(_EXPANSION, 10 * len(text))
        self._pieces: list[str] = []
        self._open: list[_Open] = []
        self._items: set[str] = set()  # the names of items so far, as written
        self._has_doctype = False
        self._has_begun = False  # a channel or an item came
        self._is_over = False  # the root's end tag came
        self._never_ends: set[str] = set()

    def result(self) -> tuple[str, ReadError | None]:
        """The feed as well-formed XML, and where it had been cut off, if so; the item it ended in is left out then.
        Raises `ReadError` where entities add too much text, or elements nest too deep."""
        at, text = 0, self._text
        while (start := text.find("<", at)) >= 0:
            self._characters(text[at:start])
            at = self._markup(start)
        self._characters(text[at:])
        cut = self._cut()
        while self._open:
            self._close()
        return "".join(self._pieces), cut

    def _markup(self, start: int) -> int:
        """Take what begins with `<` at `start`; returns where it ends."""
        text = self._text
        for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")):
            if text.startswith(opening, start):
                end = -1 if opening in self._never_ends else text.find(closing, start + len(opening))
                if end < 0:
                    self._never_ends.add(opening)
                    return start + len(opening)
                if opening == "<![CDATA[" and self._open:
                    self._pieces.append(escape(text[start + len(opening) : end]))
                return end + len(closing)
        if text.startswith("<!", start):
            doctype = None if self._has_doctype else _DOCTYPE.match(text, start)
            self._has_doctype = True  # there is one, before the root
            return doctype.end() if doctype else start + 2
        tag = _TAG.match(text, start) or _BROKEN_TAG.match(text, start)
        if tag is None or (text[tag.end() - 1] != ">" and _local(tag[2]) not in _KNOWN):
            self._characters("<")
            return start + 1
        if tag[1]:
            self._end(tag[2])
        else:
            self._start(tag[2], tag[3], start)
        return tag.end()

    def _start(self, name: str, written: str, start: int) -> None:
        attributes, prefixes = _attributes(written)
        namespace = prefixes.get(name.rpartition(":")[0]) or self._namespace(name.rpartition(":")[0])
        local = _local(name)
        # one of the same name, in a namespace of no feed, only says that an element of that namespace is open still
        is_item = name in self._items or (local in ITEM_NAMES and is_feed_namespace(namespace or ""))
        if local in HEAD_NAMES and any(element.is_item for element in self._open):
            return  # no feed begins within an item: the tag is not where it belongs
        self._has_begun = self._has_begun or is_item or local in _CHANNELS
        if is_item:
            self._items.add(name)
            while len(self._open) > 1 and self._open[-1].local not in HEAD_NAMES:
                self._close()
        elif self._open and (
            (name in _ENDS_ITSELF and self._open[-1].name == name)
            or (local in _TEXTS and self._open[-1].local in _LINES)
        ):
            self._close()
        if len(self._open) >= self._max_depth:
            line = self._text.count("\n", 0, start) + 1
            raise ReadError(f"elements nest deeper than {self._max_depth}", line=line, remedy="raise max_xml_depth")
        element = _Open(name, start, len(self._pieces), is_item, prefixes)
        self._open.append(element)
        for used in (name, *attributes):
            prefix = used.rpartition(":")[0]
            if prefix and prefix not in ("xml", "xmlns") and self._namespace(prefix) is None:
                prefixes[prefix] = WELL_KNOWN.get(prefix.lower(), UNDECLARED + prefix)
                attributes["xmlns:" + prefix] = prefixes[prefix]
        self._pieces.append("<" + name)
        self._pieces += [f" {key}={quoteattr(self._resolved(value))}" for key, value in attributes.items()]
        self._pieces.append(">")
        if (name in _VOID or _EMPTY.search(written)) and len(self._open) > 1:
            self._close()

    def _namespace(self, prefix: str) -> str | None:
        """What a prefix stands for here; None if it is not declared."""
        return next((outer.prefixes[prefix] for outer in reversed(self._open) if prefix in outer.prefixes), None)

    def _end(self, name: str) -> None:
        """Close the element of that name, and what is open within it; an end tag without a start counts nothing."""
        number = max((n for n, outer in enumerate(self._open) if outer.name.lower() == name.lower()), default=-1)
        if number < 0:
            return
        while len(self._open) > max(number, 1):
            self._close()
        self._is_over = self._is_over or number == 0

    def _close(self) -> None:
        self._pieces.append(f"</{self._open.pop().name}>")

    def _cut(self) -> ReadError | None:
        """Is the document cut off? The item that it ends in is taken out."""
        if self._is_over or not self._open:
            return None
        number = next((n for n, element in enumerate(self._open) if element.is_item), None)
        if number is not None:
            item = self._open[number]
            del self._pieces[item.piece :], self._open[number:]
            line = self._text.count("\n", 0, item.start) + 1
            what = "the feed ends within this item, as a download does that was cut off"
            return ReadError(what, line=line, remedy="fetch it anew")
        if not self._has_begun or any(element.local in _CHANNELS for element in self._open):
            name = self._open[-1].name
            what = f"the feed ends before </{name}>, as a download does that was cut off: items may be missing"
            return ReadError(what, line=self._text.count("\n") + 1, remedy="fetch it anew")
        return None

    def _characters(self, text: str) -> None:
        if text and self._open:
            self._pieces.append(escape(self._resolved(text)))

    def _resolved(self, text: str) -> str:
        """The text with its references resolved; `&` that begins none stays."""
        return _REFERENCE.sub(self._reference, text) if "&" in text else text

    def _reference(self, match: re.Match[str]) -> str:
        name = match[3]
        if name is None:
            code = int(match[1]) if match[1] else int(match[2], 16) if match[2] else None
            if code is None:
                return match[0]
            return _ILLEGAL.sub("\ufffd", chr(code)) if code <= 0x10FFFF else "\ufffd"
        if name in self._entities:
            value = html.unescape(self._entities[name])
            self._room -= len(value)
            if self._room < 0:
                raise ReadError("entity references add too much text", remedy="write the text out")
            return _ILLEGAL.sub("\ufffd", value)
        return html.unescape(match[0]) if name in _PREDEFINED or name in name2codepoint else match[0]


def _attributes(written: str) -> tuple[dict[str, str], dict[str, str]]:
    """The attributes of a start tag, the first of each name, and the prefixes that they declare ("" for none)."""
    attributes: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(written):
        attributes.setdefault(match[1], next((value for value in match.groups()[1:] if value is not None), ""))
    prefixes: dict[str, str] = {}
    for name in list(attributes):
        if name == "xmlns" or name.startswith("xmlns:"):
            prefix = name[6:]
            if (not attributes[name] and prefix) or prefix in ("xml", "xmlns"):
                del attributes[name]  # XML declares none by an empty name, and these by itself
            else:
                prefixes[prefix] = attributes[name]
    return attributes, prefixes


# --- The tree --------------------------------------------------------------------------------------------------------

_XML = re.compile(r"\A<\?xml\s[^>]*+>")
_DECLARATION = "<?xml version='1.0' encoding='utf-8'?>"
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
    text, cut = _Repair(data.decode("utf-8", "replace"), entities, settings.max_xml_depth).result()
    if cut is not None:
        problems.append(Problem(cut))
    data = text.encode("utf-8")
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
    """The tree with its items in a namespace of RSS or Atom, also of a feed whose namespace is misspelt, and without
    CDATA sections that were escaped."""
    names = [(element, *split_name(element.tag)) for element in tree.root.iter()]
    for element, _, _ in names:
        element.text = unwrapped(element.text) if element.text else element.text
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
    """The feed in UTF-8 with a declaration that says so, without references to surrogates; and what is to be said of
    that. Line numbers stay."""
    decoded = charsets.decoded(data)
    text = _XML.sub(lambda match: _DECLARATION + "\n" * match[0].count("\n"), decoded.text, count=1)
    written = text.encode("utf-8", "replace")
    joined = joined_in_xml(written)
    data = replaced_in_xml(joined)
    told = [(JOINED, written, joined), (NOTE, joined, data)]
    return data, [*decoded.problems, *(warning(note) for note, before, after in told if before != after)]
