"""One Spark session for all tests of this folder; mark a module that uses it `xdist_group("spark")`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from triplewire.pipeline.session import QUICK_START, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = spark_session("triplewire tests", config={**QUICK_START, "spark.driver.memory": "1g"}, log=log)
    yield session
    session.stop()
