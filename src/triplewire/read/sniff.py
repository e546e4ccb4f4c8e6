"""Finds the syntax of a document by its content. The file name decides only where two syntaxes fit.

Three cases: a document whose every line reads as N-Triples is Turtle as well, so the name decides (`.ttl` and `.trig`
against all others). A document of comments and white space is an empty N-Quads file where the name says so. One that
begins with a name in angle brackets, as `<rss>`, and does not end with its end tag, is no XML where the name is one of
Turtle's family. What a recognised document may hold: `triplewire.read.guard`.
"""

from __future__ import annotations

import re

from triplewire.errors import ReadError
from triplewire.read.charsets import by_first_bytes
from triplewire.read.decoded import Syntax
from triplewire.read.feeds.vocabulary import is_feed_namespace

RDF_NAMESPACE = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RSS = re.compile(
    rb"""xmlns(?::([\w.-]+))?\s*=\s*["'](?:http://(?:channel|my)\.netscape\.com/rdf/simple/0\.9/|(http://purl\.org/rss/1\.0/))""",
    re.IGNORECASE,
)
PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"RIFF")
"""How files of PNG, JPEG, GIF, TIFF and WebP begin."""

_COMMENT = re.compile(rb"<!--(?:.*?-->|(.*))|<!\[CDATA\[(?:.*?\]\]>|(.*))", re.DOTALL)
_PROLOG = re.compile(rb"(?:\s++|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*+)(?::([\w.-]++))?+(\s[^>]*+)?+/?>")
_FEED_TAG = re.compile(rb"<(?:[\w.-]+:)?(?:rss|feed|channel|item|entry)[\s>/]", re.IGNORECASE)
_JSON_LD = re.compile(rb"ld\+json", re.IGNORECASE)
_HTML = re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_PART_TAG = re.compile(rb"<(?:[\w.-]+:)?(?:channel|item|entry)[\s>/]", re.IGNORECASE)
_CHANNEL = re.compile(rb"<(?:([\w.-]+):)?channel[\s>/]")
_FEED_ROOTS = {b"rss", b"feed", b"channel", b"rdf"}
_NODE_NAME = re.compile(rb"\s[\w.-]+:(?:about|ID|nodeID)\s*=")
_TURTLE_NAMES = (".ttl", ".trig", ".n3", ".nt", ".nq")

_JSON_OBJECT = re.compile(rb'\{\s*(?:"|\}\s*\Z)')
_JSON_ARRAY = re.compile(rb'\[\s*(?:[\[{"0-9tfn-]|\]\s*\Z)')
_BLANK = re.compile(rb"(?:\s++|#[^\r\n]*+)*+")
_NODE = re.compile(_BLANK.pattern + rb"(_:|<[A-Za-z][A-Za-z0-9+.-]*+://)")
_TURTLE_START = re.compile(rb"@|<|_:|[\[({]|[^\W\d_][\w.-]*\s*:|:|base\b|prefix\b|graph\b|version\b", re.IGNORECASE)
_DIRECTIVE = re.compile(rb"@(?:prefix|base|version)\b|(?:prefix|base|version)\s", re.IGNORECASE)
_IRI = rb"<[A-Za-z][A-Za-z0-9+.-]*+:[^<>\"\s]*+>"
_LINE = re.compile(
    rb"[ \t]*+(?:" + _IRI + rb"|_:\S++)[ \t]*+" + _IRI + rb"[ \t]*+"
    rb"(?:" + _IRI + rb'|_:[^\s<>"]++|"(?:[^"\\\r\n]++|\\.)*+"(?:@[A-Za-z0-9-]++|\^\^' + _IRI + rb")?+)"
    rb"[ \t]*+(?:" + _IRI + rb'|_:[^\s<>"]++)?+[ \t]*+\.[ \t]*+(?:#.*+)?+'
)
_SAMPLE, _SAMPLE_LINES = 1 << 18, 200
HEAD = _SAMPLE + 1
"""How many bytes of a longer document `begins_as_lines` needs."""


