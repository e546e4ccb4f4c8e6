"""What a sink is given: the rows of a micro-batch, which are the same when it is repeated.

Columns: `identity` (32 hexadecimal digits) and then those of `COLUMNS`, of a kind; instants are texts of ISO 8601.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from triplewire.errors import Refusal, TriplewireError
from triplewire.pipeline.connect.addresses import Address, shown
from triplewire.pipeline.rows import DEAD_LETTERS, MATCH_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MATCH, LETTER = "match", "dead letter"
AT_ONCE = 32 << 20  # bytes of rows that a sink holds at a time, about
SCHEMAS = {MATCH: MATCH_ROWS, LETTER: DEAD_LETTERS}
COLUMNS = {kind: tuple(schema.names) for kind, schema in SCHEMAS.items()}
# not by way of the session's time zone, whose clocks are set forward and back
_UTC = "CAST(timestampadd(MICROSECOND, unix_micros(`{0}`), TIMESTAMP_NTZ'1970-01-01 00:00:00') AS string)"
_AS_TEXT = f"concat(replace(left({_UTC}, 19), ' ', 'T'), '.', rpad(substring({_UTC}, 21), 6, '0'), 'Z')"
_IDENTITY = "substring(unhex(sha2(concat(content, revision, to_json(array(publication, subscription))), 256)), 1, 16)"
_IDENTITIES = {
    MATCH: f"lower(hex({_IDENTITY}))",
    LETTER: "substring(sha2(to_json(array(kind, subject, where, reason, remedy)), 256), 1, 32)",
}
_LOOK_AT_STOP = 0.2  # seconds
_IS_JSON, _IS_LONG = {"bindings"}, {"bindings", "construct", "reason", "remedy", "subject", "where"}


@dataclass(frozen=True)
class Part:
    """A micro-batch: the stream that it is of, its number, and what its rows are (`MATCH` or `LETTER`).

    `replaces`: it is a batch run, or a micro-batch that is repeated, whose rows take the place of those of the run or
    try before. Who waits in a sink looks at `stop`. `row_bytes`: about how many bytes the texts of a row have.
    """

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

    def json_value(self, most: int = 0) -> str:
        """An expression of Spark's for a row as a JSON object, `bindings` as the list that they are. With `most`, long
        texts are cut after so many characters, and what is JSON or a graph is null; `is_cut` says so."""
        names = [name for name in ("identity", *COLUMNS[self.kind]) if name not in _IS_JSON]
        if most:
            fields = [
                f"CAST(NULL AS string) AS `{name}`" if name == "construct"
                else f"substring(`{name}`, 1, {most}) AS `{name}`" if name in _IS_LONG else f"`{name}`"
                for name in names
            ]  # fmt: skip
            return f"to_json(struct({', '.join(fields)}, true AS is_cut), map('ignoreNullFields', 'false'))"
        plain = f"to_json(struct({', '.join(f'`{name}`' for name in names)}), map('ignoreNullFields', 'false'))"
        if self.kind != MATCH:
            return plain
        return f"""concat('{{"bindings":', bindings, ',', substring({plain}, 2))"""


class Sink(Protocol):
    """Where matches or dead letters go."""

    def check(self, spark: SparkSession, stream: str, stop: threading.Event | None = None) -> None:
        """Find out before the work of a stream begins what is missing; who waits meanwhile looks at `stop`. Raises
        `TriplewireError`."""

    def deliver(self, rows: DataFrame, part: Part) -> list[Refusal]:
        """Deliver the rows; returns those that the receiver will never take. Raises `TriplewireError` where it cannot
        be reached: the micro-batch is repeated then, and its rows come again."""


def rows_of(rows: DataFrame, kind: str, parts: int = 1) -> DataFrame:
    """Rows of `SCHEMAS` as sinks take them, each identity once: with several `parts`, in so many partitions."""
    columns = [
        f"{_AS_TEXT.format(field.name)} AS `{field.name}`" if pa.types.is_timestamp(field.type) else f"`{field.name}`"
        for field in SCHEMAS[kind]
    ]
    rows = rows.selectExpr(f"{_IDENTITIES[kind]} AS identity", *columns)
    return (rows.repartition(parts, "identity") if parts > 1 else rows).dropDuplicates(["identity"])


@contextmanager
def when_stopped(stop: threading.Event, act: Callable[[], object]) -> Iterator[None]:
    """A block in which `act` is called when another thread sets `stop`, again and again until the block has ended. What
    it raises is passed over: there may be nothing left to be ended, nor a JVM."""
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(_LOOK_AT_STOP):
            if stop.is_set():
                with suppress(Exception):
                    act()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()


@contextmanager
def errors_of(target: Address, what: str, package: str) -> Iterator[None]:
    """Turns what the other side or its driver says into a `TriplewireError` of one sentence. `what`: what it is about;
    `package`: where the driver is, for the remedy where there is none."""
    # imported here because Spark is an optional dependency
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        text = str(getattr(error, "java_exception", None) or error)
        first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
        is_missing = "ClassNotFound" in text or "No suitable driver" in text
        remedy = f"--conf spark.jars.packages={package}, or the package of another driver" if is_missing else ""
        raise TriplewireError(f"{what}: {shown(first)[:500]}", source=str(target), remedy=remedy) from None


def without_nul(kind: str) -> Sequence[str]:
    """Expressions for the columns of rows whose texts hold no U+0000, which databases refuse."""
    schema = SCHEMAS[kind]
    names = {field.name for field in schema if field.type == pa.string()}
    return [
        "identity",
        *(
            f"translate(`{name}`, char(0), '\ufffd') AS `{name}`" if name in names else f"`{name}`"
            for name in COLUMNS[kind]
        ),
    ]
