"""Documents of RDF inside other files. Runs in the parsing process.

They are JSON-LD in pages of HTML (JSON-LD 1.1, section 7), XMP in pictures, in SVG and in files of its own (ISO
16684-1), and metadata of PDF (ISO 32000-2, 14.3). What is found is handed back (`triplewire.read.documents` has it read
as any document). All it says is one publication.
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urljoin

from triplewire.errors import ReadError
from triplewire.model.terms import XSD
from triplewire.read.charsets import HEAD, by_first_bytes, decoded, known
from triplewire.read.decoded import Embedded, Syntax
from triplewire.read.guard.texts import line_and_column
from triplewire.read.process.frames import Request

_CHARSET = re.compile(rb"""<meta[^<>]{0,200}?charset\s*=\s*["']?\s*([\w:.-]+)""", re.IGNORECASE)
_RDF = re.compile(rb"<((?:[A-Za-z_][\w.-]{0,31}:)?RDF)(?=[\s>])")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_ENTITY = re.compile(rb"""<!ENTITY\s+([\w.-]+)\s+["']([^"'<>&%]{0,200})["']\s*>""")  # as Illustrator names namespaces
_REFERRED = re.compile(rb"""(?<=["'])&([\w.-]+);(?=["'])""")
_DECLARED = re.compile(rb"""\sxmlns:([\w.-]+)\s*=\s*(?:"[^"<>]*"|'[^'<>]*')""")
_BEFORE = 1 << 16  # bytes before the element rdf:RDF, in which the elements around it declare namespaces

MOST = 1_000
"""Documents of one file."""

_DC, _PDF, _XMP = "http://purl.org/dc/elements/1.1/", "http://ns.adobe.com/pdf/1.3/", "http://ns.adobe.com/xap/1.0/"
INFORMATION = {
    "title": _DC + "title",
    "author": _DC + "creator",
    "subject": _DC + "description",
    "keywords": _PDF + "Keywords",
    "creator": _XMP + "CreatorTool",
    "producer": _PDF + "Producer",
    "creation_date": _XMP + "CreateDate",
    "modification_date": _XMP + "ModifyDate",
}
"""Entries of a PDF's information dictionary, by pypdf's names, and the properties that XMP has for them."""


def in_html(request: Request) -> Iterator[Embedded]:
    """The JSON-LD in the script elements of a page; `<base>` holds for it."""
    from selectolax.lexbor import LexborHTMLParser  # most documents are no pages, here as below

    encoding, data = by_first_bytes(request.data)
    has_mark = len(data) < len(request.data)  # a byte order mark, which what is stated does not change
    if not has_mark and not encoding and (stated := _CHARSET.search(data, 0, HEAD)):
        encoding = known(stated[1].decode("ascii", "replace"))
    text = data.decode(encoding or "utf-8", "replace")
    page = LexborHTMLParser(text)
    element = page.css_first("base[href]")
    base = request.base or request.document
    if element is not None and (stated_base := urljoin(base, (element.attributes["href"] or "").strip())):
        base = base if stated_base.startswith(("data:", "javascript:")) else stated_base  # as browsers do
    begin = 0
    for script in page.css("script"):
        kind, content = (script.attributes.get("type") or "").partition(";")[0].strip().lower(), script.text()
        begin = max(begin, text.find(content, begin))  # as the page has it, but where it has NUL or carriage returns
        if kind == "application/ld+json" and content.strip():
            place = text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin)
            yield Embedded(Syntax.JSON_LD, content.encode("utf-8", "replace"), *place, base)


def in_xmp(request: Request) -> Iterator[Embedded]:
    """The first element rdf:RDF of a file, wherever it is: packets of XMP are made to be found so (ISO 16684-1, 7.3).
    Namespaces that elements around it declare are declared in it."""
    yield from _packet(request.data)


