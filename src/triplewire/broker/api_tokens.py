"""API tokens of owners in the store: only their SHA-256 is there."""

from __future__ import annotations

import sqlalchemy as sa

from triplewire.broker.tickets import API, digest, new_ticket
from triplewire.store.database import Database, now
from triplewire.store.tables import tokens


def new_token(database: Database, owner: str) -> str:
    """An API token of an owner; it is told this once."""
    token = new_ticket(API)
    row = tokens.insert().values(digest=digest(token), owner=owner, created=now())
    database.write(lambda connection: connection.execute(row))
    return token


def revoke(database: Database, owner: str, digest: bytes) -> None:
    """End the token of this digest, if it is the owner's."""
    here = tokens.update().where(tokens.c.owner == owner, tokens.c.digest == digest)
    database.write(lambda connection: connection.execute(here.values(revoked=now())))


def owner_of(database: Database, token: str) -> str | None:
    """Whose API token it is; None for another text."""
    return owner_of_digest(database, digest(token))


def owner_of_digest(database: Database, digest: bytes) -> str | None:
    """Whose API token has this digest; None for another one."""
    here = sa.select(tokens.c.owner).where(tokens.c.digest == digest, tokens.c.revoked.is_(None))
    with database.reading() as connection:
        return connection.execute(here).scalar()


def has_tokens(database: Database) -> bool:
    """Is there a token that counts?"""
    here = sa.select(tokens.c.owner).where(tokens.c.revoked.is_(None)).limit(1)
    with database.reading() as connection:
        return connection.execute(here).first() is not None
