"""Tables of SQL on Spark: what SQLite answers, versions that are published whole, files of what has changed alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.engine import Connection

from triplewire.errors import BusyError, DamagedError
from triplewire.pipeline import sql_tables
from triplewire.pipeline.sql_tables import Directory, Table, Tables

dialects.register("spark", "triplewire.pipeline.sql_dialect", "SparkDialect")

metadata = sa.MetaData()
things = sa.Table(
    "things",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("class", sa.Integer, nullable=False, key="class_"),
    sa.Column("name", sa.Text),
    sa.Column("content", sa.LargeBinary),
)
names = sa.Table("names", metadata, sa.Column("name", sa.Text, nullable=False), prefixes=["TEMPORARY"])
NAMES = ("", "a", "ab", "é", "e", "\U0001f600", "\uffee", "b'", ":x", "%")


def _statement(chance: random.Random, number: int) -> sa.Executable:
    """A statement that changes tables."""
    name = chance.choice(NAMES)
    match chance.randrange(8):
        case 0:
            return things.delete().where(things.c.class_ == chance.randrange(3), things.c.name < name)
        case 1:
            return things.update().where(things.c.name.in_(sa.select(names.c.name))).values(class_=9, content=b"\x00")
        case 2:
            copied = sa.select(things.c.number + 1000 * number, things.c.class_, things.c.name)
            return things.insert().from_select(["number", "class_", "name"], copied.where(things.c.name > name))
        case 3:
            return names.insert().values(name=name)
        case 4:
            return names.delete()
        case _:
            return things.insert().values(number=number, class_=chance.randrange(3), name=chance.choice([name, None]))


def _rows(connection: Connection) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, connection.execute(sa.select(*things.c))), key=repr)


@pytest.fixture
def pair(tmp_path: Path, spark: object) -> Iterator[list[sa.Engine]]:
    """The same in SQLite and on Spark."""
    engines = [sa.create_engine(f"sqlite:///{tmp_path / 'a.db'}"), sa.create_engine(f"spark:///{tmp_path / 'tables'}")]
    yield engines
    for engine in engines:
        engine.dispose()


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_statements_do_what_they_do_in_sqlite(pair: list[sa.Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated statements, transactions that are rolled back, whole or to a savepoint; few rows are kept in memory, so
    that Spark reads files and writes them anew."""
    monkeypatch.setattr(sql_tables, "MOST_RECENT", 2)
    monkeypatch.setattr(sql_tables, "MOST_FILES", 2)
    monkeypatch.setattr(sql_tables, "MOST_GONE", 3)
    chance = random.Random(7)
    with pair[0].connect() as sqlite, pair[1].connect() as spark:
        both = (sqlite, spark)
        for connection in both:
            metadata.create_all(connection)
            for number, name in enumerate(NAMES):
                connection.execute(things.insert().values(number=number, class_=number % 3, name=name))
            connection.execute(names.insert().values(name=NAMES[2]))
            connection.commit()
        for transaction in range(1, 8):
            for place in range(3):
                statement = _statement(chance, 10 * transaction + place)
                for connection in both:
                    connection.execute(statement)
            nested = [connection.begin_nested() for connection in both]
            for connection in both:
                connection.execute(things.update().where(things.c.class_ == 2).values(name="all"))
            for savepoint in nested:
                savepoint.rollback() if transaction % 3 else savepoint.commit()
            assert _rows(sqlite) == _rows(spark)
            for connection in both:
                connection.rollback() if transaction == 5 else connection.commit()
    folder = Path(str(pair[1].url.database))
    assert any(path.is_dir() for path in (folder / "things").iterdir())  # Spark has written the base anew
    pair[1].dispose()
    with pair[0].connect() as sqlite, pair[1].connect() as spark:  # as another process reads it
        assert _rows(sqlite) == _rows(spark)
        text = sa.select(sa.func.count()).where(things.c.name == NAMES[0])
        assert sqlite.execute(text).scalar() == spark.execute(text).scalar()


# --- versions --------------------------------------------------------------------------------------------------------

COLUMNS = pa.schema([("number", pa.int64())])


def _no_spark() -> Any:
    raise AssertionError("nothing here is large enough")


def _with(table: Table, *numbers: int) -> Table:
    return table.with_rows(pa.table({"number": pa.array(numbers, pa.int64())}))


def _numbers(directory: Directory, name: str = "a") -> list[int]:
    return sorted(directory.look()[name].recent["number"].to_pylist())


def _published(directory: Directory, **tables: Table) -> None:
    before: Tables = directory.look()
    directory.publish(directory.number, {**before, **tables}, _no_spark)


def test_a_version_holds_what_has_changed_in_files_of_its_own(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    _published(directory, a=_with(Table.empty(COLUMNS), 1, 2, 3), b=_with(Table.empty(COLUMNS), 7))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    table = directory.look()["a"]
    _published(directory, a=_with(table.without(table.recent[sql_tables.ROW].slice(1, 1)), 4))
    now = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert {path: now[path] for path in before} == before
    assert len(now) == len(before) + 2  # one row, and the number of another
    assert _numbers(Directory(tmp_path)) == [1, 3, 4]
    assert _numbers(Directory(tmp_path), "b") == [7]


def test_many_small_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_tables, "MOST_FILES", 4)
    directory = Directory(tmp_path)
    _published(directory, a=_with(Table.empty(COLUMNS), 0))
    for number in range(1, 20):
        table = directory.look()["a"]
        _published(directory, a=_with(table.without(table.recent[sql_tables.ROW].slice(0, 1)), number, -number))
        assert len(directory.look()["a"].files) <= 4
    assert _numbers(Directory(tmp_path)) == _numbers(directory)
    assert len(_numbers(directory)) == 20


def test_who_was_overtaken_publishes_nothing(tmp_path: Path) -> None:
    first, second = Directory(tmp_path), Directory(tmp_path)
    tables = {**second.look(), "a": _with(Table.empty(COLUMNS), 2)}
    _published(first, a=_with(Table.empty(COLUMNS), 1))
    with pytest.raises(BusyError):
        second.publish(second.number, tables, _no_spark)
    assert _numbers(second) == [1]


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"form": 1, "tables": {}, "sha256": "0"}'])
def test_a_damaged_version_is_named_with_what_to_do(damage: bytes, tmp_path: Path) -> None:
    _published(Directory(tmp_path), a=Table.empty(COLUMNS))
    (file,) = (tmp_path / "versions").glob("*.json")
    file.write_bytes(damage)
    with pytest.raises(DamagedError, match="not what was written") as refused:
        Directory(tmp_path).look()
    assert refused.value.source == str(file)


_KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pipeline.test_sql_tables import COLUMNS, Directory, Table, _published, _with
directory = Directory(Path(sys.argv[2]))
for number in range(5):
    _published(directory, a=_with(directory.look().get("a", Table.empty(COLUMNS)), number), b=Table.empty(COLUMNS))
"""


@pytest.mark.parametrize("times", [1, 3])
def test_a_kill_before_the_rename_leaves_the_version_before(times: int, tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "TRIPLEWIRE_CRASH_AT": f"spark.written:{times}"}
    command = [sys.executable, "-c", _KILLED, str(tests), str(tmp_path)]
    done = subprocess.run(command, env=environment, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    directory = Directory(tmp_path)
    directory.look()
    assert directory.number == times - 1
    if times > 1:
        assert _numbers(directory) == [*range(times - 1)]
    _published(directory, a=_with(directory.look().get("a", Table.empty(COLUMNS)), 9))
    assert 9 in _numbers(Directory(tmp_path))