def _packet(data: bytes) -> Iterator[Embedded]:
    encoding, head = by_first_bytes(data[:HEAD])
    if head.decode(encoding or "latin-1", "ignore").lstrip().startswith("<"):  # a text, as SVG, in any encoding
        data = decoded(data).text.encode("utf-8", "replace")
        data = _COMMENT.sub(lambda comment: re.sub(rb"[^\n]", b" ", comment[0]), data)
    begin = _RDF.search(data)
    end = _end(data, begin) if begin else -1
    if begin is None or end < 0:
        return
    entities = dict(_ENTITY.findall(data, max(0, begin.start() - _BEFORE), begin.start()))
    tag_end = data.find(b">", begin.end())
    own = {declared[1] for declared in _DECLARED.finditer(data, begin.end(), tag_end)}
    before = max(0, begin.start() - _BEFORE)
    around = {declared[1]: declared[0] for declared in _DECLARED.finditer(data, before, begin.start())}
    inherited = b"".join(text for name, text in around.items() if name not in own)
    is_text = data.lstrip()[:1] == b"<"
    place = line_and_column(data, begin.start()) if is_text else (0, 0)
    element = begin[0] + inherited + data[begin.end() : end]
    if entities:
        element = _REFERRED.sub(lambda name: entities.get(name[1], name[0]), element)
    yield Embedded(Syntax.RDF_XML, element, *place)


def _end(data: bytes, begin: re.Match[bytes]) -> int:
    """Where the element ends that begins there, which may hold others of its name; -1 where it does not."""
    depth = 0
    for tag in re.finditer(rb"<(/?)" + re.escape(begin[1]) + rb"(?=[\s/>])[^<>]*?(/?)>", data[begin.start() :]):
        depth += 0 if tag[2] else -1 if tag[1] else 1
        if depth == 0:
            return begin.start() + tag.end()
    return -1


def in_pdf(request: Request) -> Iterator[Embedded]:
    """The information dictionary of a PDF, as plain literals, and its packet of XMP."""
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it mends is not ours to tell
    try:
        reader = pypdf.PdfReader(io.BytesIO(request.data))
        if reader.is_encrypted:
            raise ReadError("this PDF is encrypted", remedy="save it without a password")
        says: dict[str, Any] = {"@id": request.base or request.document}
        says.update(_information(reader.metadata))
        metadata = reader.root_object.get("/Metadata")
        packet = b"" if metadata is None else metadata.get_object().get_data()
    except (ReadError, MemoryError):
        raise
    except Exception as error:  # whatever pypdf comes upon; its messages hold addresses of objects
        raise ReadError(f"this PDF is damaged, or not meant to be read ({type(error).__name__})") from None
    if len(says) > 1:
        yield Embedded(Syntax.JSON_LD, json.dumps(says).encode())
    yield from _packet(packet)


def _information(metadata: Any) -> Iterator[tuple[str, Any]]:
    for name, property in INFORMATION.items() if metadata is not None else ():
        try:
            value = getattr(metadata, name)
        except ValueError:  # a date that is none
            continue
        if isinstance(value, datetime):
            yield property, {"@value": value.isoformat(), "@type": XSD + "dateTime"}
        elif value:
            yield property, str(value)


EXTRACTORS: dict[Syntax, tuple[Callable[[Request], Iterator[Embedded]], str]] = {
    Syntax.HTML: (in_html, "this is an HTML page without JSON-LD"),
    Syntax.PDF: (in_pdf, "this PDF says nothing about itself: it has neither XMP nor an information dictionary"),
    Syntax.XMP: (in_xmp, "there is no whole element rdf:RDF in it"),
}
"""The syntaxes of files that hold documents, and what is said of one that holds none."""


def embedded(request: Request) -> list[Embedded]:
    """The documents in a file. Raises `ReadError` where there are none."""
    extract, nothing = EXTRACTORS[request.syntax]
    documents = list(islice(extract(request), MOST + 1))
    if len(documents) > MOST:
        raise ReadError(f"it holds more than {MOST:,} documents")
    if not documents:
        raise ReadError(nothing, remedy="give a feed or an RDF document" if request.syntax is Syntax.HTML else "")
    return documents
