"""Queries and publications as documents with fields, for systems without joins: a publication is one document.

predicate p, any object              field "p", value p
any predicate, object o              field "o", value o
predicate p, object o                field "po", value p o
a word in a literal of predicate p   field "w" p, value the word; of any predicate: field "w"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.peers.serving import Query, Statement

Pair = tuple[str, str]
"""A field and its value."""


def wanted(query: Query) -> list[list[Pair]]:
    """What each tuple of a query asks for: the pairs of one tuple are to be there together. A tuple that any statement
    satisfies asks for nothing."""
    return [pairs for pairs in map(_of_tuple, query) if pairs]


def _of_tuple(wanted: Sequence[Any]) -> list[Pair]:
    _, predicate, value, *words = wanted
    any_predicate, any_object = predicate[0] in "?*", value[0] in "?*"
    if words:
        field = "w" if any_predicate else f"w{predicate}"
        return [(field, word) for word in words[0]]
    if any_predicate:
        return [] if any_object else [("o", value)]
    return [("p", predicate)] if any_object else [("po", f"{predicate} {value}")]


def given(statements: Sequence[Statement]) -> Iterator[Pair]:
    """The fields of a publication, a value at a time; equal ones may come again."""
    for _, predicate, value, words in statements:
        yield "p", predicate
        yield "o", value
        yield "po", f"{predicate} {value}"
        field = f"w{predicate}"
        for word in words or ():
            yield field, word
            yield "w", word
