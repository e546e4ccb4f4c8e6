"""Checks JSON, Turtle and TriG before they are parsed.

Checked are UTF-8, depth, contexts that would have to be fetched, and constructs of RDF 1.2 (security page, J1 to J3,
J5). A NUL is a legal character in a Turtle string only.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from triplewire.config import Settings
from triplewire.errors import ReadError

_CONSTANT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|(NaN|-?Infinity)', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|[\[{]|[\]}]', re.DOTALL)
_TURTLE_TOKEN = re.compile(
    rb"'''(?:[^'\\]++|\\.|(?!''')')*'''"
    rb'|"""(?:[^"\\]++|\\.|(?!""")")*"""'
    rb"|'(?:[^'\\\r\n]++|\\.)*+'"
    rb'|"(?:[^"\\\r\n]++|\\.)*+"'
    rb'|<[^<>"{}|^`\x00-\x20]*+>'
    rb"|#[^\r\n]*+"
    rb"|\\."
    rb"|@[A-Za-z0-9-]++|<<|\{\||[\[({]|[\])}]",
    re.DOTALL,
)
_NEW = {b"<<": "a triple term", b"{|": "an annotation"}


def line_and_column(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column of the byte at `offset`, both from 1; the column counts characters of UTF-8."""
    start = data.rfind(b"\n", 0, offset) + 1
    return data.count(b"\n", 0, offset) + 1, len(data[start:offset].decode("utf-8", "replace")) + 1


def error_at(what: str, data: bytes, offset: int, remedy: str = "") -> ReadError:
    """The error about the byte at `offset`."""
    line, column = line_and_column(data, offset)
    return ReadError(what, line=line, column=column, remedy=remedy)


def check_utf8(data: bytes, what: str) -> bytes:
    """`data` without a byte order mark. Refuses invalid UTF-8; `what` names the syntax."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        wrong = f"the {what} document is not UTF-8: byte 0x{data[error.start]:02x}"
        raise error_at(wrong, data, error.start, "save it as UTF-8") from None
    return data


def check_json(data: bytes, what: str, settings: Settings) -> tuple[bytes, Any]:
    """`data` without a byte order mark, and its value. Raises `ReadError` over the limit of depth, and where it is no
    JSON."""
    data = check_utf8(data, what)
    _check_depth(data, what, settings.max_json_depth)
    try:
        return data, json.loads(data, parse_constant=lambda name: _refuse_constant(data, name))
    except json.JSONDecodeError as error:
        raise ReadError(f"not JSON: {error.msg}", line=error.lineno, column=error.colno) from None
    except ValueError:  # Python reads no integer of thousands of digits
        raise ReadError("the JSON holds an integer of too many digits", remedy="write it as a string") from None


def _refuse_constant(data: bytes, name: str) -> None:
    """Raises `ReadError` for a value that Python reads, and that is no JSON."""
    places = (match.start() for match in _CONSTANT.finditer(data) if match[1] is not None)
    raise error_at(f"not JSON: {name} is no value", data, next(places), "write it as a string")


def _check_depth(data: bytes, what: str, limit: int) -> None:
    """Raises `ReadError` where brackets outside of strings nest deeper than `limit`."""
    if data.count(b"[") + data.count(b"{") <= limit:
        return
    depth = 0
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth > limit:
                deep = f"the {what} document nests deeper than {limit}"
                raise error_at(deep, data, match.start(), "raise max_json_depth")
        elif token in (b"]", b"}"):
            depth -= 1


def check_contexts(data: bytes, value: Any) -> None:
    """Refuse a JSON-LD document that names a context to be fetched: by `@context` or by `@import`, at any depth. JSON
    literals are data, so `@value` and terms of type `@json` are not searched. A context hidden there on purpose still
    fails in the parser, which cannot fetch."""
    literal = json_terms(value) | {"@value"}
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            for address in remote_contexts(node):
                offset = max(data.find(json.dumps(address, ensure_ascii=False).encode("utf-8", "replace")), 0)
                remedy = "put the context into the document, or hand in a loader (--context URL=FILE)"
                raise error_at(f"the context {address!r} would have to be fetched", data, offset, remedy)
            waiting.extend(item for key, item in node.items() if key not in literal)


def json_terms(value: Any) -> set[str]:
    """The terms that some context declares to be of type `@json`."""
    return {
        key
        for node in objects_in(value)
        for key, item in node.items()
        if isinstance(item, dict) and item.get("@type") == "@json"
    }


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a JSON value, at any depth."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            yield node
            waiting.extend(node.values())


def remote_contexts(node: dict[str, Any]) -> list[str]:
    """The addresses that one JSON object asks to fetch."""
    context = node.get("@context")
    entries = context if isinstance(context, list) else [context]
    addresses = [entry for entry in entries if isinstance(entry, str)]
    addresses += [e["@import"] for e in entries if isinstance(e, dict) and isinstance(e.get("@import"), str)]
    return addresses


def check_turtle(data: bytes, what: str, settings: Settings) -> bytes:
    """`data` without a byte order mark. Raises `ReadError` where it nests too deep or needs RDF 1.2; `what` names the
    syntax."""
    data = check_utf8(data, what)
    limit = settings.max_turtle_depth
    opened = sum(data.count(bracket) for bracket in (b"[", b"(", b"{"))
    if opened <= limit and not any(mark in data for mark in (b"<<", b"{|", b"--")):
        return data
    depth = 0
    for match in _TURTLE_TOKEN.finditer(data):
        token = match[0]
        if token in (b"[", b"(", b"{"):
            depth += 1
            if depth > limit:
                deep = f"the {what} document nests deeper than {limit}"
                raise error_at(deep, data, match.start(), "raise max_turtle_depth")
        elif token in (b"]", b")", b"}"):
            depth = max(depth - 1, 0)
        elif token in _NEW or (token.startswith(b"@") and b"--" in token):
            new = _NEW.get(token, "a base direction")
            raise error_at(f"{new} is RDF 1.2; this reads RDF 1.1", data, match.start())
    return data
