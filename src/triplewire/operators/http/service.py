"""An operator behind HTTP: a POST for the calls about one publication, and one answer a call.

    {"operator": name, "publication": {"id": id, "nquads": text}, "calls": [{"arguments": [term or null]}]}
    {"answers": [true | false | [[term]] | {"error": text}]}

A term is written as in SPARQL 1.1 Query Results JSON, section 3.2.2.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from typing import Any

from triplewire.bounded_cache import BoundedCache
from triplewire.errors import OperatorError, OperatorFault
from triplewire.forks import new_lock
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication
from triplewire.model.references import is_absolute
from triplewire.model.terms import IRI, Triple, term_to_json
from triplewire.operators.calling.guard import Guard
from triplewire.operators.calling.terms import verdict_from_json
from triplewire.operators.http.connection import Connection, Target


class HttpOperator:
    """A service. Any number of threads may ask it; at most `concurrency` requests are under way."""

    keeps_time = True
    isolated = False

    def __init__(
        self,
        name: str,
        parameters: tuple[Parameter, ...],
        target: Target,
        guard: Guard,
        *,
        version: str = "",
        cost: float = 1.0,
        timeout: float = 10.0,
        concurrency: int = 4,
        batch: int = 1,
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.version, self.cost, self.timeout = version, cost, timeout
        self.concurrency, self.batch = concurrency, batch
        self.guard = guard
        self._target = target
        self._lock = new_lock()
        self._places = threading.BoundedSemaphore(concurrency)
        self._idle: list[Connection] = []
        self._process = os.getpid()

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
        asked = {
            "operator": self.name,
            "publication": {"id": publication.id, "nquads": _nquads(publication)},
            "calls": [
                {"arguments": [None if term is None else term_to_json(term) for term in arguments]}
                for arguments in calls
            ],
        }
        with self._places:
            self.guard.enter(len(calls))
            try:
                answers = _answers(self._posted(json.dumps(asked).encode()), len(calls))
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
        with self._lock:
            if self._process != os.getpid():  # the connections of a parent are not for a fork of it
                self._idle, self._process = [], os.getpid()
            connection = self._idle.pop() if self._idle else Connection(self._target)
        try:
            return connection.post(body, self.timeout)
        finally:
            with self._lock:
                self._idle.append(connection)


def _answers(body: bytes, calls: int) -> list[Verdict | OperatorError]:
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise OperatorFault(f"its answer is no JSON: {body[:60]!r}") from None
    answers = given.get("answers") if isinstance(given, dict) else None
    if not isinstance(answers, list):
        raise OperatorFault('its answer is no object with a list "answers"')
    if len(answers) != calls:
        raise OperatorFault(f"it gives {len(answers)} answers to {calls} calls")
    return [_answer(answer) for answer in answers]


def _answer(value: Any) -> Verdict | OperatorError:
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        return OperatorError(f"it says: {value['error'][:300]}")
    try:
        return verdict_from_json(value)
    except ValueError as error:
        return OperatorFault(f"its answer is wrong: {error}")


_texts: BoundedCache[tuple[str, tuple[Triple, ...]], str] = BoundedCache()
_MOST_TEXT = 16 << 20  # characters of all publications that are kept, for the next operator that is asked about them


def _nquads(publication: Publication) -> str:
    """The publication as N-Quads; its graph is its id, where that is an IRI."""
    key = publication.id, publication.triples
    text = _texts.get(key)
    if text is None:
        graph = f" {IRI(publication.id)}" if is_absolute(publication.id) else ""
        text = "".join(f"{s} {p} {o}{graph} .\n" for s, p, o in dict.fromkeys(publication.triples))
        _texts.put(key, text, len(text), _MOST_TEXT)
    return text
