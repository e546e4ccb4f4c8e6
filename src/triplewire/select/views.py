"""Terms of a batch as Python objects, one at a time."""

from __future__ import annotations

from triplewire.encode.batch import Terms
from triplewire.model.terms import LANG_STRING, XSD_STRING, Literal
from triplewire.select.columns import to_text


def text_of(terms: Terms, term: int) -> str:
    """The text of a term."""
    return to_text(terms.text[terms.start[term] : terms.end[term]].tobytes())


def literal_of(terms: Terms, term: int) -> Literal:
    """A term that is a literal."""
    suffix = terms.suffixes[terms.suffix[term]]
    if suffix[:1] == "@":
        return Literal(text_of(terms, term), LANG_STRING, suffix[1:])
    return Literal(text_of(terms, term), suffix or XSD_STRING)
