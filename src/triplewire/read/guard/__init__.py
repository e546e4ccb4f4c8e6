"""Checks of a document before any parser of RDF or feeds sees it. One file for each family of syntaxes.

A refusal is a `ReadError` that says what, where (line and column), why, and which setting allows more. Limits on terms
and triples are counted while the parser delivers them: `triplewire.read.rdf.parse`.
"""

from __future__ import annotations

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.read.decoded import Syntax
from triplewire.read.guard.texts import check_contexts, check_json, check_turtle, json_terms
from triplewire.read.guard.xml import check_feed, check_rdf_xml

__all__ = ["check_contexts", "check_feed", "check_json", "check_rdf_xml", "check_size", "check_turtle", "json_terms"]


def check_size(data: bytes, syntax: Syntax, settings: Settings) -> None:
    """Refuse a document that is longer than its syntax may be."""
    if syntax in (Syntax.N_QUADS, Syntax.TRIG):
        limit, setting = settings.max_input_bytes, "max_input_bytes"
    else:
        limit, setting = settings.max_document_bytes, "max_document_bytes"
    if len(data) > limit:
        what = f"the {syntax.value} document has {len(data):,} bytes, the limit is {limit:,}"
        raise ReadError(what, remedy=f"raise {setting}")
