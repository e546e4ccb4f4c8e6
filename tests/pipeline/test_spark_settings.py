"""Settings of Spark's that it does not know are named: it passes over them without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from triplewire.pipeline.session import unknown_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.xdist_group("spark")
def test_unknown_settings(spark: SparkSession) -> None:
    known = ["spark.executor.memory", "spark.sql.shuffle.partitions", "spark.app.name", "spark.local.dir"]
    elsewhere = ["spark.hadoop.fs.s3a.endpoint", "spark.sql.catalog.own", "spark.executorEnv.HOME"]
    assert list(unknown_settings(spark, known + elsewhere)) == []
    wrong = [
        "spark.mastr",
        "spark.executor.memry",
        "spark.sql.shufle.partitions",
        "spark.of.our.own",
        "executor.memory",
    ]
    assert list(unknown_settings(spark, wrong)) == [
        "Spark knows no setting spark.mastr; did you mean spark.master?",
        "Spark knows no setting spark.executor.memry; did you mean spark.executor.memory?",
        "Spark knows no setting spark.sql.shufle.partitions; did you mean spark.sql.shuffle.partitions?",
        "Spark knows no setting spark.of.our.own; it may be without effect",
        "Spark knows no setting executor.memory; did you mean spark.executor.memory?",
    ]
