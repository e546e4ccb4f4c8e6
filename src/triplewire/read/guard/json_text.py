"""Checks JSON before it is parsed: characters, depth, contexts that would have to be fetched (security page, J1,
J2)."""

from __future__ import annotations

import json
import re
from typing import Any

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.read.guard.place import line_and_column
from triplewire.read.guard.text import check_utf8

_CONSTANT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|(NaN|-?Infinity)', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|[\[{]|[\]}]', re.DOTALL)


def check_json(data: bytes, what: str, settings: Settings) -> tuple[bytes, Any]:
    """`data` without a byte order mark, and its value.

    Raises `ReadError` over the limit of depth and where it is no JSON.
    """
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
    line, column = line_and_column(data, next(places))
    raise ReadError(f"not JSON: {name} is no value", line=line, column=column, remedy="write it as a string")


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
                line, column = line_and_column(data, match.start())
                raise ReadError(
                    f"the {what} document nests deeper than {limit}",
                    line=line,
                    column=column,
                    remedy="raise max_json_depth",
                )
        elif token in (b"]", b"}"):
            depth -= 1


def check_contexts(data: bytes, value: Any) -> None:
    """Refuse a JSON-LD document that names a context to be fetched: by `@context` or by `@import`, at any depth.

    JSON literals are data, so `@value` and terms of type `@json` are not searched. A context hidden there on purpose
    still fails in the parser, which cannot fetch.
    """
    literal = json_terms(value) | {"@value"}
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            for address in remote_contexts(node):
                offset = max(data.find(json.dumps(address, ensure_ascii=False).encode("utf-8", "replace")), 0)
                line, column = line_and_column(data, offset)
                raise ReadError(
                    f"the context {address!r} would have to be fetched",
                    line=line,
                    column=column,
                    remedy="put the context into the document, or hand in a loader (--context URL=FILE)",
                )
            waiting.extend(item for key, item in node.items() if key not in literal)


def json_terms(value: Any) -> set[str]:
    """The terms that some context declares to be of type `@json`."""
    terms, waiting = set(), [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            terms |= {key for key, item in node.items() if isinstance(item, dict) and item.get("@type") == "@json"}
            waiting.extend(node.values())
    return terms


def remote_contexts(node: dict[str, Any]) -> list[str]:
    """The addresses that one JSON object asks to fetch."""
    context = node.get("@context")
    entries = context if isinstance(context, list) else [context]
    addresses = [entry for entry in entries if isinstance(entry, str)]
    addresses += [e["@import"] for e in entries if isinstance(e, dict) and isinstance(e.get("@import"), str)]
    return addresses
