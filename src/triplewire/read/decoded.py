"""The syntaxes that are read, and what the parsing process makes of a document.

It makes publications (or the documents inside it), and a problem for each part that is missing or mended. Which syntax
a document is in: `triplewire.read.sniff`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a document that was left out, or (a warning) one that was mended. `subject` names the part; "" stands
    for the document."""

    error: ReadError
    subject: str = ""
    is_warning: bool = False

    def refusal(self, document: str) -> Refusal:
        """The row about it, for wherever refusals go. `document` is the name or the IRI of the document."""
        return Refusal.of("warning" if self.is_warning else "publication", self.subject or document, self.error)


def warning(what: str, line: int = 0, column: int = 0) -> Problem:
    """A problem that leaves nothing out, but what the syntax itself leaves out."""
    return Problem(ReadError(what, line=line, column=column), is_warning=True)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The publications of a document, and its problems."""

    publications: list[Publication]
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Embedded:
    """A document inside a file: its syntax, its bytes, line and column of the file at which it begins (0 where the file
    has no lines), and the base of its relative IRIs where the file states one."""

    syntax: Syntax
    data: bytes
    line: int = 0
    column: int = 0
    base: str = ""

    def place(self, error: ReadError) -> None:
        """Tell the place of an error in the document as one in the file."""
        error.column = self.line and error.column and error.column + (self.column - 1 if error.line <= 1 else 0)
        error.line = self.line and self.line + max(error.line - 1, 0)


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
    HTML = "HTML page"  # it and those below hold documents of the syntaxes above: `triplewire.read.embedded`
    PDF = "PDF"
    XMP = "XMP"  # a picture, or XML around RDF/XML


CONTAINERS = frozenset([Syntax.HTML, Syntax.PDF, Syntax.XMP])
"""Files that hold documents."""
