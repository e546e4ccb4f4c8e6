"""Owners who act for others, as the site of a CMS does for its users.

The owner `site/ann` is a user of the owner `site`: what is of `site/ann` is of `site` as well, and of nobody else.
"""

from __future__ import annotations

import re

import sqlalchemy as sa

from triplewire.errors import ArgumentError

_BETWEEN = "/"
_USER = re.compile(r"[^\x00-\x1f\x7f/?#]{1,200}")


def user_of(owner: str, user: str) -> str:
    """The owner that is a user of another one. Raises `ArgumentError` for what is no name."""
    if not _USER.fullmatch(user):
        raise ArgumentError(f"{user!r} is no name of a user", remedy="up to 200 characters, none of / ? # or controls")
    return f"{owner}{_BETWEEN}{user}"


def name_of_user(owner: str) -> str:
    """The name of a user, without that of the owner who acts for it; "" for an owner that is no user."""
    return owner.partition(_BETWEEN)[2]


def acts_for(owner: str, other: str) -> bool:
    """Is what is of the other one of this owner?"""
    return other == owner or other.startswith(owner + _BETWEEN)


def held_by(column: sa.ColumnElement[str], owner: str) -> sa.ColumnElement[bool]:
    """The same as a condition on a column. (LIKE would take no notice of case in SQLite.)"""
    begin = owner + _BETWEEN
    return (column == owner) | (sa.func.substr(column, 1, len(begin)) == begin)


def reader_named(owner: str, name: str) -> str:
    """The owner that a publisher names as a reader: `/ann` is its user ann, `/` itself, another name an owner."""
    if not name.startswith(_BETWEEN):
        return name
    return owner if name == _BETWEEN else user_of(owner, name[1:])
