"""Triplewire on Spark: publications in, matches and dead letters out, in batch and as a stream.

    spark = spark_session()
    matches = match_publications(publications(spark, "feeds/"), "subscriptions/", taxonomy="taxonomy.ttl")

`java` finds a Java for Spark, `session` starts Spark, `sources` turns files into publications, `filter` matches them
(it imports no Spark), `index` has versions of subscriptions that come and go meanwhile, `jobs` joins these to data
frames, `rows` has the schemas of these, `calling` sets how operators are called, `output` has the output folder,
`results` says what is committed and told, `connect` reaches Kafka, databases, webhooks and feeds, `run` is a whole run,
`backtest` matches an archive, `arguments` checks what callers hand in. The command line is `triplewire.cli.pipeline`.
The modules imported here import no Spark, which takes a second to load and is an optional dependency.
"""

from __future__ import annotations

from triplewire.pipeline.jobs import match_publications
from triplewire.pipeline.session import spark_session
from triplewire.pipeline.sources import publications

__all__ = ["match_publications", "publications", "spark_session"]
