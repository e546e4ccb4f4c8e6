"""Terms of a batch as Python objects, one at a time."""

from __future__ import annotations

from triplewire.clauses.node_tests.columns import to_text
from triplewire.encode.batch import Terms
from triplewire.model.packed import literal_with
from triplewire.model.terms import Literal


def text_of(terms: Terms, term: int) -> str:
    """The text of a term."""
    return to_text(terms.text[terms.start[term] : terms.end[term]].tobytes())


def literal_of(terms: Terms, term: int) -> Literal:
    """A term that is a literal."""
    return literal_with(text_of(terms, term), terms.suffixes[terms.suffix[term]])
