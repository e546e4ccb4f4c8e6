"""The databases of a broker: what is tested for one is tested for both."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from pipeline.connect.servers import PASSWORD, postgres


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A PostgreSQL that lasts as long as the tests, as the address of its first database."""
    with postgres() as address:
        yield address.replace("jdbc:postgresql://", f"postgresql://test:{PASSWORD}@")


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes databases without tables; returns their addresses."""

    def sqlite() -> str:
        return f"sqlite:///{tmp_path / uuid.uuid4().hex}.db"

    def postgresql() -> str:
        address: str = request.getfixturevalue("server")
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{address.rpartition('/')[0]}/{name}"

    return sqlite if request.param == "sqlite" else postgresql


@pytest.fixture
def database_url(new_database: Callable[[], str]) -> str:
    """The address of a database without tables."""
    return new_database()
