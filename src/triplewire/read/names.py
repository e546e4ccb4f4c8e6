"""Identifiers: the IRI of a document, and an IRI for any publication id (semantics, section 1)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

INPUT = "urn:triplewire:input"
STDIN = "urn:triplewire:stdin"

_ABSOLUTE = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\\ud800-\udfff]*')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: `C:` is a drive
_ILLEGAL = re.compile(r'[\x00-\x20<>"{}|^`\\\ud800-\udfff]')


def is_absolute(text: str) -> bool:
    """Is it an absolute IRI that holds only characters an IRI may hold?"""
    return _ABSOLUTE.fullmatch(text) is not None


def document_iri(source: str) -> str:
    """The IRI of the document that was read from `source`: a path, an IRI, or "" for bytes without a name."""
    if not source:
        return INPUT
    if source.startswith("file:"):
        path = "/" + source.removeprefix("file:").lstrip("/")
        return "file://" + quote(unquote(path, errors="surrogateescape"), errors="surrogateescape")
    if _SCHEME.match(source):
        return _ILLEGAL.sub(lambda m: quote(m[0], safe="", errors="surrogatepass"), source)
    return "file://" + quote(os.fsencode(Path(os.path.abspath(source)).as_posix()))


def id_iri(identifier: str) -> str:
    """`identifier` where it is an absolute IRI, else a percent-encoded URN."""
    if is_absolute(identifier):
        return identifier
    return "urn:triplewire:id:" + quote(identifier, safe="", errors="surrogatepass")
