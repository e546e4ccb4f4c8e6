"""Numbers that are passed over when a database is put back from a copy: between the copy and its loss, others may have
been given. The address of a feed is made from the number of its subscription, so such a number never comes again
either.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker.subscriptions import ENDED
from triplewire.store.database import now
from triplewire.store.tables import events, facts, subscriptions

_EVENTS, _SUBSCRIPTIONS = 10_000_000, 100_000  # more than were given in between
_FIRST = {"first_number": events.c.number, "first_sequence": events.c.sequence}


def skip_numbers(connection: Connection) -> None:
    """Have the numbers of events and subscriptions to come begin behind all that may have been given."""
    for name, column in _FIRST.items():
        first = max(_first(connection, name), _most(connection, column) + 1) + _EVENTS
        connection.execute(facts.delete().where(facts.c.name == name))
        connection.execute(facts.insert().values(name=name, value=str(first)))
    connection.execute(facts.delete().where(facts.c.name == "identity"))  # no engine that was saved is of this database
    number = _most(connection, subscriptions.c.number) + _SUBSCRIPTIONS
    about = {"number": number, "owner": "", "id": f"skipped-{number}", "language": "", "query": "", "title": ""}
    state = {"state": ENDED, "reason": "put back from a copy", "once_per_story": False, "price": "{}", "revision": 1}
    connection.execute(
        subscriptions.insert().values(**about, **state, created=now(), expires=now(), ticket=b"")
    )  # the next number follows it
    if connection.dialect.name == "postgresql":
        sequence = sa.func.pg_get_serial_sequence("subscriptions", "number")
        connection.execute(sa.select(sa.func.setval(sequence, number)))


def keep_numbers(connection: Connection) -> None:
    """Have no number of an event that is there now come again, be it removed."""
    first = max(_first(connection, "first_number"), _most(connection, events.c.number) + 1)
    connection.execute(facts.delete().where(facts.c.name == "first_number"))
    connection.execute(facts.insert().values(name="first_number", value=str(first)))


def first_numbers(connection: Connection) -> tuple[int, int]:
    """The least number and the least sequence of an event to come."""
    number, sequence = (_first(connection, name) for name in _FIRST)
    return number, sequence


def _first(connection: Connection, name: str) -> int:
    return int(connection.execute(sa.select(facts.c.value).where(facts.c.name == name)).scalar() or 1)


def _most(connection: Connection, column: sa.Column[int]) -> int:
    return int(connection.execute(sa.select(sa.func.max(column))).scalar() or 0)
