"""The window: the newest publications that are kept, as far as somebody may see them, and what a query finds there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.publications import restored
from triplewire.engine import Engine
from triplewire.model.match import bindings_to_json
from triplewire.model.publication import Publication
from triplewire.store.tables import publications

WINDOW = 1_000
"""How many publications a query is asked of."""


class Found(NamedTuple):
    """A publication that a query matches, as the store has it and as a graph, with the bindings as JSON has them."""

    row: Row[Any]
    content: Publication
    bindings: list[dict[str, dict[str, str]]]


def may_see(owner: str, readers: str | None) -> bool:
    """May an owner see a publication with these readers, as the store has them?"""
    return readers is None or owner in json.loads(readers)


def newest(connection: Connection, owner: str, most: int = WINDOW) -> list[tuple[Row[Any], Publication]]:
    """The newest content of the newest publications that an owner may see, the newest first."""
    here = sa.select(publications).where(publications.c.state != "refused")
    found: dict[str, tuple[Row[Any], Publication]] = {}
    for row in connection.execute(here.order_by(publications.c.number.desc()).limit(most)):
        if row.id not in found and may_see(owner, row.readers):
            found[row.id] = row, restored(row.body, row.id, row.source)
    return list(found.values())


def asked(engine: Engine, window: Sequence[tuple[Row[Any], Publication]]) -> list[Found]:
    """Those of the window that the one query of an engine matches."""
    bindings = {match.publication: match.bindings for match in engine.match([content for _, content in window])}
    return [Found(row, content, bindings_to_json(bindings[row.id])) for row, content in window if row.id in bindings]
