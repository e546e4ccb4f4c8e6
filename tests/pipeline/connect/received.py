"""What lies in the sinks of a stream, for tests."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triplewire.net.addresses import Connections, address
from triplewire.pipeline.connect.databases import options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_sqlite(file: Path, table: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]


def in_postgres(spark: SparkSession, connections: Connections, url: str, table: str) -> list[dict[str, Any]]:
    given = options(address(url, connections), dbtable=table)
    return [row.asDict() for row in spark.read.format("jdbc").options(**given).load().collect()]


def in_kafka(spark: SparkSession, host: str, topic: str) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", host).option("subscribe", topic)
    rows = reader.option("includeHeaders", "true").load().selectExpr("key", "value", "headers").collect()
    return [
        (row.key.decode(), json.loads(row.value), {header.key: header.value.decode() for header in row.headers})
        for row in rows
    ]
