"""Operators behind HTTP: services of the user's own, which a TOML file declares: `[operators.NAME]`, `kind = "http"`.

A service gets a POST for the calls about one publication, and gives one answer a call.

    {"operator": name, "publication": {"id": id, "nquads": text}, "calls": [{"arguments": [term or null]}]}
    {"answers": [true | false | [[term]] | {"error": text}]}

A term is written as in SPARQL 1.1 Query Results JSON, section 3.2.2.
"""

from __future__ import annotations

import json
import math
import threading
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from triplewire.bounded_cache import BoundedCache
from triplewire.errors import AddressError, OperatorError, OperatorFault, PassingFault, RequestError
from triplewire.forks import forget_in_children
from triplewire.model.operator import (
    MOST_AT_ONCE,
    MOST_RETRIES,
    MOST_SECONDS,
    Argument,
    Operator,
    Parameter,
    Verdict,
    meant_by,
    rows_of,
)
from triplewire.model.publication import Publication
from triplewire.model.references import is_absolute
from triplewire.model.terms import Triple, made_iri, term_to_json
from triplewire.net.client import Client
from triplewire.net.guard import Target, target_of
from triplewire.operators.calling.budgets import Budget
from triplewire.operators.calling.caller import Guard
from triplewire.operators.calling.process import MOST_ROWS, verdict_from_json
from triplewire.operators.calling.retries import with_retries

MOST_BATCH = 10_000
RETRIES = 2
_BUSY = {408, 425, 429, 502, 503, 504}  # a service that answers so may answer otherwise soon
KEYS = frozenset((
    "kind", "url", "parameters", "batch", "concurrency", "timeout", "cost", "budget_per_hour",
    "allow_private_addresses", "ca_file", "version", "retries",
))  # fmt: skip
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json"}


@dataclass(eq=False)
class HttpOperator:
    """A service. Any number of threads may ask it; at most `concurrency` requests are under way."""

    name: str
    parameters: tuple[Parameter, ...]
    target: Target
    guard: Guard
    version: str
    cost: float
    timeout: float
    concurrency: int
    batch: int
    retries: int
    keeps_time: ClassVar[bool] = True
    isolated: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._client = Client(self.target, self.concurrency)
        self.forget()
        forget_in_children(self)

    def forget(self) -> None:
        """In the child of a fork: the requests that are under way are those of the parent."""
        self._places = threading.BoundedSemaphore(self.concurrency)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """See `Operator`. Raises `OperatorError`."""
        (answer,) = self.evaluate_together(publication, [arguments])
        if isinstance(answer, OperatorError):
            raise answer
        return answer

    def evaluate_together(
        self, publication: Publication, calls: Sequence[tuple[Argument, ...]]
    ) -> list[Verdict | OperatorError]:
        """The answers to calls about one publication, in one request. Raises `OperatorError` where none has one."""
        question = {
            "operator": self.name,
            "publication": {"id": publication.id, "nquads": _nquads(publication)},
            "calls": [
                {"arguments": [None if term is None else term_to_json(term) for term in arguments]}
                for arguments in calls
            ],
        }
        body, enter = json.dumps(question).encode(), partial(self.guard.enter, len(calls))
        with self._places:
            enter()
            try:
                answers = _answers(with_retries(partial(self._posted, body), enter, self.retries, self.timeout), calls)
            except OperatorError as error:
                self.guard.failed(error)
                raise
            refused = [answer for answer in answers if isinstance(answer, OperatorError)]
            if len(refused) == len(answers):
                self.guard.failed(refused[0])
            else:
                self.guard.answered()
            return answers

    def _posted(self, body: bytes) -> bytes:
        """The body of what the service answers. Raises `OperatorError`."""
        try:
            answer = self._client.request("POST", _HEADERS, body, seconds=self.timeout)
        except AddressError as error:  # whatever it is asked
            raise OperatorFault(error.what, remedy=error.remedy) from None
        except RequestError as error:
            raise PassingFault(error.what, remedy=error.remedy) from None
        if answer.status == 200:
            return answer.body
        what = f"it answers {answer.status} {answer.reason}"[:100]
        if answer.status in _BUSY:
            raise PassingFault(what, wait=answer.seconds_to_wait(math.inf))
        remedy = "redirects are not followed: give the address itself" if 300 <= answer.status < 400 else ""
        raise OperatorFault(what, remedy=remedy)


