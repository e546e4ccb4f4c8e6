"""Matches that `triplewire pipeline run --to ...` tells, as rows that a broker takes: from a table, or from a topic.

A row is taken, and when its event is written, it is `done`: it leaves the table, or is behind the place up to which the
topic was read. Who is killed in between gets it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from triplewire.broker.incoming.topic_sources import kafka_client, kafka_consumer
from triplewire.errors import TriplewireError, UnavailableError
from triplewire.net.addresses import KAFKA, SQLITE, address, brokers, kind_of, sqlite_path
from triplewire.notify.rows import KEY, TABLES
from triplewire.store.database import errors_of_database

TABLE = "matches"
"""The table where none is named."""

_GROUP = "triplewire-broker"
_COLUMNS = ("publication", "content", "subscription", "bindings")
_POLL = 0.2  # seconds that a topic is listened to


class MatchRow(NamedTuple):
    """A match: the publication and the hash of its content, the subscription of the index, the bindings as JSON; and
    its place among the rows."""

    publication: str
    content: str
    subscription: str
    bindings: str
    place: Any


class MatchRows(Protocol):
    """Where rows come from."""

    def next(self, most: int) -> list[MatchRow]:
        """Rows that are not done, at most so many. Raises `TriplewireError`."""

    def done(self, rows: Sequence[MatchRow]) -> None:
        """These have their events."""

    def close(self) -> None:
        """Let go of what is open; `next` opens it again."""


def rows_at(text: str) -> MatchRows:
    """The rows at an address: `postgresql://HOST/DATABASE#TABLE`, `sqlite:FILE#TABLE`, `kafka://HOST:PORT/TOPIC`.
    Raises `TriplewireError` for another one."""
    if text.startswith("postgresql://"):
        url, _, table = text.partition("#")
        return MatchTable(make_url(url).set(drivername="postgresql+psycopg"), table or TABLE)
    if kind_of(text) == SQLITE:
        target = address(text)
        return MatchTable(make_url(f"sqlite:///{sqlite_path(target.url)}"), target.name or TABLE)
    if kind_of(text) == KAFKA:
        target = address(text)
        return MatchTopic(brokers(target), target.name)
    what, remedy = "matches cannot be taken from there", "postgresql://...#TABLE, sqlite:FILE#TABLE, kafka://..."
    raise TriplewireError(what, source=text.partition("@")[2] or text, remedy=remedy)


class MatchTable:
    """The rows of a table, which go when they are done."""

    def __init__(self, url: sa.URL, table: str) -> None:
        self._engine = sa.create_engine(url, pool_size=1, pool_pre_ping=True)
        schema, _, name = table.rpartition(".")
        self._schema = schema or None
        columns = [sa.column(column, sa.BigInteger() if column == "batch" else sa.Text()) for column in TABLES["match"]]
        self._table = sa.table(name, *columns, schema=self._schema)
        self._is_there = False

    def next(self, most: int) -> list[MatchRow]:
        """The rows that come first by their keys; none where the pipeline has not made the table yet."""
        with errors_of_database(str(self._engine.url)), self._engine.connect() as connection:
            if not self._is_there:
                self._is_there = sa.inspect(connection).has_table(self._table.name, schema=self._schema)
                if not self._is_there:
                    return []
            of = self._table.c
            here = sa.select(self._table).order_by(of.stream, of.batch, of.identity).limit(most)
            rows = connection.execute(here).mappings().all()
        return [MatchRow(**{name: row[name] for name in _COLUMNS}, place=[row[name] for name in KEY]) for row in rows]

    def done(self, rows: Sequence[MatchRow]) -> None:
        """Remove them."""
        columns = [self._table.c[name] for name in KEY]
        gone = sa.and_(*(column == sa.bindparam(f"key_{column.name}") for column in columns))
        keys = [{f"key_{name}": value for name, value in zip(KEY, row.place, strict=True)} for row in rows]
        with errors_of_database(str(self._engine.url)), self._engine.begin() as connection:
            connection.execute(sa.delete(self._table).where(gone), keys)

    def close(self) -> None:
        """Close the connection."""
        self._engine.dispose()


class MatchTopic:
    """The records of a topic of Kafka, read by one consumer group of all brokers."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._consumer: Any = None

    def next(self, most: int) -> list[MatchRow]:
        """The records that came since."""
        kafka = kafka_client()
        if self._consumer is None:
            made = {"allow.auto.create.topics": True}
            self._consumer = kafka_consumer(self._servers, _GROUP, self._topic, **made)
        rows: list[MatchRow] = []
        try:
            for record in self._consumer.consume(most, _POLL):
                if record.error() is not None:
                    if record.error().code() not in (
                        kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
                        kafka.KafkaError._PARTITION_EOF,
                    ):
                        raise kafka.KafkaException(record.error())
                    continue
                value = json.loads(record.value())
                bindings = json.dumps(value.get("bindings") or [], ensure_ascii=False)
                rows.append(MatchRow(value["publication"], value["content"], value["subscription"], bindings, record))
        except kafka.KafkaException as error:
            raise UnavailableError(f"the topic cannot be read: {error}", source=self._servers) from None
        return rows

    def done(self, rows: Sequence[MatchRow]) -> None:
        """Go on behind them at the next start, too."""
        for row in {(row.place.partition()): row for row in rows}.values():  # the last one of each partition
            self._consumer.commit(message=row.place, asynchronous=False)

    def close(self) -> None:
        """Leave the group."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