def sniff(data: bytes, name: str = "") -> Syntax:
    """The syntax of `data`, a whole document; `name` is the file name, if any. Raises `ReadError` if it is in none."""
    name = name.lower().removesuffix(".gz")
    if data.startswith(b"%PDF-"):
        return Syntax.PDF
    if data.startswith(PICTURES) and RDF_NAMESPACE in data:
        return Syntax.XMP
    view = ascii_view(data)
    start = _PROLOG.match(view)
    rest = start.end() if start else 0
    if view[rest : rest + 1] == b"<":
        if (syntax := _xml(view, rest, name)) is not None:
            return syntax
    elif rest and view.lstrip()[:5] == b"<?xml":
        return Syntax.FEED if _FEED_TAG.search(view) else Syntax.RDF_XML
    if _JSON_OBJECT.match(view, rest) or _JSON_ARRAY.match(view, rest):
        return Syntax.JSON_FEED if _is_json_feed(view) else Syntax.JSON_LD
    return _turtle(view, name)


def begins_as_lines(head: bytes, name: str = "") -> bool:
    """Does `sniff` call a document N-Quads, whatever follows its first HEAD bytes, `head`? False where more is needed.
    A document that begins with a blank node, or with an IRI that has "//", is neither XML nor JSON."""
    node = _NODE.match(head)
    return node is not None and _is_lines(head, node.start(1), name.lower().removesuffix(".gz"))


def ascii_view(data: bytes) -> bytes:
    """`data` without its byte order mark, transcoded where its encoding is no superset of ASCII. Only for sniffing, not
    for parsing."""
    encoding, rest = by_first_bytes(data)
    return rest.decode(encoding, "replace").encode() if encoding else rest


def _xml(view: bytes, start: int, name: str) -> Syntax | None:
    """The XML syntax of a document that begins with `<` at `start`, or None if that `<` opens an IRI."""
    if view.startswith(b"<!", start):
        root = re.compile(rb"<[A-Za-z_]").search(view, start)
        if _HTML.match(view, start) and not _FEED_TAG.search(view):
            return _page(view)
        if root is None:
            return Syntax.RDF_XML
        start = root.start()
    match = _ROOT.match(view, start)
    if match is None:
        if re.match(rb"<[A-Za-z_][\w.-]*(:[\w.-]+)?\s", view[start : start + 200]):
            return Syntax.FEED if _FEED_TAG.search(view) else Syntax.RDF_XML
        return None
    local = bytes(match[2] or match[1]).lower()
    # the end tag of a page may be left out
    is_page = local == b"html" and _JSON_LD.search(view) and not name.endswith(_TURTLE_NAMES)
    if not match[3] and not match[0].endswith(b"/>") and not is_page:
        closing = b"</" + match[0][1:]
        if local not in _FEED_ROOTS and closing not in view:
            return None
        if name.endswith(_TURTLE_NAMES) and not view.rstrip().endswith(closing):
            return None
    if local == b"rdf":
        return _rdf_or_feed(view)
    if local in _FEED_ROOTS and not _is_node(match, view):
        return Syntax.FEED
    if local in (b"svg", b"xmpmeta") and RDF_NAMESPACE in view:
        return Syntax.XMP
    if RDF_NAMESPACE in match[0]:
        return Syntax.RDF_XML
    if local == b"opml":
        remedy = "give the feeds that it lists; `pipeline run` polls them"
        raise ReadError("this is OPML, a list of feeds", remedy=remedy)
    if _FEED_TAG.search(view):
        return Syntax.FEED
    if local == b"html":
        return _page(view)
    if RDF_NAMESPACE in view:
        return Syntax.RDF_XML
    raise ReadError(f"this is XML, but neither RDF nor a feed: its root is <{match[1].decode('ascii', 'replace')}>")


