"""Servers that the Spark session (`databases.spark`) reaches; mark a module that uses it `xdist_group("spark")`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.connect import servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def postgres(server: str) -> str:
    """The address of the database without its user, as Spark takes it."""
    return server.replace(f"postgresql://test:{servers.PASSWORD}@", "jdbc:postgresql://")


@pytest.fixture(scope="session")
def kafka(kafka_server: str) -> str:
    return kafka_server


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
