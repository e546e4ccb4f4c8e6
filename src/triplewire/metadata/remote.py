"""A provider at an address, as its repositories, its peers and those who write to it see it.

    with RemoteProvider("http://127.0.0.1:8751", token) as provider:
        provider.subscribe("passau", [{"id": "hosts", "query": "search CycleProvider c register c"}])
        snapshot = provider.snapshot("passau")
        batches = provider.batches("passau", snapshot.stream, snapshot.number, wait=20)

Each method is one exchange, and raises `UnavailableError` where there is no answer, and `ServiceError` where it is a
refusal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote, urlencode

from triplewire.errors import ArgumentError, BusyError, ServiceError, UnavailableError
from triplewire.metadata.batches import Batch, Snapshot
from triplewire.metadata.local_tokens import local_token
from triplewire.net.client import Answer, Client
from triplewire.net.guard import target_of

_SECONDS = 300.0  # for an answer; a batch of documents takes a while
_MOST = 1 << 30  # bytes of a snapshot
GONE = 410
"""The status where a stream does not go on behind a number: a snapshot comes first."""


class RemoteProvider:
    """A provider that is asked over HTTP. `token`: its token for writing; without one, that which a provider of the
    same user on the same machine has left."""

    def __init__(self, address: str, token: str = "") -> None:
        try:
            target = target_of(address.rstrip("/"), allow_private=True)
        except ValueError as error:
            raise ArgumentError(f"{address!r} is no address of a provider: {error}") from None
        self.address = address.rstrip("/")
        self._path = "" if target.path == "/" else target.path
        self._token = token
        self._client = Client(target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a question that is under way fails."""
        self._client.close()

    # --- repositories ------------------------------------------------------------------------------------------------

    def subscribe(self, repository: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Have a repository subscribe to rules; one answer a row: its id, or problem details."""
        answers: list[dict[str, Any]] = self._json("POST", f"/repositories/{_part(repository)}/rules", list(rows))
        return answers

    def unsubscribe(self, repository: str, ids: Sequence[str]) -> None:
        """Have a repository give rules up."""
        self._json("POST", f"/repositories/{_part(repository)}/unsubscribe", list(ids))

    def snapshot(self, repository: str, version: int = 0) -> Snapshot:
        """All that the rules of a repository ask for. Raises `BusyError` where the provider's documents have not come
        to this version yet."""
        query = urlencode({"version": version})
        return Snapshot.of_lines(self._ask("POST", f"/repositories/{_part(repository)}/snapshot?{query}").body)

    def batches(self, repository: str, stream: str, after: int, wait: float = 0.0) -> list[Batch] | None:
        """The batches of a stream behind a number; where there are none, those of the next `wait` seconds. None where
        the stream does not go on there: a snapshot comes first."""
        query = urlencode({"stream": stream, "after": after, "wait": wait, "format": "ndjson"})
        path = f"/repositories/{_part(repository)}/batches?{query}"
        answer = self._ask("GET", path, seconds=wait + 30, allowed=GONE)
        return None if answer.status == GONE else [Batch.of_line(line) for line in answer.body.splitlines()]

    def acknowledge(self, repository: str, stream: str, number: int) -> None:
        """Say that a repository has all batches up to a number: the provider may forget them."""
        self._json("POST", f"/repositories/{_part(repository)}/acknowledged", {"stream": stream, "number": number})

    # --- documents ---------------------------------------------------------------------------------------------------

    def change(self, changes: Sequence[Mapping[str, Any]], source: str = "") -> dict[str, Any]:
        """Have documents registered, changed and deleted, in one transaction. `source` names a list of events: of one
        whose `seq` was applied, nothing is done again."""
        answer: dict[str, Any] = self._json("POST", "/changes", {"source": source, "changes": list(changes)})
        return answer

    def applied(self, source: str) -> int:
        """The `seq` of the last event of a list that was applied; 0 for none."""
        return int(self._json("GET", f"/changes?{urlencode({'source': source})}")["seq"])

    def results(self) -> Iterator[dict[str, Any]]:
        """Each rule with the resources that it registers."""
        return map(json.loads, self._ask("GET", "/results").body.splitlines())

    def log(self, after: int, wait: float = 0.0) -> list[dict[str, Any]]:
        """The entries of the log of documents behind a version (`triplewire.metadata.backbone`)."""
        query = urlencode({"after": after, "wait": wait})
        return [json.loads(line) for line in self._ask("GET", f"/log?{query}", seconds=wait + 60).body.splitlines()]

    # --- asking ------------------------------------------------------------------------------------------------------

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._ask(method, path, body)
        return json.loads(answer.body) if answer.body else None

    def _ask(self, method: str, path: str, body: Any = None, seconds: float = _SECONDS, allowed: int = 0) -> Answer:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token := self._token or local_token(self.address):
            headers["Authorization"] = f"Bearer {token}"
        data = b"" if body is None else json.dumps(body).encode()
        answer = self._client.request(
            method, headers, data, seconds=seconds, most=_MOST, path=self._path + path, refusals=True
        )
        if 200 <= answer.status < 300 or answer.status == allowed:
            return answer
        raise _refused(answer, self.address)


def _refused(answer: Answer, address: str) -> ServiceError | UnavailableError | BusyError:
    """What a provider has refused, from its problem details (RFC 9457)."""
    try:
        said = json.loads(answer.body)
    except ValueError:
        said = {}
    said = said if isinstance(said, dict) else {}
    remedy = str(said.get("remedy", ""))
    if answer.status in (401, 403):
        remedy = "give the provider's token: TRIPLEWIRE_TOKEN, or --token-file"
    what = str(said.get("title") or f"the provider answers {answer.status} {answer.reason}")
    if answer.status == 503:
        return BusyError(what, source=address, remedy=remedy)
    if answer.status >= 500:
        return UnavailableError(what, source=address, remedy=remedy)
    error = ServiceError(what, source=address, remedy=remedy)
    error.status = answer.status
    return error


def _part(name: str) -> str:
    return quote(name, safe="")


def portions(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """The rows in lists of so many."""
    portion: list[Any] = []
    for row in rows:
        portion.append(row)
        if len(portion) == size:
            yield portion
            portion = []
    if portion:
        yield portion
