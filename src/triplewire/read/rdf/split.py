"""Splits statements into publications: by document and named graph, or by subject (semantics, section 1).

How feeds are split: `triplewire.read.feeds.items`. Also the lone surrogates of documents, halves of UTF-16 pairs that
JSON and XML can escape (Unicode 15, D75, D76).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.terms import BlankNode, Node, Triple
from triplewire.read.guard.texts import error_at

_COPIES = 10  # times its size that a document may have when it is split by subject

Statement: TypeAlias = tuple[Node | None, Triple]
"""A graph name (None is the default graph) and a triple."""


def by_graph(statements: Iterable[Statement], document: str, source: str, settings: Settings) -> list[Publication]:
    """One publication for each named graph, and one for the default graph where it is not empty."""
    graphs: dict[Node | None, dict[Triple, None]] = {}
    for graph, triple in statements:
        triples = graphs.setdefault(graph, {})
        triples[triple] = None
        if len(triples) > settings.max_triples:
            raise too_many(settings)
    return [Publication(graph_id(graph, document), tuple(triples), source) for graph, triples in graphs.items()]


def merged(parts: list[tuple[list[Publication], Container[str]]], settings: Settings) -> list[Publication]:
    """The publications of several documents, those of one id joined. Their blank nodes stay apart, but for those of
    the labels that are given for a document, which all documents share."""
    if len(parts) == 1:
        return parts[0][0]
    joined: dict[str, Publication] = {}
    for number, (publications, shared) in enumerate(parts):

        def renamed(term: Any, number: int = number, shared: Container[str] = shared) -> Any:
            if not isinstance(term, BlankNode):
                return term
            return BlankNode(f"d{'' if term.label in shared else number}-{term.label}")

        for publication in publications:
            triples = [Triple._make(map(renamed, triple)) for triple in publication.triples]
            before = joined.get(publication.id)
            whole = dict.fromkeys([*before.triples, *triples] if before else triples)
            if len(whole) > settings.max_triples:
                raise too_many(settings)
            notes = (*before.notes, *publication.notes) if before else publication.notes
            joined[publication.id] = replace(publication, triples=tuple(whole), notes=notes)
    return list(joined.values())


def too_many(settings: Settings) -> ReadError:
    """The error for a publication with more than `max_triples` triples."""
    return ReadError(f"a publication has more than {settings.max_triples:,} triples", remedy="raise max_triples")


def graph_id(graph: Node | None, document: str) -> str:
    """The id of a graph's publication: its name; if that is a blank node, the document's IRI and the label."""
    if graph is None:
        return document
    return f"{document}#{graph.label}" if isinstance(graph, BlankNode) else graph.value


def by_subject(triples: Iterable[Triple], document: str, source: str, settings: Settings) -> list[Publication]:
    """One publication for each subject IRI, in order of first occurrence.

    The triples of a blank node belong to every subject that refers to it. A blank node to which none refers is a
    publication of its own, with the document's IRI and its label as the id. Raises `ReadError` where copies of shared
    blank nodes make the document more than ten times as large.
    """
    about = grouped(triples)
    referred = {
        t.object for own in about.values() for t in own if isinstance(t.object, BlankNode) and t.object != t.subject
    }
    roots = [node for node in about if not isinstance(node, BlankNode) or node not in referred]
    seen: set[Node] = set()
    publications = []
    room = settings.max_triples + _COPIES * sum(map(len, about.values()))
    for root in roots + [node for node in about if isinstance(node, BlankNode)]:
        if root in seen:
            continue
        triples_of_root = closure(root, about)
        room -= len(triples_of_root)
        if len(triples_of_root) > settings.max_triples:
            raise too_many(settings)
        if room < 0:
            what = f"split by subject, shared blank nodes make it more than {_COPIES} times as large"
            raise ReadError(what, remedy="name the shared nodes by IRIs")
        seen.update(t.subject for t in triples_of_root if t.subject == root or isinstance(t.subject, BlankNode))
        publications.append(Publication(graph_id(root, document), triples_of_root, source))
    return publications


def grouped(triples: Iterable[Triple]) -> dict[Node, list[Triple]]:
    """Subject -> its triples, each once."""
    about: dict[Node, list[Triple]] = defaultdict(list)
    for triple in dict.fromkeys(triples):
        about[triple.subject].append(triple)
    return about


def closure(root: Node, about: dict[Node, list[Triple]]) -> tuple[Triple, ...]:
    """The triples of `root`, and of the blank nodes that can be reached from it through blank nodes."""
    waiting, seen, triples = [root], {root}, []
    while waiting:
        for triple in about.get(waiting.pop(), ()):
            triples.append(triple)
            if isinstance(triple.object, BlankNode) and triple.object not in seen:
                seen.add(triple.object)
                waiting.append(triple.object)
    return tuple(triples)


# --- Lone surrogates -------------------------------------------------------------------------------------------------

JOINED = "references to the halves of a surrogate pair were read as its character"
NOTE = "lone surrogates, which are no characters, were replaced by U+FFFD"
_LONE = re.compile("[\ud800-\udfff]")
_REFERENCE = re.compile(rb"<!\[CDATA\[|&#(?:[xX]0*+[dD][89a-fA-F][0-9a-fA-F]{2}|0*+5[5-7][0-9]{3});")
_HALF = rb"&#(?:[xX]0*+([dD][89a-fA-F][0-9a-fA-F]{2})|0*+(5[5-7][0-9]{3}));"
_PAIR = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|" + _HALF + _HALF, re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F])|.)", re.DOTALL)


def refuse_in_json(data: bytes, what: str) -> None:
    """Raises `ReadError` where a JSON text in UTF-8 escapes a lone surrogate. `what` names the syntax."""
    for match in _ESCAPE.finditer(data):
        if match[1]:
            escape = data[match.start() : match.start() + 6].decode("ascii", "replace")
            raise error_at(f"the {what} escape {escape} is half a surrogate pair, no character", data, match.start())


def joined_in_xml(data: bytes) -> bytes:
    """An XML feed in UTF-8 with one character reference for two to the halves of a surrogate pair, as programs write
    that take UTF-16 for Unicode. Byte positions stay."""
    return _PAIR.sub(_joined, data)


def _joined(match: re.Match[bytes]) -> bytes:
    high, low = (int(match[n] or b"0", 16) or int(match[n + 1] or b"0") for n in (1, 3))
    if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
        return match[0]
    written = b"%X;" % (0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00)
    return b"&#x" + written.rjust(len(match[0]) - 3, b"0")


def replaced_in_xml(data: bytes) -> bytes:
    """An XML feed in UTF-8 with U+FFFD for each character reference to a surrogate. Byte positions stay."""
    pieces, at, position = [], 0, 0  # `at`: what is before it is in the pieces
    while match := _REFERENCE.search(data, position):
        position = match.end()
        if match[0][:1] == b"<":
            position = data.find(b"]]>", position)
            if position < 0:
                break
            continue
        pieces += [data[at : match.start()], _replacement(match[0])]
        at = position
    return b"".join([*pieces, data[at:]]) if pieces else data


def _replacement(written: bytes) -> bytes:
    if written[2:3] in b"xX":
        return written[:-5] + b"FFFD;"
    return written[:-6] + b"65533;" if 0xD800 <= int(written[2:-1]) <= 0xDFFF else written


def replaced(value: Any) -> Any:
    """A text, or a value of JSON, with U+FFFD for each lone surrogate in its texts."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return list(map(replaced, value))
    if isinstance(value, dict):
        return {replaced(key): replaced(member) for key, member in value.items()}
    return value
