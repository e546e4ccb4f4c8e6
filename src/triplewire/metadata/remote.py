"""A provider at an address, as its repositories, its peers and those who write to it see it.

    with RemoteProvider("http://127.0.0.1:8751", token) as provider:
        provider.subscribe("passau", [RuleText("hosts", "search CycleProvider c register c")])
        snapshot = provider.snapshot("passau")
        batches = provider.batches("passau", snapshot.stream, snapshot.number, wait=20)

Each method is one exchange, and raises `UnavailableError` where there is no answer, and `ServiceError` where it is a
refusal.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from triplewire.errors import ArgumentError, BusyError, Refusal, ServiceError, UnavailableError
from triplewire.metadata.batches import Batch, Snapshot
from triplewire.metadata.messages import Applied, Change, Put, RuleText, Withdraw
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
        self.token = token
        self._client = Client(target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a question that is under way fails."""
        self._client.close()

    def health(self) -> dict[str, Any]:
        """How the provider is."""
        said: dict[str, Any] = self._json("GET", "/health")
        return said

    # --- repositories ------------------------------------------------------------------------------------------------

    def subscribe(self, repository: str, rules: Iterable[RuleText]) -> list[dict[str, Any]]:
        """Have a repository subscribe to rules; one answer a rule: its id, or problem details."""
        rows = list(map(asdict, rules))
        answers: list[dict[str, Any]] = self._json("POST", f"/repositories/{_part(repository)}/rules", rows)
        return answers

    def unsubscribe(self, repository: str, ids: Sequence[str]) -> None:
        """Have a repository give rules up."""
        self._json("POST", f"/repositories/{_part(repository)}/unsubscribe", list(ids))

    def forget(self, repository: str) -> None:
        """Say that a repository follows no longer."""
        self._json("POST", f"/repositories/{_part(repository)}/forget")

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

    def change(self, changes: Sequence[Change], source: str = "", seq: int = 0) -> Applied:
        """Have documents registered, changed and deleted: see `Provider.apply`. What repositories are told of it is not
        in the answer."""
        body = {"source": source, "seq": seq, "changes": list(map(as_object, changes))}
        said = self._json("POST", "/changes", body)
        return Applied(int(said["version"]), tuple(Refusal(**refusal) for refusal in said["refused"]))

    def applied(self, source: str) -> tuple[int, str]:
        """The `seq` of the last event of a list that was applied, 0 for none; and the base IRI of documents."""
        said = self._json("GET", f"/changes?{urlencode({'source': source})}")
        return int(said["seq"]), str(said["base"])

    def results(self) -> Iterator[dict[str, Any]]:
        """Each rule with the resources that it registers."""
        return map(json.loads, self._ask("GET", "/results").body.splitlines())

    def log(self, after: int, wait: float = 0.0) -> list[tuple[int, Change]]:
        """The entries of the log behind a version, each with its version: see `Provider.entries`."""
        query = urlencode({"after": after, "wait": wait})
        lines = map(json.loads, self._ask("GET", f"/log?{query}", seconds=wait + 60).body.splitlines())
        return [(int(line["version"]), change_of(line)) for line in lines]

    # --- asking ------------------------------------------------------------------------------------------------------

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._ask(method, path, body)
        return json.loads(answer.body) if answer.body else None

    def _ask(self, method: str, path: str, body: Any = None, seconds: float = _SECONDS, allowed: int = 0) -> Answer:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token := self.token or local_token(self.address):
            headers["Authorization"] = f"Bearer {token}"
        data = b"" if body is None else json.dumps(body).encode()
        try:
            answer = self._client.request(
                method, headers, data, seconds=seconds, most=_MOST, path=self._path + path, refusals=True
            )
        except UnavailableError as error:
            remedy = error.remedy or "see that the provider is served there: triplewire metadata serve"
            raise UnavailableError(error.what, source=self.address, remedy=remedy) from None
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


def as_object(change: Change) -> dict[str, str]:
    """A change as an object of JSON: without content, the document is deleted; bytes that are no UTF-8 are in
    base64."""
    if isinstance(change, Withdraw):
        return {"document": change.document}
    try:
        return {"document": change.document, "content": change.content.decode()}
    except UnicodeDecodeError:
        return {"document": change.document, "base64": base64.b64encode(change.content).decode()}


def change_of(value: Mapping[str, Any]) -> Change:
    """The change of such an object. Raises `KeyError`, `TypeError` and `ValueError` where it is none."""
    document = str(value["document"])
    if "base64" in value:
        return Put(document, base64.b64decode(value["base64"], validate=True))
    return Put(document, str(value["content"]).encode()) if "content" in value else Withdraw(document)


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


# --- tokens on this machine -------------------------------------------------------------------------------------------

# Writing to a provider needs a token. One that is started without leaves its own where only the same user reads it, and
# commands of that user take it from there.


def local_token(address: str) -> str:
    """The token that a provider at an address of this machine has left; "" where there is none."""
    parts = urlsplit(address)
    if not _is_loopback(parts.hostname or "") or parts.port is None:
        return ""
    with suppress(OSError):
        return _file(parts.port).read_text("ascii").strip()
    return ""


def leave_token(port: int) -> str:
    """The token of a provider at a port of this machine: what was left there, or a new one. Raises `OSError`."""
    file = _file(port)
    if token := local_token(f"http://127.0.0.1:{port}"):
        return token
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = secrets.token_urlsafe(24)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.touch(0o600)
    part.write_text(token, "ascii")
    os.replace(part, file)
    return token


def _file(port: int) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "triplewire", f"provider-{port}.token")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
