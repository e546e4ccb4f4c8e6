"""Folders whose files Spark reads, whatever characters their names have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

_GLOB = re.compile(r"([\\{}\[\]*?])")


def escape(path: str) -> str:
    """The path with the characters escaped that Spark would read as a glob."""
    return _GLOB.sub(r"\\\1", path)


def streamed_files(spark: SparkSession, kind: str, columns: str) -> DataStreamReader:
    """Reads the files of a folder, and of those below it, as a stream: each once, however old. `kind` is the name of
    one of Spark's file sources, and `columns` its schema in DDL."""
    reader = spark.readStream.format(kind).schema(columns)
    # Spark silently leaves out files that are older than maxFileAge: no file is so old. Without recursiveFileLookup it
    # reads each file as often as there are files, where the path of the folder is escaped (Spark 4.2)
    return reader.option("maxFileAge", "36500d").option("recursiveFileLookup", "true")
