"""Checks of arguments at public entry points: what is wrong becomes an `ArgumentError` that says what was expected.

A check is made once a call, before anything is changed. `where` names the function and the argument.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from typing import Any

from triplewire.errors import ArgumentError

_SHOWN = (str, bytes, int, float, bool, tuple, list)  # whose `repr` runs no foreign code at the top


def shown(value: object) -> str:
    """The value's type, and for plain types the value, shortened: for messages."""
    if value is None:
        return "None"
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name} {reprlib.repr(value)}" if kind in _SHOWN else name


def is_of_rdflib(value: object) -> bool:
    """Is it a graph or a term of RDFLib?"""
    return type(value).__module__.partition(".")[0] == "rdflib"


def refuse(where: str, wanted: str, value: object, remedy: str = "") -> ArgumentError:
    """The error that says that `wanted` was expected instead of the value."""
    if is_of_rdflib(value):
        remedy = 'a graph of RDFLib: read(graph.serialize(format="nt", encoding="utf-8"))'
    return ArgumentError(f"expected {wanted}, got {shown(value)}", source=where, remedy=remedy)


def expect(where: str, value: object, kinds: type | tuple[type, ...], wanted: str, remedy: str = "") -> None:
    """Raises `ArgumentError` where the value is of none of these types."""
    if not isinstance(value, kinds):
        raise refuse(where, wanted, value, remedy)


def expect_text(where: str, value: object, remedy: str = "") -> None:
    """Raises `ArgumentError` where the value is no `str`."""
    expect(where, value, str, "a text (str)", remedy)


def plain_text(text: str) -> str:
    """The same text as a `str` of no other class: others, as those of an `Enum`, may print, compare and encode as they
    like."""
    return text if type(text) is str else str.__str__(text)


def expect_plain(where: str, value: object, remedy: str = "") -> str:
    """The text as a plain one. Raises `ArgumentError` where the value is no `str`."""
    if not isinstance(value, str):
        raise refuse(where, "a text (str)", value, remedy)
    return plain_text(value)


def expect_path(where: str, value: object, remedy: str = "") -> None:
    """Raises `ArgumentError` where the value is no path of a file or folder."""
    expect(where, value, (str, os.PathLike), "a path (str or os.PathLike)", remedy)
    if "\0" in str(value):
        raise refuse(where, "a path without NUL characters", value, remedy)


def expect_callable(where: str, value: object) -> None:
    """Raises `ArgumentError` where the value is neither None nor a function."""
    if value is not None and not callable(value):
        raise refuse(where, "a function, or None", value)


def expect_texts(where: str, value: Any, wanted: str) -> None:
    """Raises `ArgumentError` where the value is neither None nor a mapping of texts to texts."""
    if value is None:
        return
    expect(where, value, Mapping, wanted)
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise refuse(where, wanted, key if not isinstance(key, str) else text)
