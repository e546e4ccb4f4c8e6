"""The engine of a broker in a folder, so that a restart opens it and takes over what has changed since.

Beside the engine (`Engine.save`) lie the arrays of `Followed` and the number of the last change that is in all of it;
the engine may have later ones, which are then taken over once more. What lies there is used only for the database it
was made from, and with today's operators and limits; anything that is wrong with it is no error: all subscriptions are
registered anew.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.store.database import highest, made_once
from triplewire.store.tables import changes, facts

if TYPE_CHECKING:
    from triplewire.broker.subscriptions.followed import StoreTexts
    from triplewire.store.database import Database

FEWEST = 10_000
"""Changes after which an engine is saved again."""

_ENGINE, _ABOUT, _ARRAYS = "engine", "engine.json", "engine.npz"
_SECONDS = 60.0  # that another process may need to save to the same folder


class Known(NamedTuple):
    """What `Followed` knows beside its engine."""

    last: int
    owners: list[str]
    owner: NDArray[np.int32]
    flags: NDArray[np.uint8]


def _lock(folder: Path) -> FileLock:
    return FileLock(folder / "engine.lock", timeout=_SECONDS)


def _identity(database: Database) -> str:
    """What a database is known by, given to it when it is asked for the first time."""
    return made_once(database, facts, "identity", lambda: uuid.uuid4().hex)


def save(folder: Path, engine: Engine, known: Known, database: Database) -> None:
    """Write an engine, and what was known when it was not newer than this, in place of those before. Raises
    `TriplewireError`, and `OSError` for a full disk."""
    about = {"database": _identity(database), "last": known.last, "owners": known.owners}
    with _lock(folder):
        (folder / _ABOUT).unlink(missing_ok=True)  # while the rest is written, nothing there is whole
        engine.save(folder / _ENGINE)
        np.savez(folder / _ARRAYS, owner=known.owner, flags=known.flags)
        part = folder / f".{_ABOUT}"
        part.write_text(json.dumps(about), "utf-8")
        part.replace(folder / _ABOUT)


def load(folder: Path, engine: Engine, texts: StoreTexts, database: Database) -> tuple[Engine, Known] | None:
    """The engine that was saved, and what was known; None where there is none of this database that can be used.
    `engine` has the operators, the taxonomy and the limits."""
    try:
        with _lock(folder):
            about: dict[str, Any] = json.loads((folder / _ABOUT).read_text("utf-8"))
            with database.reading() as connection:
                newest = highest(connection, changes.c.number)
            if about["database"] != _identity(database) or about["last"] > newest:
                (folder / _ABOUT).unlink()  # another database, or put back from a copy: its changes may get there again
                return None
            with np.load(folder / _ARRAYS) as arrays:
                known = Known(about["last"], about["owners"], arrays["owner"], arrays["flags"])
            loaded = Engine.load(
                folder / _ENGINE,
                operators=engine.operators,
                settings=engine.settings,
                operator_order=engine.operator_order,
                tables=texts,
            )
    except (OSError, ValueError, KeyError, BadZipFile, Timeout, TriplewireError):
        return None
    if loaded.taxonomy != engine.taxonomy:
        loaded.taxonomy = engine.taxonomy
    return loaded, known
