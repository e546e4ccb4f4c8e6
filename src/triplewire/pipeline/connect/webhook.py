"""A webhook: each match, or dead letter, as the JSON body of a POST, at least once.

The header `Idempotency-Key` is the same whenever the same row is sent. With a secret, requests are signed as Standard
Webhooks has it (`webhook-id`, `webhook-timestamp`, `webhook-signature`; section "Signature scheme").

A receiver that cannot be reached, is overloaded (408, 425, 429, 5xx) or is not there as it was named (3xx, 401, 403,
404, 410) stops the stream after some attempts: the micro-batch is repeated by the next start. What a receiver will not
take (any other 4xx) is refused, and the stream goes on. Addresses are guarded as those of operators are.
"""

from __future__ import annotations

import base64
import datetime as dt
import email.utils
import hmac
import itertools
import math
import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

from triplewire.errors import OperatorError, Refusal, TriplewireError
from triplewire.operators.http.connection import Answer, Connection
from triplewire.operators.http.declared import target_of
from triplewire.pipeline.connect.addresses import Address, shown
from triplewire.pipeline.connect.parts import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = {"allow_private_addresses", "attempts", "authorization", "ca_file", "concurrency", "secret", "timeout"}
_ATTEMPTS, _SECONDS, _AT_ONCE = 8, 15.0, 4
_MOST_SECONDS = 3_600
_PAUSE, _LONGEST = 0.5, 300.0  # seconds before the second attempt, doubled for each, and at most
_SMALL = 1 << 16  # bytes of an answer that are read, for the next one to come on the same connection
_LATER = {408, 425, 429}
_ELSEWHERE = {401, 403, 404, 405, 407, 410}
_WAITING = 256  # rows that are read ahead


class WebhookSink:
    """An address that rows are posted to."""

    def __init__(self, target: Address) -> None:
        settings, self._address = target.settings, target
        try:
            if unknown := sorted(set(settings) - KEYS):
                raise ValueError(f"the setting {unknown[0]!r} is unknown; known: {', '.join(sorted(KEYS))}")
            private = settings.get("allow_private_addresses", "false") == "true"
            self._target = target_of(target.url, private, settings.get("ca_file", ""))
            self._attempts = _integer(settings, "attempts", _ATTEMPTS, 100)
            self._seconds = _seconds(settings.get("timeout", str(_SECONDS)))
            self._at_once = _integer(settings, "concurrency", _AT_ONCE, 64)
            self._secret = _secret(settings.get("secret", ""))
            self._authorization = settings.get("authorization", "")
            if not (self._authorization.isascii() and self._authorization.isprintable()):
                raise ValueError("authorization has a character, such as the end of a line, that no header may have")
        except ValueError as error:
            raise TriplewireError(shown(str(error)), source=str(target)) from None
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        for _ in range(self._at_once):
            self._idle.put(Connection(self._target))

    def __str__(self) -> str:
        return str(self._address)

    def check(self, spark: SparkSession, stream: str, stop: threading.Event | None = None) -> None:
        """Nothing is sent before there is something to say."""

    def deliver(self, rows: DataFrame, part: Part) -> list[Refusal]:
        """Post all rows, some at once; returns those that the receiver will not take. Raises `TriplewireError`."""
        given = rows.selectExpr("identity", f"{part.json_value()} AS value").toLocalIterator()
        refused: list[Refusal] = []
        with ThreadPoolExecutor(self._at_once) as pool:
            while ahead := list(itertools.islice(given, part.rows_at_once(_WAITING))):
                sent = pool.map(lambda row: self._sent(part, row.identity, row.value), ahead)
                refused += (refusal for refusal in sent if refusal is not None)
        return refused

    def _sent(self, part: Part, identity: str, value: str) -> Refusal | None:
        """Post one row until it is taken; None, or why it never will be."""
        if part.stop.is_set():
            raise TriplewireError("the run was ended before all rows were posted", source=str(self._address))
        connection = self._idle.get()
        try:
            for attempt in range(1, self._attempts + 1):
                pause = min(_PAUSE * 2 ** (attempt - 1), _LONGEST)
                try:
                    answer = self._posted(connection, part.key(identity), value.encode())
                except OperatorError as error:
                    what = error.what
                else:
                    if 200 <= answer.status < 300:
                        return None
                    what = f"it answers {answer.status} {answer.reason}"[:100]
                    if 300 <= answer.status < 400 or answer.status in _ELSEWHERE:
                        raise self._gone(what)
                    if answer.status < 500 and answer.status not in _LATER:
                        reason = f"the receiver does not take it: {what}"
                        return Refusal("delivery", part.key(identity), "", reason, "the row lies in the output folder")
                    pause = max(pause, seconds_to_wait(answer, _LONGEST))
                if attempt < self._attempts and part.stop.wait(pause):
                    break
            raise self._gone(what)
        finally:
            self._idle.put(connection)

    def _posted(self, connection: Connection, key: str, body: bytes) -> Answer:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "Idempotency-Key": key}
        if self._authorization:
            headers["Authorization"] = self._authorization
        if self._secret:
            now = str(int(time.time()))
            signed = hmac.digest(self._secret, f"{key}.{now}.".encode() + body, "sha256")
            signature = f"v1,{base64.b64encode(signed).decode()}"
            headers |= {"webhook-id": key, "webhook-timestamp": now, "webhook-signature": signature}
        return connection.exchange("POST", headers, body, self._seconds, _SMALL, whole=False)

    def _gone(self, what: str) -> TriplewireError:
        remedy = "nothing is lost: the next start delivers the micro-batch again"
        return TriplewireError(f"the webhook cannot be reached: {what}", source=str(self._address), remedy=remedy)


def _integer(settings: Mapping[str, str], name: str, usual: int, most: int) -> int:
    """An integer from 1 on. Raises `ValueError`."""
    text = settings.get(name, str(usual))
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most}, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    """A timeout. Raises `ValueError`."""
    with suppress(ValueError):
        if 0 < float(text) <= _MOST_SECONDS:
            return float(text)
    raise ValueError(f"timeout must be a number of seconds above 0, at most {_MOST_SECONDS:,}, not {text!r}")


def _secret(text: str) -> bytes:
    """The key of `whsec_` and its base64. Raises `ValueError`."""
    if not text:
        return b""
    try:
        return base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise ValueError("secret is no whsec_ with base64 behind it") from None


def seconds_to_wait(answer: Answer, most: float) -> float:
    """What the header Retry-After asks for, at most so many seconds; 0 without it (RFC 9110, section 10.2.3)."""
    text = answer.headers.get("retry-after", "").strip()
    with suppress(ValueError, TypeError, OverflowError):
        if text.isascii() and text.isdecimal():
            return min(float(text), most)
        left = (email.utils.parsedate_to_datetime(text) - dt.datetime.now(dt.UTC)).total_seconds()
        return 0.0 if math.isnan(left) else max(0.0, min(left, most))
    return 0.0
