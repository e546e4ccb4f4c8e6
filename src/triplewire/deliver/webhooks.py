"""Deliveries over HTTP: webhooks, and calls of XML-RPC. Both go through the guarded client, and follow no redirect.

A webhook is a CloudEvent in binary mode (CloudEvents HTTP binding, section 3.1), and is signed as Standard Webhooks has
it where the target has a secret. XML-RPC calls `notify` with one struct, signed in the same way.
"""

from __future__ import annotations

import base64
import re
import threading
import xmlrpc.client
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import quote

from cachetools import LRUCache

from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.messages import Channel, Message, Outcome, json_bytes
from triplewire.errors import AddressError, ArgumentError, RequestError
from triplewire.net.addresses import shown
from triplewire.net.client import Answer, Client
from triplewire.net.guard import Target, checked_addresses, target_of
from triplewire.notify.webhook import signature_headers
from triplewire.store.database import DAY

LOOK_UP = 5.0
"""Seconds for the name of a host."""

_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')  # in a header: section 3.1.3.2
_NO_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
UNLIMITED = 1e9  # deliveries a minute
_ASK = 5.0  # seconds to say whether events may be posted
_CLIENTS = 256  # kept for their open connections
_ANSWER = 1 << 16  # bytes of an answer that are read
_SLOW_DOWN = {429, 503}
_NOT_THERE = {401, 403, 404, 405, 407, 502, 504}


def checked_target(url: str, allow_private: bool) -> Target:
    """What may be asked at an address that somebody names. Raises `ArgumentError`, and `AddressError` for what the
    look-up of its name has shown."""
    try:
        target = target_of(url, allow_private)
        if not target.has_web_port:
            raise ValueError(f"port {target.port} is none of a web server")
        checked_addresses(target.host, target.port, allow_private=allow_private, seconds=LOOK_UP)
    except (ValueError, AddressError) as error:
        kind = AddressError if isinstance(error, AddressError) else ArgumentError
        raise kind(f"the address cannot be used: {shown(str(error))}") from None
    return target


def key_of(secret: str) -> bytes:
    """What is signed with: the bytes behind `whsec_` (base64), or those of another text."""
    if encoded := secret.removeprefix("whsec_") if secret.startswith("whsec_") else "":
        with suppress(ValueError):
            return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    return secret.encode("utf-8", "surrogatepass")


class Posts(Channel):
    """Posts what a function makes of an event, headers and a body, over connections that stay open."""

    def __init__(self, settings: DeliverySettings, made: Callable[[Message], tuple[dict[str, str], bytes]]) -> None:
        super().__init__(settings)
        self._made = made
        self._clients: LRUCache[str, Client] = LRUCache(_CLIENTS)  # by address; one that is left out ends with its use
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """Raises `ArgumentError` where the address may not be asked."""
        checked_target(address, self._settings.allow_private_addresses)

    def close(self) -> None:
        """Close connections that lie idle."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def send(self, message: Message) -> Outcome:
        """One try."""
        headers, body = self._made(message)
        try:
            answer = self._client(message.target.address).request(
                "POST", headers, body, seconds=self._settings.delivery_seconds, most=_ANSWER, whole=False
            )
        except ValueError as error:
            return Outcome(f"the address cannot be used: {error}")
        except RequestError as error:
            return Outcome(shown(error.what), of_target=True)
        return self._judged(answer)

    def _judged(self, answer: Answer) -> Outcome:
        return outcome_of(answer)

    def _client(self, address: str) -> Client:
        with self._lock:
            if (client := self._clients.get(address)) is None:
                target = target_of(address, self._settings.allow_private_addresses)
                client = self._clients[address] = Client(target, self._settings.deliveries_at_once)
            return client

    def ask(self, address: str, origin: str, callback: str) -> Outcome:
        """Ask whether events from this origin (the name of a host) may be posted: CloudEvents HTTP webhook, section 4
        ("Abuse protection"). It can be allowed later, at the callback. An outcome that is not "delivered": not now."""
        asked = {"Origin": origin, "Callback": callback, "Rate": str(int(self._settings.deliveries_per_minute))}
        headers = {f"WebHook-Request-{name}": value for name, value in asked.items()}
        try:
            answer = self._client(address).request("OPTIONS", headers, seconds=_ASK)
        except (ValueError, RequestError) as error:
            return Outcome(shown(str(error)))
        granted = answer.headers.get("webhook-allowed-origin", "").strip().lower()
        outcome = outcome_of(answer)
        return outcome._replace(is_delivered=outcome.is_delivered and granted in ("*", origin.lower()))


def _signed(message: Message, headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """What is posted, with a signature where the target has a secret."""
    key = key_of(message.target.secret)
    return (headers | signature_headers(key, message.id, body) if key else headers), body


def cloud_event(message: Message) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a webhook."""
    data, is_whole = message.data()
    attributes = message.attributes(is_whole)
    headers = {f"ce-{name}": quote(value, safe=_SAFE, errors="replace") for name, value in attributes.items()}
    headers |= {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    return _signed(message, headers, json_bytes(data))


def _call_of_notify(message: Message) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a call. Raises `ArgumentError`."""
    try:
        text = xmlrpc.client.dumps((message.data()[0],), "notify")
    except (TypeError, OverflowError) as error:
        raise ArgumentError(f"the event cannot be said in XML-RPC: {error}") from None
    return _signed(message, {"Content-Type": "text/xml"}, _NO_XML.sub("\ufffd", text).encode())


class XmlRpc(Posts):
    """Calls `notify` of a program with an event as a struct."""

    def __init__(self, settings: DeliverySettings) -> None:
        super().__init__(settings, _call_of_notify)

    def _judged(self, answer: Answer) -> Outcome:
        outcome = outcome_of(answer)
        if outcome.is_delivered and answer.body:
            try:
                xmlrpc.client.loads(answer.body)
            except xmlrpc.client.Fault as fault:
                return Outcome(f"fault {fault.faultCode}: {fault.faultString}"[:200])
            except Exception as error:  # whatever stands in the answer
                return Outcome(f"the answer is no XML-RPC: {type(error).__name__}")
        return outcome


def rate_of(headers: Mapping[str, str]) -> float | None:
    """How many events a minute a receiver allows (WebHook-Allowed-Rate); None where it says nothing of it."""
    rate = headers.get("webhook-allowed-rate", "")
    if rate == "*":
        return UNLIMITED
    return float(rate) if rate.isascii() and rate.isdecimal() and len(rate) < 10 else None


def outcome_of(answer: Answer) -> Outcome:
    """What an answer says (CloudEvents HTTP webhook, section 2; RFC 9110, section 15)."""
    text = f"{answer.status} {answer.reason}".strip()[:200]
    per_minute = rate_of(answer.headers)
    if 200 <= answer.status < 300:
        return Outcome(text, is_delivered=True, per_minute=per_minute)
    if answer.status == 410:
        return Outcome(text, is_gone=True)
    if 300 <= answer.status < 400:
        return Outcome(f"{text}: redirects are not followed", of_target=True)
    pause = answer.seconds_to_wait(DAY) if answer.status in _SLOW_DOWN else 0.0
    is_of_target = answer.status in _SLOW_DOWN or answer.status in _NOT_THERE
    return Outcome(text, of_target=is_of_target, pause=pause, per_minute=per_minute)
