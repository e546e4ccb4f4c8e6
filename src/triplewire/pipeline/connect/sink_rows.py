"""The rows of a micro-batch as data frames: the columns that sinks get, and what is said of those that fail.

Columns: `identity` and then those of `COLUMNS`, of a kind; they are the fields of `triplewire.notify.rows`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from triplewire.errors import Refusal, UnavailableError
from triplewire.net.addresses import Address, shown
from triplewire.notify.rows import LETTER, MATCH, Part
from triplewire.pipeline.rows import DEAD_LETTERS, MATCH_ROWS
from triplewire.pipeline.written import IDENTIFYING, identities

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SCHEMAS = {MATCH: MATCH_ROWS, LETTER: DEAD_LETTERS}
COLUMNS = {kind: tuple(schema.names) for kind, schema in SCHEMAS.items()}
# not by way of the session's time zone, whose clocks are set forward and back
_UTC = "CAST(timestampadd(MICROSECOND, unix_micros(`{0}`), TIMESTAMP_NTZ'1970-01-01 00:00:00') AS string)"
_AS_TEXT = f"concat(replace(left({_UTC}, 19), ' ', 'T'), '.', rpad(substring({_UTC}, 21), 6, '0'), 'Z')"
_IDENTITY_OF_LETTER = "substring(sha2(to_json(array(kind, subject, where, reason, remedy)), 256), 1, 32)"
_LOOK_AT_STOP = 0.2  # seconds
_LISTS = ("bindings", "why")  # columns of JSON
_IS_LONG = {"construct", "reason", "remedy", "subject", "where"}


class SparkSink(Protocol):
    """A sink of data frames, with the columns that `rows_of` gives them; else as `triplewire.notify.rows.Sink`."""

    def check(self, spark: SparkSession, stream: str, stop: threading.Event | None = None) -> None:
        """Find out what is missing before the work of a stream begins. Raises `TriplewireError`."""

    def deliver(self, rows: DataFrame, part: Part) -> list[Refusal]:
        """Deliver the rows; returns those that the receiver will never take. Raises `TriplewireError`."""


def rows_of(rows: DataFrame, kind: str, parts: int = 1) -> DataFrame:
    """Rows of `SCHEMAS` as sinks take them, each identity once: with several `parts`, in so many partitions."""
    columns = [
        f"{_AS_TEXT.format(field.name)} AS `{field.name}`" if pa.types.is_timestamp(field.type) else f"`{field.name}`"
        for field in SCHEMAS[kind]
    ]
    from pyspark.sql.functions import expr
    from pyspark.sql.pandas.functions import arrow_udf

    of_match: Any = arrow_udf(_identities, "string")  # type: ignore[call-overload]  # its stub wants a type of function
    identity = of_match(*IDENTIFYING) if kind == MATCH else expr(_IDENTITY_OF_LETTER)
    rows = rows.select(identity.alias("identity"), *map(expr, columns))
    return (rows.repartition(parts, "identity") if parts > 1 else rows).dropDuplicates(["identity"])


def _identities(*columns: pa.Array) -> pa.Array:
    """The identities of matches in hexadecimal digits, by the columns `IDENTIFYING`."""
    table = pa.table([column.dictionary_encode() for column in columns], names=IDENTIFYING)
    return pa.array([identity.hex() for identity in identities(table)], pa.string())


def json_value(kind: str, most: int = 0) -> str:
    """An expression of Spark's for a row as a JSON object, as `triplewire.notify.rows.json_text` gives it. With `most`,
    long texts are cut after so many characters, and what is JSON or a graph is null; `is_cut` says so."""
    names = [name for name in ("identity", *COLUMNS[kind]) if name not in _LISTS]
    if most:
        fields = [
            f"CAST(NULL AS string) AS `{name}`" if name == "construct"
            else f"substring(`{name}`, 1, {most}) AS `{name}`" if name in _IS_LONG else f"`{name}`"
            for name in names
        ]  # fmt: skip
        return f"to_json(struct({', '.join(fields)}, true AS is_cut), map('ignoreNullFields', 'false'))"
    plain = f"to_json(struct({', '.join(f'`{name}`' for name in names)}), map('ignoreNullFields', 'false'))"
    if kind != MATCH:
        return plain
    lists = ", ".join(f"""'"{name}":', coalesce({name}, 'null'), ','""" for name in _LISTS)
    return f"concat('{{', {lists}, substring({plain}, 2))"


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
    """Turns what the other side or its driver says into an `UnavailableError` of one sentence. `what`: its subject;
    `package`: where the driver is, for the remedy where there is none."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        text = str(getattr(error, "java_exception", None) or error)
        first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
        is_missing = "ClassNotFound" in text or "No suitable driver" in text
        remedy = f"--conf spark.jars.packages={package}, or the package of another driver" if is_missing else ""
        raise UnavailableError(f"{what}: {shown(first)[:500]}", source=str(target), remedy=remedy) from None


def without_nul(kind: str) -> Sequence[str]:
    """Expressions for the columns of rows whose texts hold no U+0000, which databases refuse."""
    columns = ["identity"]
    for field in SCHEMAS[kind]:
        name = f"`{field.name}`"
        columns.append(f"translate({name}, char(0), '\ufffd') AS {name}" if field.type == pa.string() else name)
    return columns
