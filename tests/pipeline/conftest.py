"""One Spark session for all tests of this folder, and servers that it reaches; mark a module that uses it
`xdist_group("spark")`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.connect import servers
from triplewire.pipeline.session import QUICK_START, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = spark_session("triplewire tests", config={**QUICK_START, "spark.driver.memory": "1g"}, log=log)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with servers.postgres() as url:
        yield url


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.kafka(tmp_path_factory.mktemp("kafka")) as host:
        yield host


@pytest.fixture
def receiver() -> Iterator[servers.Receiver]:
    with servers.receiver() as state:
        yield state


@pytest.fixture(scope="session")
def linked(spark: SparkSession) -> SparkSession:
    """The session, with Kafka's connector and the driver of PostgreSQL."""
    for jar in servers.jars("connector"):
        spark.sql(f"ADD JAR '{jar}'")
    return spark


@pytest.fixture(scope="session")
def secrets_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of connections: the user of PostgreSQL, and what a webhook on the loopback needs."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "password").write_text(servers.PASSWORD + "\n")
    file = folder / "connect.toml"
    file.write_text(
        f'["jdbc:postgresql://127.0.0.1"]\nuser = "test"\npassword = {{ file = "{folder}/password" }}\n'
        '["http://127.0.0.1"]\nallow_private_addresses = true\nattempts = 3\nsecret = "whsec_c2VjcmV0IHNlY3JldA=="\n'
        '["kafka://127.0.0.1"]\nmaxOffsetsPerTrigger = 4\n"linger.ms" = 1\n'
    )
    return file
