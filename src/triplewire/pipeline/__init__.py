"""Triplewire on Spark: files in, matches and dead letters out, in batch and as a stream.

    spark = spark_session()
    found = match_publications(publications(spark, "feeds/"), "subscriptions/", taxonomy="taxonomy.ttl")

`java` finds a Java for Spark, `session` starts Spark, `sources` turns files into publications, `filter` matches them
(it imports no Spark), `jobs` puts these together as data frames, `sinks` writes them, `run` is the whole job. The
command line is `triplewire.cli.pipeline`. What is imported here imports no Spark, which takes a second to load and is
an extra.
"""

from __future__ import annotations

from triplewire.pipeline.jobs import match_publications
from triplewire.pipeline.session import spark_session
from triplewire.pipeline.sources import publications

__all__ = ["match_publications", "publications", "spark_session"]
