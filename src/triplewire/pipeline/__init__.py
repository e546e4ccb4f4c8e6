"""Triplewire on Spark: publications in, matches and dead letters out, in batch and as a stream.

    spark = spark_session()
    matches = match_publications(publications(spark, "feeds/"), "subscriptions/", taxonomy="taxonomy.ttl")

`session` finds a Java and starts Spark, `sources` turns files into publications, `filter` matches them (it imports no
Spark), `index` has versions of subscriptions that come and go meanwhile, `jobs` joins these to data frames, `rows` has
the schemas of these. Of a whole run (`run`), `tasks` and `written` are what workers do and write, `output` has the
output folder, `committed` and `match_ledger` say what is committed and told, `connect` reaches Kafka, databases,
webhooks and feeds. `backtest` matches an archive. The command line is `triplewire.cli.pipeline`. The modules imported
here import no Spark, which takes a second to load and is an optional dependency: functions import it where they use it.
"""

from __future__ import annotations

from triplewire.pipeline.jobs import match_publications
from triplewire.pipeline.session import spark_session
from triplewire.pipeline.sources import publications

__all__ = ["match_publications", "publications", "spark_session"]
