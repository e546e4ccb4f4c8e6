"""Tables of a transaction, which nobody else sees, and joins that are made in the order in which they stand.

A planner does not know how full these tables are. What is small, and which index leads on, follows from the
algorithm; so SQLite gets CROSS JOIN, which it does not reorder, and PostgreSQL LATERAL with OFFSET, which it can only
look up row by row: without statistics, or with those of before, it would join whole tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Index, Integer, MetaData, SmallInteger, Table, Text
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import Join, NamedFromClause

from triplewire.metadata.tables import ByCodePoint, join_columns, trigger_columns
from triplewire.store.database import insert_rows
from triplewire.store.tables import BIG

working = MetaData()


def _table(name: str, *columns: Any) -> Table:
    return Table(f"md_{name}", working, *columns, prefixes=["TEMPORARY"])


def _number(name: str, *, is_key: bool = True) -> Column[int]:
    return Column(name, BIG, primary_key=is_key, autoincrement=False)


wanted = _table("wanted", Column("digest", ByCodePoint, primary_key=True))
"""Digests or other texts that are looked up."""
picked = _table("picked", _number("number"))
"""Numbers that are looked up: of terms, or subscriptions."""
removable = _table("removable", _number("rule"))

incoming = _table(
    "incoming",
    _number("document"),
    _number("resource"),
    _number("property"),
    _number("value"),
)
"""What the new versions of the documents of a batch say."""
incoming_types = _table("incoming_types", _number("document"), _number("resource"), _number("class"))
batch = _table("batch", _number("document"))
"""The documents of a batch."""

dirty = _table("dirty", _number("resource"), _number("property"))
"""Where a statement goes or comes."""
filter_data = _table(
    "filter_data",
    *(_number(name, is_key=False) for name in ("resource", "property")),
    Column("class", BIG, nullable=False, key="class_"),
    _number("value", is_key=False),
    *(Column(version, SmallInteger, nullable=False) for version in ("was", "stays")),
    *(Column(key, ByCodePoint) for key in ("label", "literal", "number_key", "instant_key")),
)
"""The paper's FilterData: the statements that are joined with triggering rules, each with a class of its resource and
what its value is compared by. Like `changes`, it is read as a whole only."""
region = _table("region", _number("resource"), Column("step", Integer, nullable=False))
"""Resources on which join rules are evaluated; `step`: in which step it came."""
grams = _table("grams", _number("term"), Column("gram", ByCodePoint, primary_key=True))
"""Pieces of the literals that are searched for what `contains` asks."""


def _hits(name: str, *, is_looked_up: bool) -> Table:
    return _table(
        name,
        _number("rule", is_key=is_looked_up),
        _number("resource", is_key=is_looked_up),
        Column("was", SmallInteger, nullable=False),
        Column("stays", SmallInteger, nullable=False),
    )


hits = _hits("hits", is_looked_up=True)
"""The paper's ResultObjects: which atomic rule registers which resource, before the batch and after it."""
changes = _hits("changes", is_looked_up=False)
"""The same of triggering rules alone, where the batch changes it."""

fulfilled = _table("fulfilled", _number("rule"))
"""The rules in `hits`, each once."""

asked = _table("asked", _number("rule"))
"""Rules that are evaluated over all documents, and all that they depend on."""
asked_triggers = _table(
    "asked_triggers",
    *trigger_columns(),
    Index("md_asked_triggers_operator", "operator", "class_", "property", "brief"),
)
asked_joins = _table(
    "asked_joins",
    *join_columns(),
    Index("md_asked_joins_parent", "parent", "driver", "kind", "level"),
    Index("md_asked_joins_child", "child", "driver", "kind", "level"),
    Index("md_asked_joins_level", "level", "kind", "driver"),
)
asked_properties = _table("asked_properties", _number("property"))

ends = _table(
    "ends",
    _number("subscription", is_key=False),
    _number("resource", is_key=False),
    Column("repository", Text, nullable=False),
    Column("stays", SmallInteger, nullable=False),
)
"""Which subscription begins (`stays` is 1) or ceases to hold which resource; each pair once. Like `changes` and
`turned`, it is read as a whole only: an index would take longer than its rows."""
turned = _table(
    "turned", Column("repository", Text), _number("resource", is_key=False), Column("more", BIG, nullable=False)
)
"""How many more rules hold a resource than before; negative: fewer."""
counted = _table(
    "counted", Column("repository", Text, primary_key=True), _number("resource"), Column("rules", BIG, nullable=False)
)
"""How many rules hold a resource now."""
altered = _table("altered", _number("resource"))
"""Resources whose statements or strong references are others now."""
leading = _table("leading", _number("root"), _number("resource"), Column("step", Integer, nullable=False))
"""Altered resources, and those from which strong references lead to them (the reverse strong closure)."""
told = _table(
    "told", Column("repository", Text, primary_key=True), _number("resource"), Column("step", Integer, nullable=False)
)
"""Which resource is told to which repository."""


