"""Calls with constants as text, and back: a JSON array of the operator's name and its arguments, each an array."""

from __future__ import annotations

import json

from triplewire.ir.evaluation.unknown import CallKey
from triplewire.model.terms import IRI, Literal


def text_of(key: CallKey) -> str:
    """An IRI is [value], a literal [lexical form, datatype, language]; an output is []."""
    terms = [
        [term.lexical, term.datatype, term.language] if isinstance(term, Literal)
        else [term.value] if isinstance(term, IRI) else []
        for term in key.arguments
    ]  # fmt: skip
    return json.dumps([key.operator, *terms], separators=(",", ":"))


def key_of(text: str | bytes) -> CallKey:
    """The call of a text. Raises `ValueError` or `TypeError` where it is none."""
    operator, *terms = json.loads(text)
    if not isinstance(operator, str) or not all(isinstance(part, str) for term in terms for part in term):
        raise ValueError("a call is a name and arrays of texts")
    return CallKey(
        operator, tuple([None if not term else IRI(*term) if len(term) == 1 else Literal(*term) for term in terms])
    )
