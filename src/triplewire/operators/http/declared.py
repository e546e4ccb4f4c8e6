"""Operators that a TOML file declares: `[operators.NAME]` with `kind = "http"`."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from triplewire.model.operator import MOST_AT_ONCE, MOST_SECONDS, Operator, Parameter
from triplewire.operators.calling.budget import Budget
from triplewire.operators.calling.guard import Guard
from triplewire.operators.http.connection import Target, trusting
from triplewire.operators.http.service import HttpOperator

_URL = re.compile(r"https?://[!-~]+")
_HOST = re.compile(r"[A-Za-z0-9._:-]+")
MOST_BATCH = 10_000
KEYS = {
    "kind", "url", "parameters", "batch", "concurrency", "timeout", "cost", "budget_per_hour",
    "allow_private_addresses", "ca_file", "version",
}  # fmt: skip


def declared(text: str) -> Iterator[Operator]:
    """The operators of a file. Raises `ValueError`, which says what is wrong and what is expected."""
    content = tomllib.loads(text)
    tables = content.get("operators")
    if not isinstance(tables, dict) or not tables or set(content) != {"operators"}:
        raise ValueError("it must have tables [operators.NAME] and nothing else")
    for name, table in tables.items():
        try:
            yield _operator(name, table)
        except ValueError as error:
            raise ValueError(f"[operators.{name}]: {error}") from None


def _operator(name: str, table: Any) -> Operator:
    if not isinstance(table, dict):
        raise ValueError("it is no table")
    if unknown := sorted(set(table) - KEYS):
        raise ValueError(f"{unknown[0]!r} is unknown; known: {', '.join(sorted(KEYS))}")
    if table.get("kind") != "http":
        raise ValueError('kind must be "http"')
    private = table.get("allow_private_addresses", False)
    version = table.get("version", "")
    if not isinstance(private, bool) or not isinstance(version, str):
        raise ValueError("allow_private_addresses is true or false, and version a text")
    cost = _number(table, "cost", 1.0, math.inf, zero=True)
    per_hour = _number(table, "budget_per_hour", math.inf, math.inf, zero=True)
    budget = Budget(name, per_hour) if "budget_per_hour" in table else None
    return HttpOperator(
        name,
        tuple(_parameters(table)),
        target_of(table.get("url"), private, table.get("ca_file", "")),
        Guard(budget, cost),
        version=version,
        cost=cost,
        timeout=_number(table, "timeout", 10.0, MOST_SECONDS),
        concurrency=_integer(table, "concurrency", 4, MOST_AT_ONCE),
        batch=_integer(table, "batch", 1, MOST_BATCH),
    )


def _parameters(table: dict[str, Any]) -> Iterator[Parameter]:
    """A parameter is a name, or a table of a name and a unit."""
    given = table.get("parameters")
    if not isinstance(given, list):
        raise ValueError('parameters must be a list of names, such as ["topic"]')
    for entry in given:
        fields = {"name": entry} if isinstance(entry, str) else entry
        right = isinstance(fields, dict) and fields.get("name") and set(fields) <= {"name", "unit"}
        if not right or not all(isinstance(value, str) for value in fields.values()):
            raise ValueError(f'the parameter {entry!r} is no name, and no {{ name = "...", unit = "..." }}')
        yield Parameter(**fields)


def target_of(url: Any, private: bool, ca_file: Any) -> Target:
    """The parts of the address, in plain ASCII: nothing in it may be read in two ways. `ca_file`: see `Target`. Raises
    `ValueError`, which says what is expected."""
    if not isinstance(url, str) or not _URL.fullmatch(url) or re.search(r'[\\@"<>^`{|}#]', url):
        raise ValueError("url must be an http or https address in ASCII, without user, backslash and fragment")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError as error:
        raise ValueError(f"url is wrong: {error}") from None
    if not _HOST.fullmatch(host) or port == 0:
        raise ValueError(f"url has no host that can be asked: {url!r}")
    is_secure = parts.scheme == "https"
    if not isinstance(ca_file, str) or (ca_file and not is_secure):
        raise ValueError("ca_file is the path of a file of certificates (PEM), and url begins with https")
    try:
        if ca_file:
            trusting(ca_file)
    except (OSError, ValueError) as error:
        raise ValueError(f"ca_file {ca_file!r} has no certificates (PEM) that can be read: {error}") from None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_secure, host, port or (443 if is_secure else 80), path, private, ca_file)


def _number(table: dict[str, Any], name: str, default: float, most: float, *, zero: bool = False) -> float:
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value >= 0 if zero else value > 0):
        raise ValueError(f"{name} must be a number {'from' if zero else 'above'} 0")
    if value > most:
        raise ValueError(f"{name} must be at most {most:g}")
    return float(value)


def _integer(table: dict[str, Any], name: str, default: int, most: int) -> int:
    value = table.get(name, default)
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most}")
    return value
