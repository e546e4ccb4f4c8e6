"""The index that narrows nothing: every clause is to be checked. All others are tested against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from triplewire.select.index import Selected, Space

if TYPE_CHECKING:  # as in `index`
    from triplewire.clauses.clauses import Clauses
    from triplewire.clauses.view import View


@dataclass(frozen=True, slots=True)
class Everything:
    """Leaves all clauses to verification, for every publication."""

    clauses: int
    names_clauses = True

    def prepare(self, view: View) -> None:
        """Nothing serves several parts."""

    def select(self, view: View, prepared: None, most: int, space: Space) -> Selected:
        """No subscription is accepted, and every clause is to be checked."""
        publications = len(view)
        check = np.tile(np.arange(self.clauses, dtype=np.int32), publications)
        offset = np.arange(publications + 1, dtype=np.int64)
        return Selected(np.zeros_like(offset), np.zeros(0, np.int32), offset * self.clauses, check)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}


class EverythingMaker:
    """The matcher "everything"."""

    name = "everything"
    version = 1

    def build(self, clauses: Clauses) -> Everything:
        """The index over the clauses."""
        return Everything(clauses.count)

    def open(self, clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> Everything:
        """The same: nothing is saved."""
        return self.build(clauses)


EVERYTHING = EverythingMaker()
