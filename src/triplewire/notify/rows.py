"""What a sink takes: matches or dead letters as plain rows, which have the same names when they are told again."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from triplewire.errors import Refusal
from triplewire.model.match import Match, match_identity

MATCH, LETTER = "match", "dead letter"
AT_ONCE = 32 << 20  # bytes of rows that a sink holds at a time, about


class MatchRecord(NamedTuple):
    """A match. `identity`: 32 hexadecimal digits, the same whenever it is told; `bindings`: a JSON list of objects,
    terms as in SPARQL 1.1 JSON results; `matched_at`: an instant of UTC in ISO 8601, with microseconds; `construct`:
    the graph of a CONSTRUCT query as canonical N-Quads; `content`, `revision`: hashes of the publication and of the
    text of the subscription; `index_version`: the version of the subscriptions that gave it, where they have any;
    `why`: a JSON list of sentences that say why it is one, where they were asked for."""

    identity: str
    publication: str
    subscription: str
    bindings: str
    truncated: bool
    matched_at: str | None
    construct: str | None
    content: str
    revision: str
    index_version: str | None
    why: str | None

    @classmethod
    def of(cls, match: Match, index_version: str | None = None) -> MatchRecord:
        """The record of a match of `Engine.match`, without reasons."""
        row, matched_at = match.to_json(), match.matched_at
        return cls(
            match_identity(match.content, match.revision, match.publication, match.subscription).hex(),
            match.publication,
            match.subscription,
            compact_json(row["bindings"]),
            match.truncated,
            f"{matched_at.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}" if matched_at is not None else None,
            row["construct"],
            match.content,
            match.revision,
            index_version,
            None,
        )


class LetterRecord(NamedTuple):
    """A refused input, or a warning: an identity of 32 hexadecimal digits, and the fields of `Refusal`."""

    identity: str
    kind: str
    subject: str
    where: str
    reason: str
    remedy: str

    @classmethod
    def of(cls, refusal: Refusal) -> LetterRecord:
        """The record of a refusal; lone surrogates, which no UTF-8 has, are replaced."""
        texts = (refusal.kind, refusal.subject, refusal.where, refusal.reason, refusal.remedy)
        storable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        text = compact_json(storable)
        return cls(hashlib.sha256(text.encode()).hexdigest()[:32], *storable)


Record: TypeAlias = MatchRecord | LetterRecord
RECORDS: Mapping[str, type[MatchRecord] | type[LetterRecord]] = {MATCH: MatchRecord, LETTER: LetterRecord}

KEY = ("stream", "batch", "identity")
"""The columns that name a row in a table: its primary key."""

TABLES: Mapping[str, Mapping[str, str]] = {
    kind: {
        **dict.fromkeys((*KEY, *record._fields), "TEXT"),
        "batch": "BIGINT",
        **({"truncated": "BOOLEAN", "matched_at": "TIMESTAMP WITH TIME ZONE"} if kind != LETTER else {}),
    }
    for kind, record in RECORDS.items()
}
"""The columns of a table of rows of a kind, with the types that they get where the table is not there."""


@dataclass(frozen=True)
class Part:
    """Rows that are delivered together, as those of a micro-batch: the stream that they are of, the number of the part,
    and what the rows are (`MATCH` or `LETTER`). `replaces`: these rows take the place of those that came under this
    number before. Who waits in a sink looks at `stop`. `row_bytes`: about how many bytes the texts of a row have."""

    stream: str
    batch: int
    kind: str
    replaces: bool = False
    stop: threading.Event = field(default_factory=threading.Event, compare=False)
    row_bytes: int = 0

    def rows_at_once(self, most: int) -> int:
        """How many rows may be in memory at a time, `most` where they are as short as rows are."""
        return min(max(AT_ONCE // max(self.row_bytes, 1), 1), most)

    def key(self, identity: str) -> str:
        """What is the same whenever this row is delivered, and for no other row."""
        return f"{self.stream}-{self.batch}-{identity}"


class Sink(Protocol):
    """Where matches or dead letters go."""

    def check(self, stream: str, stop: threading.Event | None = None) -> None:
        """Find out before the work of a stream begins what is missing; who waits meanwhile looks at `stop`. Raises
        `TriplewireError`."""

    def deliver(self, rows: Iterable[Record], part: Part) -> list[Refusal]:
        """Deliver the rows; returns those that the receiver will never take. Raises `TriplewireError` where it cannot
        be reached: the part is repeated then, and its rows come again."""


def compact_json(value: object) -> str:
    """A value as JSON, as short as it can be written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_text(row: Record) -> str:
    """A row as a JSON object, `bindings` and `why` first and as the lists that they are."""
    fields = row._asdict()
    lists = {name: fields.pop(name) for name in ("bindings", "why") if name in fields}
    text = compact_json(fields)
    return "{" + "".join(f'"{name}":{value or "null"},' for name, value in lists.items()) + text[1:]