def _answers(body: bytes, calls: Sequence[tuple[Argument, ...]]) -> list[Verdict | OperatorError]:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise OperatorFault(f"its answer is no JSON: {body[:60]!r}") from None
    answers = answer.get("answers") if isinstance(answer, dict) else None
    if not isinstance(answers, list):
        raise OperatorFault('its answer is no object with a list "answers"')
    if len(answers) != len(calls):
        raise OperatorFault(f"it gives {len(answers)} answers to {len(calls)} calls")
    return [_verdict(value, arguments) for value, arguments in zip(answers, calls, strict=True)]


def _verdict(value: Any, arguments: tuple[Argument, ...]) -> Verdict | OperatorError:
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        return OperatorError(f"it says: {value['error'][:300]}")
    try:
        return rows_of(verdict_from_json(value), arguments, MOST_ROWS)
    except ValueError as error:
        return OperatorFault(f"its answer is wrong: {error}")
    except OperatorFault as error:
        return error


_texts: BoundedCache[tuple[str, tuple[Triple, ...]], str] = BoundedCache()
_MOST_TEXT = 16 << 20  # characters of all publications that are kept, for the next operator that is asked about them


def _nquads(publication: Publication) -> str:
    """The publication as N-Quads; its graph is its id, where that is an IRI."""
    key = publication.id, publication.triples
    text = _texts.get(key)
    if text is None:
        graph = f" {made_iri(publication.id)}" if is_absolute(publication.id) else ""
        text = "".join(f"{s} {p} {o}{graph} .\n" for s, p, o in dict.fromkeys(publication.triples))
        _texts.put(key, text, len(text), _MOST_TEXT)
    return text


# --- declarations ----------------------------------------------------------------------------------------------------


def declared(text: str) -> Iterator[Operator]:
    """The operators of a file. Raises `ValueError`, which says what is wrong and what is expected."""
    content = tomllib.loads(text)
    tables = content.get("operators")
    if not isinstance(tables, dict) or not tables or set(content) != {"operators"}:
        raise ValueError("it must have tables [operators.NAME] and nothing else")
    for name, table in tables.items():
        try:
            if not isinstance(table, dict):
                raise ValueError("it is no table")
            yield _operator(name, table)
        except ValueError as error:
            raise ValueError(f"[operators.{name}]: {error}") from None


def _operator(name: str, table: dict[str, Any]) -> Operator:
    if unknown := sorted(set(table) - KEYS):
        near = meant_by(unknown[0], KEYS)
        meant = f"did you mean {near}? " if near else ""
        raise ValueError(f"{unknown[0]!r} is unknown; {meant}known: {', '.join(sorted(KEYS))}")
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
        retries=_integer(table, "retries", RETRIES, MOST_RETRIES, least=0),
    )


def _parameters(table: dict[str, Any]) -> Iterator[Parameter]:
    """A parameter is a name, or a table of a name and a unit."""
    entries = table.get("parameters")
    if not isinstance(entries, list):
        raise ValueError('parameters must be a list of names, such as ["topic"]')
    for entry in entries:
        fields = {"name": entry} if isinstance(entry, str) else entry
        right = isinstance(fields, dict) and fields.get("name") and set(fields) <= {"name", "unit"}
        if not right or not all(isinstance(value, str) for value in fields.values()):
            raise ValueError(f'the parameter {entry!r} is no name, and no {{ name = "...", unit = "..." }}')
        yield Parameter(**fields)


def _number(table: dict[str, Any], name: str, default: float, most: float, *, zero: bool = False) -> float:
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value >= 0 if zero else value > 0):
        raise ValueError(f"{name} must be a number {'from' if zero else 'above'} 0")
    if value > most:
        raise ValueError(f"{name} must be at most {most:g}")
    return float(value)


def _integer(table: dict[str, Any], name: str, default: int, most: int, *, least: int = 1) -> int:
    value = table.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}")
    return value