def _page(view: bytes) -> Syntax:
    """A page with JSON-LD. Raises `ReadError` for others."""
    if _JSON_LD.search(view):
        return Syntax.HTML
    raise ReadError("this is an HTML page", remedy="give a feed or an RDF document")


def _is_node(root: re.Match[bytes], view: bytes) -> bool:
    """Is a root with a feed's name a node of RDF/XML: in a namespace of its own, and named, or without items in it?"""
    if RDF_NAMESPACE not in root[0]:
        return False
    prefix = b":" + re.escape(root[1]) if root[2] else b""
    namespace = re.search(b"\\sxmlns" + prefix + rb"""\s*=\s*["']([^"']*)""", root[0])
    if namespace is None or is_feed_namespace(namespace[1].decode("utf-8", "replace")):
        return False
    return _NODE_NAME.search(root[0]) is not None or _PART_TAG.search(view, root.end()) is None


def _rdf_or_feed(view: bytes) -> Syntax:
    """An rdf:RDF document that holds a channel of RSS is a feed. Comments and CDATA hold none, but where they never
    end, since ill-formed feeds are read."""
    namespaces = {match[1]: match[2] for match in _RSS.finditer(view)}
    if namespaces:
        for channel in _CHANNEL.finditer(_COMMENT.sub(lambda m: m[1] or m[2] or b"", view)):
            if channel[1] in namespaces:
                return Syntax.RSS_1 if namespaces[channel[1]] else Syntax.FEED
    if RDF_NAMESPACE not in view and _FEED_TAG.search(view):
        return Syntax.FEED
    return Syntax.RDF_XML


def _is_json_feed(view: bytes) -> bool:
    """A JSON Feed says so in its `version`; a tolerated one without has `items` and nothing of JSON-LD."""
    if re.search(rb'"version"\s*:\s*"https?:\\?/\\?/(?:www\.)?jsonfeed\.org\\?/version\\?/', view):
        return True
    return re.search(rb'"items"\s*:\s*\[', view) is not None and not re.search(rb'"@\w+"\s*:|"https?:[^"]*"\s*:', view)


def _turtle(view: bytes, name: str) -> Syntax:
    """The syntax of a document that is neither XML nor JSON. Raises `ReadError` where it is none of Turtle's family."""
    blank = _BLANK.match(view)
    rest = blank.end() if blank else 0
    if rest == len(view):
        return Syntax.N_QUADS if name.endswith(".nq") else Syntax.TRIG if name.endswith(".trig") else Syntax.TURTLE
    if not _TURTLE_START.match(view, rest):
        if _FEED_TAG.search(view, 0, 65536):
            return Syntax.FEED  # other text before the root, which feedparser skips
        remedy = "known: RDF/XML, Turtle, N-Triples, N-Quads, TriG, JSON-LD, RSS, Atom, JSON Feed"
        raise ReadError("the document is in no known syntax", line=view.count(b"\n", 0, rest) + 1, remedy=remedy)
    if _is_lines(view, rest, name):
        return Syntax.N_QUADS
    return Syntax.TRIG if b"{" in view else Syntax.TURTLE


def _is_lines(view: bytes, rest: int, name: str) -> bool:
    """Is a document of Turtle's family, whose first statement begins at `rest`, N-Quads or N-Triples? Where its name
    does not tell: are more than half of the first statements such lines, the first one among them?"""
    if name.endswith((".nt", ".nq")) and not _DIRECTIVE.match(view, rest):
        return True
    if name.endswith((".ttl", ".trig", ".n3")):
        return False
    lines = re.split(rb"[\r\n]+", view[:_SAMPLE], maxsplit=_SAMPLE_LINES)[:_SAMPLE_LINES]
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith(b"#")]
    if len(view) > _SAMPLE and len(lines) > 1 and len(lines) < _SAMPLE_LINES:
        lines.pop()  # cut off by the sample's end
    good = sum(_LINE.fullmatch(line) is not None for line in lines)
    return bool(lines) and (good > len(lines) / 2 and (_LINE.fullmatch(lines[0]) is not None or good >= 2))
