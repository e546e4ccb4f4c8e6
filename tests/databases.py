"""Databases and servers that tests share.

What is tested for SQLite is tested for PostgreSQL, too, and, where it says `ON_SPARK`, on Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pipeline.connect.servers import PASSWORD, kafka, postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A PostgreSQL that lasts as long as the tests, as the address of its first database."""
    with postgres() as address:
        yield address.replace("jdbc:postgresql://", f"postgresql://test:{PASSWORD}@")


@pytest.fixture(scope="session")
def kafka_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Kafka broker that lasts as long as the tests, as HOST:PORT; mark a test that uses it `xdist_group("spark")`, so
    that one worker starts it."""
    with kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests; mark a module, or the cases, that use it `xdist_group("spark")`."""
    # with the engine, which most tests that are quick do not need
    from triplewire.pipeline.session import QUICK_START, spark_session

    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = spark_session("triplewire tests", config={**QUICK_START, "spark.driver.memory": "1g"}, log=log)
    yield session
    session.stop()


ON_SPARK = pytest.param("spark", marks=pytest.mark.xdist_group("spark"))
"""The parameter of `new_database` for a directory of Spark: `parametrize("new_database", [..., ON_SPARK],
indirect=True)`."""


@pytest.fixture(scope="session")
def emptied() -> list[str]:
    """Names of databases that tests are done with: hundreds of them would take long to make, and to remove."""
    return []


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes databases without tables; returns their addresses."""
    if request.param == "sqlite":
        yield lambda: f"sqlite:///{tmp_path / uuid.uuid4().hex}.db"
        return
    if request.param == "spark":
        request.getfixturevalue("spark")
        yield lambda: f"spark:{tmp_path / uuid.uuid4().hex}"
        return
    address, emptied = request.getfixturevalue("server"), request.getfixturevalue("emptied")
    made: list[str] = []

    def at(name: str) -> str:
        return f"{address.rpartition('/')[0]}/{name}"

    def postgresql() -> str:
        made.append(f"t{uuid.uuid4().hex}")
        with psycopg.connect(address, autocommit=True) as connection:
            # under another name, so that nothing that is still there of another test has to do with it
            how = f"ALTER DATABASE {emptied.pop()} RENAME TO" if emptied else "CREATE DATABASE"
            connection.execute(f"{how} {made[-1]}")
        return at(made[-1])

    yield postgresql
    for name in made:
        with psycopg.connect(at(name), autocommit=True) as connection:
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            connection.execute(f"SELECT pg_terminate_backend(pid, 60000) {others}")
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        emptied.append(name)


@pytest.fixture
def database_url(new_database: Callable[[], str]) -> str:
    """The address of a database without tables."""
    return new_database()
