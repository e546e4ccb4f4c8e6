"""The engine of a broker in a folder, so that a restart opens it and takes over what has changed since.

Beside the engine (`Engine.save`) lie the arrays of `Followed` and the number of the last change that is in them. What
lies there is used only for the database it was made from, and with the same operators and limits; anything else about
it that is wrong is no error: all subscriptions are registered anew.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.store.tables import changes, facts

if TYPE_CHECKING:
    from triplewire.broker.subscriptions import Followed, StoreTexts
    from triplewire.store.database import Database

FEWEST = 10_000
"""Changes after which an engine is saved again."""

_ENGINE, _ABOUT, _ARRAYS = "engine", "engine.json", "engine.npz"


def identity(database: Database) -> str:
    """What a database is known by, given to it when it is asked for the first time."""

    def write(connection: sa.Connection) -> str:
        known: str | None = connection.execute(sa.select(facts.c.value).where(facts.c.name == "identity")).scalar()
        if known is None:
            known = uuid.uuid4().hex
            connection.execute(facts.insert().values(name="identity", value=known))
        return known

    return database.write(write)


def save(folder: Path, followed: Followed, last: int, database: Database) -> None:
    """Write the engine and the arrays, in place of those before. `last`: the number of the last change in them. Raises
    `StoreError`, `LimitError`, and `OSError` for a full disk."""
    (folder / _ABOUT).unlink(missing_ok=True)  # while the rest is written, nothing there is whole
    followed.engine.save(folder / _ENGINE)
    np.savez(folder / _ARRAYS, owner=followed.owner, flags=followed.flags)
    about = {"database": identity(database), "last": last, "owners": followed.owners}
    part = folder / f".{_ABOUT}"
    part.write_text(json.dumps(about), "utf-8")
    part.replace(folder / _ABOUT)


def load(folder: Path, engine: Engine, texts: StoreTexts, database: Database) -> tuple[Engine, dict[str, Any]] | None:
    """The engine that was saved, and its arrays, owners and last change; None where there is none of this database that
    can be used. `engine` has the operators, the taxonomy and the limits."""
    try:
        about = json.loads((folder / _ABOUT).read_text("utf-8"))
        with database.reading() as connection:
            newest = connection.execute(sa.select(sa.func.max(changes.c.number))).scalar() or 0
        if about["database"] != identity(database) or about["last"] > newest:
            return None
        with np.load(folder / _ARRAYS) as arrays:
            about |= {name: arrays[name] for name in ("owner", "flags")}
        loaded = Engine.load(
            folder / _ENGINE,
            operators=engine.operators,
            settings=engine.settings,
            operator_order=engine.operator_order,
            tables=texts,
        )
        if loaded.taxonomy != engine.taxonomy:
            loaded.taxonomy = engine.taxonomy
    except (OSError, ValueError, KeyError, TriplewireError):
        return None
    return loaded, about
