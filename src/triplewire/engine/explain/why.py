"""The reasons of a match as a few sentences, beside it: `match --why`, `watch --why`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triplewire.errors import TriplewireError
from triplewire.model.match import Match
from triplewire.model.publication import Publication

if TYPE_CHECKING:
    from triplewire.engine.engine import Engine


def reasons_of(engine: Engine, match: Match, publication: Publication | None = None) -> list[str]:
    """Why it is a match (`Explanation.reasons`), or why that cannot be said, as where a limit is passed. `publication`:
    as for `Engine.explain`."""
    try:
        return list(engine.explain(match, publication).reasons)
    except TriplewireError as error:
        return [f"it cannot be explained: {error}"]
