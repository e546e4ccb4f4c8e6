"""Owners: whom everything is of, who acts for whom, and the tokens by which they are known.

An owner may have namespaces of the taxonomy that it may change. The owner `site/ann` is a user of the owner `site`, as
the site of a CMS has them: what is of `site/ann` is of `site` as well, and of nobody else. Of API tokens only the
SHA-256 is kept. A namespace is the beginning of IRIs, as `https://site.example/terms#`; the owner of the service may
change the whole taxonomy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.tickets import API, digest, new_ticket
from triplewire.errors import ArgumentError, SubscriptionError
from triplewire.model.terms import IRI
from triplewire.store.database import Database, begins_with, fact, now, state
from triplewire.store.tables import facts, tokens

_BETWEEN = "/"
_NAMESPACES = "namespaces"  # the name of the fact
NAME_IN_PATH = re.compile(r"(?!\.{1,2}\Z)[^\x00-\x1f\x7f/?#]{1,200}")
"""An id of a subscription, or the name of a user: what can be one part of the path of an address."""

RULE_OF_NAMES = "up to 200 characters, none of / ? # or controls, and not . or .."


def user_of(owner: str, user: str) -> str:
    """The owner that is a user of another one. Raises `ArgumentError` for what is no name."""
    if not NAME_IN_PATH.fullmatch(user):
        raise ArgumentError(f"{user!r} is no name of a user", remedy=RULE_OF_NAMES)
    return f"{owner}{_BETWEEN}{user}"


def name_of_user(owner: str) -> str:
    """The name of a user, without that of the owner who acts for it; "" for an owner that is no user."""
    return owner.partition(_BETWEEN)[2]


def acts_for(owner: str, other: str) -> bool:
    """Is what is of the other one of this owner?"""
    return other == owner or other.startswith(owner + _BETWEEN)


def held_by(column: sa.ColumnElement[str], owner: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """The same as a condition on a column."""
    return (column == owner) | begins_with(column, owner + _BETWEEN)


def reader_named(owner: str, name: str) -> str:
    """The owner that a publisher names as a reader: `/ann` is its user ann, `/` itself, another name an owner."""
    if not name.startswith(_BETWEEN):
        return name
    return owner if name == _BETWEEN else user_of(owner, name[1:])


# --- API tokens ------------------------------------------------------------------------------------------------------


def new_token(database: Database, owner: str) -> str:
    """An API token of an owner; it is told this once."""
    token = new_ticket(API)
    database.execute(tokens.insert().values(digest=digest(token), owner=owner, created=now()))
    return token


def revoke(database: Database, owner: str, digest: bytes) -> None:
    """End the token of this digest, if it is the owner's."""
    here = tokens.c.owner == owner, tokens.c.digest == digest
    database.execute(tokens.update().where(*here).values(revoked=now()))


def owner_of(database: Database, digest: bytes) -> str | None:
    """Whose API token has this digest; None for another one."""
    owner: str | None = database.value(
        sa.select(tokens.c.owner).where(tokens.c.digest == digest, tokens.c.revoked.is_(None))
    )
    return owner


def tokens_of(database: Database, owner: str) -> Sequence[Row[Any]]:
    """The tokens of an owner that count, the newest first."""
    here = sa.select(tokens).where(tokens.c.owner == owner, tokens.c.revoked.is_(None))
    return database.rows(here.order_by(tokens.c.created.desc()))


def has_tokens(database: Database) -> bool:
    """Is there a token that counts?"""
    return database.value(sa.select(tokens.c.owner).where(tokens.c.revoked.is_(None)).limit(1)) is not None


# --- namespaces ------------------------------------------------------------------------------------------------------


def owners_by_namespace(connection: Connection) -> dict[str, str]:
    """Namespaces and the owners whom they were granted to."""
    return dict(json.loads(fact(connection, facts, _NAMESPACES) or "{}"))


def grant(connection: Connection, namespace: str, owner: str) -> None:
    """Grant a namespace to an owner. Raises `ArgumentError` for what is no IRI, and `SubscriptionError` where another
    owner has it, or a part of it."""
    IRI(namespace)
    granted = owners_by_namespace(connection)
    for other, whose in granted.items():
        if whose != owner and (other.startswith(namespace) or namespace.startswith(other)):
            raise SubscriptionError(f"the namespace {other} was granted to {whose}", remedy="choose another")
    state(connection, facts, **{_NAMESPACES: json.dumps({**granted, namespace: owner})})


def take_back(connection: Connection, owner: str) -> None:
    """Take the namespaces of an owner back. What is stated of their classes stays."""
    rest = {name: whose for name, whose in owners_by_namespace(connection).items() if whose != owner}
    state(connection, facts, **{_NAMESPACES: json.dumps(rest)})
