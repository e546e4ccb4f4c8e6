"""Texts that may hold markup: HTML is reduced to its text for rss:description, and kept for content:encoded."""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from triplewire.read.feeds.vocabulary import XHTML, is_feed_namespace

# Only names that HTML knows are tags: `a < b` and `<project>` in a description are text.
_INLINE = (
    "a abbr acronym applet b bdi bdo big button cite code data del dfn em embed font i iframe img input ins kbd label "
    "map mark math meter noscript object option param picture q s samp select small source span strike strong sub sup "
    "svg textarea time tt u var video audio wbr"
)
_BLOCK = (
    "address article aside blockquote body br canvas caption center col colgroup dd details dir div dl dt fieldset "
    "figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html legend li link main menu meta "
    "nav ol optgroup p pre section summary table tbody td tfoot th thead title tr ul"
)
_BLOCKS = frozenset(_BLOCK.split())
_PHRASE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q s samp small span strike strong sub "
    "sup time tt u var"
)
_PHRASES = frozenset(_PHRASE.split())
_AROUND = frozenset({"center", "div", "h1", "h2", "h3", "h4", "h5", "h6", "p"})  # what stands around whole titles
_ALONE = frozenset({"br", "img", "wbr"})  # elements without an end tag that titles have
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_MOST_AROUND = 8  # of them, one in the other
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{'|'.join(sorted((_INLINE + ' ' + _BLOCK).split(), key=len, reverse=True))})"
    r"""(?=[\s/>])(?:"[^"<]*+"|'[^'<]*+'|[^<>"'])*+>""",
    re.IGNORECASE,
)
_BINARY = re.compile(r"(?!text/|.*(?:html|/xml|\+xml)).*/.*")  # Atom gives other media types in Base64
_HIDDEN = re.compile(r"<!--|<(script|style)(?=[\s/>])", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")


@dataclass(frozen=True, slots=True)
class Text:
    """A text as written, and without its markup. `is_markup` says that it was given as such, even if it has none."""

    written: str
    plain: str
    is_markup: bool = False


def construct(element: Element, *, is_atom: bool = False, is_markup: bool = False, is_title: bool = False) -> Text:
    """The text of an element of RSS, which may hold HTML, or of Atom, which says what it holds (`type`, `mode`)."""
    kind = element.get("type", "text").strip().lower()
    written = element.text or ""
    if len(element):
        around = element[0] if is_atom and _wraps(element) else element
        shown = text_of_html(inner(around, only_html=True).strip()).strip()
        return Text(inner(around).strip(), shown, is_markup or is_atom)
    if element.get("mode", "").strip().lower() == "base64" or (is_atom and _BINARY.fullmatch(kind)):
        written = _decoded(written)
    written = written.strip()
    if is_atom and "html" not in kind:
        return Text(written, written, not kind.startswith("text"))
    plain = (text_of_title if is_title and not is_atom else text_of_html)(written).strip()
    return Text(written, plain, is_markup or is_atom)


def inner(element: Element, *, only_html: bool = False) -> str:
    """The content of an element as XML; elements of XHTML without prefixes. With `only_html` the tags of other
    vocabularies (MathML, SVG) are left out, and their text stays."""
    pieces: list[str] = []
    _serialise_content(element, "", pieces, only_html)
    return "".join(pieces)


def _serialise_content(element: Element, outer: str, pieces: list[str], only_html: bool) -> None:
    pieces.append(escape(element.text or ""))
    for child in element:
        _serialise(child, outer, pieces, only_html)
        pieces.append(escape(child.tail or ""))


def _serialise(element: Element, outer: str, pieces: list[str], only_html: bool) -> None:
    """Write an element. `outer` is the namespace of the element around it."""
    namespace, _, local = element.tag.rpartition("}")
    namespace = namespace[1:].replace(XHTML, "")
    if only_html and not is_feed_namespace(namespace):
        _serialise_content(element, outer, pieces, only_html)
        return
    attributes = "".join(f" {name.rpartition('}')[2]}={quoteattr(value)}" for name, value in element.attrib.items())
    declared = f" xmlns={quoteattr(namespace)}" if namespace != outer and namespace else ""
    start = f"<{local}{declared}{attributes}"
    if not len(element) and not element.text:
        pieces.append(start + ("/>" if local not in _BLOCKS or local in ("br", "hr", "col") else f"></{local}>"))
        return
    pieces += [start, ">"]
    _serialise_content(element, namespace, pieces, only_html)
    pieces.append(f"</{local}>")


def _wraps(element: Element) -> bool:
    """Is all of its content in one `div`, as Atom wants XHTML?"""
    (child, *others) = element
    around = (element.text or "") + (child.tail or "")
    return not others and child.tag == f"{{{XHTML}}}div" and not around.strip()


def _decoded(text: str) -> str:
    """Base64 (Atom 0.3) decoded, where it is one of UTF-8."""
    try:
        return base64.b64decode(text, validate=False).decode("utf-8")
    except ValueError:
        return text


def unwrapped(text: str) -> str:
    """The text of one that is nothing but CDATA sections, which were escaped once more than they should be."""
    while "<![CDATA[" in text and not _CDATA.sub("", text).strip():
        text = "".join(_CDATA.findall(text))
    return text


def text_of_title(markup: str) -> str:
    """The text of a title of RSS, in which names of elements may be words: `The <details> element`. Markup is that of
    phrases, if it is complete or has attributes, and elements around the whole title."""
    bare = _COMMENT.sub("", _CDATA.sub(r"\1", markup)).strip()
    for _ in range(_MOST_AROUND):
        around = _TAG.match(bare)
        if around is None or around["name"].lower() not in _AROUND or not bare.endswith(f"</{around['name']}>"):
            break
        bare = bare[around.end() : bare.rindex("<")].strip()
    places, begun = set[int](), dict[str, list[int]]()
    for tag in _TAG.finditer(bare):
        name = tag["name"].lower()
        if tag["close"]:
            if name in _PHRASES and begun.get(name):
                places |= {begun[name].pop(), tag.start()}
            continue
        if name in _ALONE or (name in _PHRASES and "=" in tag[0]):
            places.add(tag.start())
        if name in _PHRASES:
            begun.setdefault(name, []).append(tag.start())
    if not places and bare == markup.strip():
        return html.unescape(markup) if _ENTITY.search(markup) else markup
    bare = _TAG.sub(lambda m: m[0] if m.start() not in places else " " if m["name"].lower() == "br" else "", bare)
    return " ".join(html.unescape(bare).split())


def text_of_html(markup: str) -> str:
    """The text of an HTML fragment, without tags, entities resolved and white space collapsed. Plain text stays."""
    bare = _without_hidden(_CDATA.sub(r"\1", markup))
    bare, tags = _TAG.subn(lambda m: " " if m["name"].lower() in _BLOCKS else "", bare)
    if not tags and bare == markup:
        return html.unescape(markup) if _ENTITY.search(markup) else markup
    return " ".join(html.unescape(bare).split())


def _without_hidden(markup: str) -> str:
    """The markup without comments, scripts and styles, in one pass. One that is never closed reaches to the end."""
    shown, position = [], 0
    while match := _HIDDEN.search(markup, position):
        shown.append(markup[position : match.start()])
        end = re.compile(rf"</{match[1]}\s*>" if match[1] else "-->", re.IGNORECASE).search(markup, match.end())
        if end is None:
            return "".join(shown)
        position = end.end()
    return "".join([*shown, markup[position:]])
