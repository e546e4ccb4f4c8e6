"""Statements of SQLAlchemy Core on Spark: a dialect, and the driver below it (PEP 249), over `sql_tables`.

    engine = sqlalchemy.create_engine("spark:////data/metadata")   # after `register()`

Spark SQL asks, but changes no table. So the driver asks Spark for the rows that a statement adds, changes or removes,
and makes the next version of the table of them; a commit publishes the tables of a transaction together. Tables that
are TEMPORARY belong to a connection, and stay in memory. Spark gets a table as a view when a statement names it, and
it was changed since the last one that did.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine import default, url
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql.compiler import IdentifierPreparer

from triplewire.pipeline.session import running_session, spark_session
from triplewire.pipeline.sql_tables import ROW, Directory, Table, Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# what PEP 249 asks of a driver: this module is one
apilevel, threadsafety, paramstyle = "2.0", 1, "named"


class _Failed(Exception):
    """Spark cannot do a statement. `sqlstate` is its code (ISO 9075)."""

    sqlstate: str | None = None


# SQLAlchemy looks for these names
Error = InterfaceError = DatabaseError = DataError = OperationalError = IntegrityError = _Failed
InternalError = ProgrammingError = NotSupportedError = _Failed
Binary = bytes

_TYPES: Sequence[tuple[type[Any], pa.DataType]] = (
    (sa.Integer, pa.int64()),
    (sa.LargeBinary, pa.binary()),
    (sa.Float, pa.float64()),
    (sa.Boolean, pa.bool_()),
    (sa.String, pa.string()),
)
_SETTINGS = {"spark.sql.autoBroadcastJoinThreshold": str(64 << 20)}  # what a batch changes goes to all tasks

_INSERT = re.compile(r"INSERT INTO (\S+) \(([^)]*)\) (?:VALUES \(([^)]*)\)$|(.*))", re.DOTALL)
_UPDATE = re.compile(r"UPDATE (\S+) SET (.*?)(?: WHERE (.*))?$", re.DOTALL)
_DELETE = re.compile(r"DELETE FROM (\S+)(?: WHERE (.*))?$", re.DOTALL)
_NAME = re.compile(r"\w+")


class Connection:
    """A connection of the driver: a Spark session with views of its own, and the tables of its transaction."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._spark: SparkSession | None = None
        self._stored: dict[str, Table] = {}
        self._temporary: dict[str, Table] = {}
        self._views: dict[str, Table] = {}
        self.begin()

    @property
    def spark(self) -> SparkSession:
        """The session of this connection."""
        if self._spark is None:
            self._spark = _session(self.directory.path).newSession()
            for name, value in _SETTINGS.items():
                self._spark.conf.set(name, value)
        return self._spark

    def begin(self) -> None:
        """Begin a transaction at the newest version."""
        self._stored, self._number = dict(self.directory.look()), self.directory.number
        self._begun = dict(self._temporary)

    def commit(self) -> None:
        """Publish what was changed."""
        self.directory.publish(self._number, self._stored, lambda: self.spark)
        self.begin()

    def rollback(self) -> None:
        """Forget what was changed."""
        self._stored, self._temporary = dict(self.directory.tables), dict(self._begun)

    def savepoint(self) -> tuple[Tables, Tables]:
        """What `back_to` brings back."""
        return dict(self._stored), dict(self._temporary)

    def back_to(self, savepoint: tuple[Tables, Tables]) -> None:
        """Forget what was changed since."""
        self._stored, self._temporary = map(dict, savepoint)

    def close(self) -> None:
        """Nothing is left of it."""

    def cursor(self) -> Cursor:
        """What statements are executed with."""
        return Cursor(self)

    # --- tables ------------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Is there such a table?"""
        return name in self._temporary or name in self._stored

    def create(self, table: sa.Table) -> None:
        """Make a table."""
        columns = pa.schema([(column.name, _arrow_type(column.type)) for column in table.columns])
        is_temporary = "TEMPORARY" in table._prefixes
        (self._temporary if is_temporary else self._stored)[table.name] = Table.empty(columns)

    def table(self, name: str) -> Table:
        """A table as this transaction has it."""
        return self._temporary[name] if name in self._temporary else self._stored[name]

    def put(self, name: str, table: Table) -> None:
        """Have another content in its place."""
        (self._temporary if name in self._temporary else self._stored)[name] = table

    def insert_rows(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows of all columns."""
        table = self.table(name)
        types = table.recent.schema.types[:-1]
        columns = [pa.array(values, type) for values, type in zip(zip(*rows, strict=True), types, strict=True)]
        self.put(name, table.with_rows(pa.table(columns, names=table.recent.schema.names[:-1])))

    def query(self, text: str, parameters: Mapping[str, Any]) -> pa.Table:
        """The rows of a query of Spark SQL. Raises `Error`."""
        from pyspark.errors import PySparkException  # Spark takes a second to load, and is an optional dependency

        try:
            for name in {*_NAME.findall(text)}:
                if self.has(name) and self._views.get(name) is not (table := self.table(name)):
                    table.frame(self.spark, self.directory.path).createOrReplaceTempView(name)
                    self._views[name] = table
            return self.spark.sql(text, args=dict(parameters)).toArrow()
        except PySparkException as error:
            raised = _Failed(f"{error}\n{text}")
            raised.sqlstate = error.getSqlState()
            raise raised from error


class Cursor:
    """A cursor of the driver (PEP 249)."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self._rows: list[tuple[Any, ...]] = []

    def execute(self, text: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Execute a statement, as SQLAlchemy writes it."""
        self.description, self._rows, values = None, [], parameters or {}
        if match := _INSERT.match(text):
            self._insert(match[1], match[2], match[3], match[4], values)
        elif match := _UPDATE.match(text):
            self._update(match[1], match[2], match[3], values)
        elif match := _DELETE.match(text):
            name, condition = match.groups()
            table = self._connection.table(name)
            if condition is None:
                self._connection.put(name, table.emptied())
            else:
                gone = self._connection.query(f"SELECT {name}.{ROW} FROM {name} WHERE {condition}", values)
                self.rowcount = len(gone)
                self._connection.put(name, table.without(gone[ROW]))
        else:
            rows = self._connection.query(text, values)
            self.description = [(name, None, None, None, None, None, None) for name in rows.schema.names]
            self._rows = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))[::-1]

    def _insert(self, name: str, names: str, marks: str | None, query: str, values: Mapping[str, Any]) -> None:
        table = self._connection.table(name)
        schema = table.recent.schema.remove(len(table.recent.schema) - 1)
        columns = [column.strip(" `") for column in names.split(",")]
        if marks is not None:
            inserted = pa.table([[values[mark.strip(" :")]] for mark in marks.split(",")], names=columns)
        else:
            inserted = self._connection.query(query, values).rename_columns(columns)
        of_each = (
            inserted[field.name].cast(field.type) if field.name in columns else pa.nulls(len(inserted), field.type)
            for field in schema
        )
        rows = pa.table(list(of_each), schema=schema)
        self.rowcount = len(rows)
        self._connection.put(name, table.with_rows(rows))

    def _update(self, name: str, assignments: str, condition: str | None, values: Mapping[str, Any]) -> None:
        """Constants take the place of columns."""
        table = self._connection.table(name)
        schema = table.recent.schema
        where = f" WHERE {condition}" if condition else ""
        rows = self._connection.query(f"SELECT {name}.* FROM {name}{where}", values).select(schema.names)
        self.rowcount, gone = len(rows), rows[ROW]
        for assignment in assignments.split(", "):
            column, _, mark = assignment.partition("=:")
            place = schema.get_field_index(column.strip(" `"))
            constant = pa.array([values[mark]] * len(rows), schema.field(place).type)
            rows = rows.set_column(place, schema.field(place), constant)
        self._connection.put(name, table.without(gone).with_rows(rows.drop_columns([ROW])))

    def executemany(self, text: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement for each of the parameters."""
        for row in rows:
            self.execute(text, row)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        return self._rows.pop() if self._rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows."""
        return [self._rows.pop() for _ in range(min(size, len(self._rows)))]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All other rows."""
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        """Nothing is left of it."""
        self._rows = []


def connect(directory: Directory) -> Connection:
    """A connection (PEP 249)."""
    return Connection(directory)


_starting = threading.Lock()


def _session(path: Path) -> SparkSession:
    """The session of this process, whichever thread asks for it."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    with _starting:
        try:
            return SparkSession.active()
        except PySparkRuntimeError:
            return spark_session("triplewire metadata", log=path / "spark.log")


def _arrow_type(type_: Any) -> pa.DataType:
    return next(arrow for kind, arrow in _TYPES if isinstance(type_, kind))


class SparkDialect(default.DefaultDialect):
    """The dialect of Spark SQL. All connections of an engine have one directory."""

    name, driver = "spark", "pyspark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_sane_rowcount = True
    default_paramstyle = paramstyle

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.identifier_preparer = IdentifierPreparer(self, initial_quote="`")

    @classmethod
    def import_dbapi(cls) -> Any:
        """This module. Raises `SparkError` where Spark is missing."""
        running_session()
        return sys.modules[__name__]

    def create_connect_args(self, address: url.URL) -> tuple[list[Any], dict[str, Any]]:
        """The directory of an address."""
        self._directory = Directory(Path(address.database or "."))
        return [self._directory], {}

    def do_begin(self, connection: Any) -> None:
        """See the newest version."""
        connection.begin()

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Make a table; there are no indexes; all else is a statement."""
        if context is None or not context.isddl:
            cursor.execute(statement, parameters)
        elif isinstance(context.compiled.statement, CreateTable):
            cursor._connection.create(context.compiled.statement.element)

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **how: Any) -> bool:
        """Is there such a table?"""
        return bool(connection.connection.driver_connection.has(table_name))

    def do_savepoint(self, connection: Any, name: str) -> None:
        """Remember what there is."""
        driver = connection.connection.driver_connection
        connection.info.setdefault("savepoints", {})[name] = driver.savepoint()

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        """Forget what came since."""
        connection.connection.driver_connection.back_to(connection.info["savepoints"].pop(name))

    def do_release_savepoint(self, connection: Any, name: str) -> None:
        """It is not needed any more."""
        connection.info["savepoints"].pop(name, None)
