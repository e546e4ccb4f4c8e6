"""The doors of an upstream, as a broker asks them: those that are there for anybody with a token."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from triplewire.broker.network.roots import Asked
from triplewire.broker.subscriptions.followed import ENDED
from triplewire.errors import ArgumentError, RequestError, ServiceError
from triplewire.net.client import Answer, Client
from triplewire.net.guard import target_of

_SECONDS = 60.0  # that an upstream has to answer
_MOST_BYTES = 256 << 20  # of an answer: a page of documents, all subscriptions
_AT_ONCE, _BYTES_AT_ONCE = 200, 200_000  # subscriptions of one request, and the bytes of their queries


class Upstream:
    """A broker at an address, which may lie in one's own network. Methods raise `RequestError` where it does not
    answer, or only later, and `ServiceError` where it refuses."""

    def __init__(self, url: str, token: str) -> None:
        try:
            self._target = target_of(url, allow_private=True)
        except ValueError as error:
            raise ArgumentError(f"the upstream {url!r} cannot be asked: {error}", remedy="upstream") from None
        self._client = Client(self._target)
        self._token = token

    def close(self) -> None:
        """Give up the connection."""
        self._client.close()

    def subscriptions(self, prefix: str) -> list[dict[str, Any]]:
        """Our subscriptions there whose ids begin so, without those that have ended."""
        rows = _json(self._ask("GET", "/subscriptions"))
        return [row for row in rows if row["id"].startswith(prefix) and row["state"] != ENDED]

    def subscribe(self, wanted: Mapping[str, tuple[Asked, float]]) -> Iterator[tuple[str, str]]:
        """Subscribe with these ids, each for so many seconds; returns each id, and why it is refused, "" where not."""
        for part in _parts(list(wanted.items())):
            body = [{"id": id, "seconds": seconds, **asked._asdict()} for id, (asked, seconds) in part]
            answers = _json(self._ask("POST", "/subscriptions", body))
            for (id, _), answer in zip(part, answers, strict=True):
                if answer.get("status", 0) >= 500:
                    raise RequestError(str(answer.get("title", "it takes no subscriptions now")))
                yield id, str(answer.get("title", "it is refused")) if "status" in answer else ""

    def renew(self, id: str, seconds: float) -> None:
        """Have a subscription last for so many seconds."""
        self._ask("POST", f"/subscriptions/{quote(id, safe='')}/renew", {"seconds": seconds})

    def unsubscribe(self, id: str) -> None:
        """End a subscription."""
        self._ask("DELETE", f"/subscriptions/{quote(id, safe='')}")

    def events(self, after: int, prefix: str) -> tuple[str, list[dict[str, Any]]]:
        """The identity of the upstream, and the next events of our subscriptions whose ids begin so, with documents."""
        query = urlencode({"after": after, "subscriptions": prefix, "documents": 1})
        answer = self._ask("GET", f"/events?{query}")
        broker = answer.headers.get("triplewire-broker", "")
        if not broker:
            raise ServiceError("it does not say which broker it is", remedy="upstreams are Triplewires of 0.1 or later")
        return broker, [_event(line) for line in answer.body.splitlines()]

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "identity"}
        data = b"" if body is None else json.dumps(body).encode()
        if data:
            headers["Content-Type"] = "application/json"
        answer = self._client.request(
            method, headers, data, seconds=_SECONDS, most=_MOST_BYTES, path=self._target.path.rstrip("/") + path,
            refusals=True,
        )  # fmt: skip
        if 200 <= answer.status < 300:
            return answer
        said = f"{method} {path.partition('?')[0]}: {answer.status} {_title(answer)}"
        if answer.status >= 500 or answer.status == 429:
            raise RequestError(said)
        refused = ServiceError(said, remedy="look at upstream_token" if answer.status in (401, 403) else "")
        refused.status = answer.status
        raise refused


def _parts(wanted: Sequence[tuple[str, tuple[Asked, float]]]) -> Iterator[list[tuple[str, tuple[Asked, float]]]]:
    part: list[tuple[str, tuple[Asked, float]]] = []
    size = 0
    for entry in wanted:
        length = len(entry[1][0].query.encode())
        if part and (len(part) == _AT_ONCE or size + length > _BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(entry)
        size += length
    if part:
        yield part


def _json(answer: Answer) -> list[dict[str, Any]]:
    try:
        said = json.loads(answer.body)
        if isinstance(said, list) and all(isinstance(entry, dict) for entry in said):
            return said
    except ValueError:
        pass
    raise RequestError("its answer is no list of JSON objects")


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
        if isinstance(event, dict) and isinstance(event.get("number"), int):
            return event
    except ValueError:
        pass
    raise RequestError("its list of events holds a line that is no event")


def _title(answer: Answer) -> str:
    try:
        said = json.loads(answer.body)
        return str(said["title"])[:300]
    except (ValueError, KeyError, TypeError):
        return answer.reason
