"""Terms and verdicts from JSON, as in the SPARQL 1.1 Query Results JSON Format, section 3.2.2, and verdicts to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triplewire.model.terms import IRI, XSD_STRING, BlankNode, Literal, Term, term_to_json


def from_json(value: Any) -> Term:
    """The term that was written so. Raises `ValueError` where it is none."""
    kind = value.get("type") if isinstance(value, dict) else None
    texts: list[Any] = [value.get(name, "") for name in ("value", "xml:lang", "datatype")] if kind else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"no term of SPARQL JSON results: {value!r:.100}")
    text, language, datatype = texts
    if kind == "uri":
        return IRI(text)
    if kind == "bnode":
        return BlankNode(text)
    if kind in ("literal", "typed-literal"):
        return Literal.tagged(text, language) if language else Literal(text, datatype or XSD_STRING)
    raise ValueError(f"no term of SPARQL JSON results: {value!r:.100}")


def verdict_to_json(verdict: bool | Sequence[Sequence[Term]]) -> bool | list[list[dict[str, str]]]:
    """A truth, or rows of terms."""
    return verdict if isinstance(verdict, bool) else [[term_to_json(term) for term in row] for row in verdict]


def verdict_from_json(value: Any) -> bool | list[tuple[Term, ...]]:
    """A truth, or rows of terms. Raises `ValueError` where it is neither."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        raise ValueError(f"neither true, false nor a list of rows: {value!r:.100}")
    return [tuple([from_json(term) for term in row]) for row in value]
