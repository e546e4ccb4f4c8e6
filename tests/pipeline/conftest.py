"""Servers that the Spark session (`databases.spark`) reaches; mark a module that uses it `xdist_group("spark")`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.connect import servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[str]]]:
    """The servers, which start while Spark does: the address of each, or why its tests are skipped."""
    with ExitStack() as running, ThreadPoolExecutor(2) as pool:
        made = {"postgres": servers.postgres(), "kafka": servers.kafka(tmp_path_factory.mktemp("kafka"))}
        yield {name: pool.submit(running.enter_context, server) for name, server in made.items()}


@pytest.fixture(scope="session")
def postgres(starting: dict[str, Future[str]]) -> str:
    return starting["postgres"].result()


@pytest.fixture(scope="session")
def kafka(starting: dict[str, Future[str]]) -> str:
    return starting["kafka"].result()


@pytest.fixture
def receiver() -> Iterator[servers.Receiver]:
    with servers.receiver() as state:
        yield state


@pytest.fixture(scope="session")
def linked(starting: object, spark: SparkSession) -> SparkSession:
    """The session, with Kafka's connector and the driver of PostgreSQL, while the servers start that it reaches."""
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