_SIZE = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'"
)
_PLANNING = "SET LOCAL jit = off; SET LOCAL work_mem = '64MB'; SET LOCAL enable_seqscan = off"  # there is an index
_PREPARED = 1_000  # statements of a connection that are planned once: more than there are
_MOST = 64 << 20  # bytes of these tables, beyond which they are made anew


def prepare(connection: Connection) -> None:
    """Have the tables of this transaction. `altered` is empty; the others are emptied where they are filled."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_PLANNING)
        driver: Any = connection.connection.driver_connection
        driver.prepared_max = _PREPARED
        if (connection.exec_driver_sql(_SIZE).scalar() or 0) > _MOST:  # rows that were removed keep their places there
            connection.exec_driver_sql("DISCARD TEMP")
    if not sa.inspect(connection).has_table(wanted.name):  # they last as long as the connection
        working.create_all(connection, checkfirst=False)
    connection.execute(emptying(altered))


def fill(connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
    """Replace the rows of a table."""
    connection.execute(emptying(table))
    insert_rows(connection, table, list(rows))


def empty(connection: Connection, table: Table) -> None:
    """Remove all rows of a table that may have very many. PostgreSQL would keep their places until the tables are made
    anew; TRUNCATE does not, but has plans made anew."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"TRUNCATE {table.name}")
    else:
        connection.execute(emptying(table))


@cache
def emptying(table: Table) -> sa.Delete:
    """The statement that removes all rows of a table. Statements of a batch are made once: making one takes longer than
    executing it."""
    return table.delete()


def moved_rows(connection: Connection, *statements: sa.Executable) -> int:
    """Execute statements that insert, change or remove rows; returns how many."""
    counted = {"preserve_rowcount": True}
    return sum(connection.execute(statement, execution_options=counted).rowcount for statement in statements)


class _InOrder(Join):
    """A join that is made in the order in which it stands."""

    inherit_cache = True


def _parts(element: _InOrder, compiler: Any, how: dict[str, Any]) -> tuple[str, str, str]:
    """What stands left and right, and the condition."""
    how["asfrom"] = True
    left = element.left._compiler_dispatch(compiler, **how)
    right = element.right._compiler_dispatch(compiler, **how)
    if (linter := how.pop("from_linter", None)) is not None:  # which warns of tables that nothing joins
        linter.edges.update(product(element.left._from_objects, element.right._from_objects))
    assert element.onclause is not None
    return left, right, element.onclause._compiler_dispatch(compiler, **how)


@compiles(_InOrder, "sqlite")
def _cross(element: _InOrder, compiler: Any, **how: Any) -> str:
    left, right, condition = _parts(element, compiler, how)
    return f"{left} {'LEFT JOIN' if element.isouter else 'CROSS JOIN'} {right} ON {condition}"


@compiles(_InOrder, "postgresql")
def _lateral(element: _InOrder, compiler: Any, **how: Any) -> str:
    left, right, condition = _parts(element, compiler, how)
    assert isinstance(element.right, NamedFromClause)
    rows = f"(SELECT * FROM {right} WHERE {condition} OFFSET 0) AS {element.right.name}"
    return f"{left} {'LEFT JOIN' if element.isouter else 'JOIN'} LATERAL {rows} ON true"


def in_order(first: Any, *others: tuple[Any, Any], left: tuple[Any, Any] | None = None) -> Any:
    """`first` joined with the others, each with its condition, in this order; last an outer join with `left`."""
    joined = first
    for table, condition in others:
        joined = _InOrder(joined, table, condition)
    return joined if left is None else _InOrder(joined, *left, isouter=True)


class _Among(FunctionElement[bool]):
    """Is a value one of the rows of a query? It has no type: SQLite would be asked whether a truth value is 1."""

    inherit_cache = True


@compiles(_Among)
def _in(element: Any, compiler: Any, **how: Any) -> str:
    value, rows = (compiler.process(part, **how) for part in element.clauses)
    return f"{value} IN {rows}"


@compiles(_Among, "postgresql")
def _any(element: Any, compiler: Any, **how: Any) -> str:
    value, rows = (compiler.process(part, **how) for part in element.clauses)
    return f"{value} = ANY (ARRAY{rows})"


def among(column: sa.ColumnElement[int], query: sa.Select[tuple[int]]) -> sa.ColumnElement[bool]:
    """Is a value one of the rows of a query, which are few? PostgreSQL would join with all rows of the table."""
    return _Among(column, query.scalar_subquery())


def is_in(table: Table, *conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Does a row of the table meet these conditions? It is looked up by an index: PostgreSQL would make a join of
    EXISTS, and read the whole table for it."""
    row = sa.select(sa.literal(1)).select_from(table).where(*conditions).correlate_except(table)
    return row.limit(1).scalar_subquery().is_not(None)
