"""A webhook: each match, or dead letter, as the JSON body of a POST, at least once.

The header `Idempotency-Key` is the same whenever the same row is sent. With a secret, requests are signed as Standard
Webhooks has it (`webhook-id`, `webhook-timestamp`, `webhook-signature`; section "Signature scheme").

A receiver that cannot be reached, is overloaded (408, 425, 429, 5xx) or is not there as it was named (3xx, 401, 403,
404, 410) ends the delivery after some attempts: the part is delivered again later. What a receiver will not take (any
other 4xx) is refused, and the rest goes on. Addresses are guarded as those of operators are.
"""

from __future__ import annotations

import base64
import hmac
import itertools
import re
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from triplewire.errors import Refusal, RequestError, TriplewireError, UnavailableError
from triplewire.net.addresses import Address, shown, timeout_of
from triplewire.net.client import Answer, Client
from triplewire.net.guard import target_of
from triplewire.notify.rows import Part, Record, json_text

_ATTEMPTS, _SECONDS, _AT_ONCE = 8, 15.0, 4
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
            self._seconds = timeout_of(settings, _SECONDS)
            private = settings.get("allow_private_addresses", "false") == "true"
            to = target_of(target.url, private, settings.get("ca_file", ""))
            self._attempts = _integer(settings, "attempts", _ATTEMPTS, 100)
            self._at_once = _integer(settings, "concurrency", _AT_ONCE, 64)
            self._secret = _secret(settings.get("secret", ""))
            self._authorization = settings.get("authorization", "")
            if not (self._authorization.isascii() and self._authorization.isprintable()):
                raise ValueError("authorization has a character, such as the end of a line, that no header may have")
        except ValueError as error:
            raise TriplewireError(shown(str(error)), source=str(target)) from None
        self._client = Client(to, self._at_once)

    def __str__(self) -> str:
        return str(self._address)

    def check(self, stream: str, stop: threading.Event | None = None) -> None:
        """Nothing is sent before there is something to say."""

    def deliver(self, rows: Iterable[Record], part: Part) -> list[Refusal]:
        """Post all rows, some at once; returns those that the receiver will not take. Raises `TriplewireError`."""
        rows, refused = iter(rows), list[Refusal]()
        with ThreadPoolExecutor(self._at_once) as pool:
            while ahead := list(itertools.islice(rows, part.rows_at_once(_WAITING))):
                sent = pool.map(lambda row: self._sent(part, row), ahead)
                refused += (refusal for refusal in sent if refusal is not None)
        return refused

    def _sent(self, part: Part, row: Record) -> Refusal | None:
        """Post one row until it is taken; None, or why it never will be."""
        if part.stop.is_set():
            raise TriplewireError("the run was ended before all rows were posted", source=str(self._address))
        key, body = part.key(row.identity), json_text(row).encode()
        for attempt in range(1, self._attempts + 1):
            pause = min(_PAUSE * 2 ** (attempt - 1), _LONGEST)
            try:
                answer = self._posted(key, body)
            except RequestError as error:
                what = error.what
            else:
                if 200 <= answer.status < 300:
                    return None
                what = f"it answers {answer.status} {answer.reason}"[:100]
                if 300 <= answer.status < 400 or answer.status in _ELSEWHERE:
                    break
                if answer.status < 500 and answer.status not in _LATER:
                    reason = f"the receiver does not take it: {what}"
                    return Refusal("delivery", key, "", reason, "the row lies in the output folder")
                pause = max(pause, answer.seconds_to_wait(_LONGEST))
            if attempt < self._attempts and part.stop.wait(pause):
                break
        remedy = "nothing is lost: the next start delivers the micro-batch again"
        raise UnavailableError(f"the webhook cannot be reached: {what}", source=str(self._address), remedy=remedy)

    def _posted(self, key: str, body: bytes) -> Answer:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "Idempotency-Key": key}
        if self._authorization:
            headers["Authorization"] = self._authorization
        if self._secret:
            headers |= signature_headers(self._secret, key, body)
        return self._client.request("POST", headers, body, seconds=self._seconds, most=_SMALL, whole=False)


def signature_headers(secret: bytes, key: str, body: bytes) -> dict[str, str]:
    """The headers that sign a request as Standard Webhooks has it: HMAC-SHA-256 over key, time and body."""
    now = str(int(time.time()))
    signed = hmac.digest(secret, f"{key}.{now}.".encode() + body, "sha256")
    signature = f"v1,{base64.b64encode(signed).decode()}"
    return {"webhook-id": key, "webhook-timestamp": now, "webhook-signature": signature}


def _integer(settings: Mapping[str, str], name: str, usual: int, most: int) -> int:
    """An integer from 1 on. Raises `ValueError`."""
    text = settings.get(name, str(usual))
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most}, not {text!r}")
    return int(text)


def _secret(text: str) -> bytes:
    """The key of `whsec_` and its base64. Raises `ValueError`."""
    if not text:
        return b""
    try:
        return base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise ValueError("secret is no whsec_ with base64 behind it") from None
