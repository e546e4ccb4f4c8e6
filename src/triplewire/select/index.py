"""The seam for matchers: an index over clauses answers which subscriptions of them could match a batch.

An `IndexMaker` is what the name of a matcher stands for (`triplewire.plugins`). It builds an `Index` over `Clauses`, or
opens it from the arrays that were saved. Segments, live changes, storage and verification are the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets

if TYPE_CHECKING:  # they bring compiled kernels along, which whoever only asks for a matcher does without
    from triplewire.clauses.clauses import Clauses
    from triplewire.clauses.view import View

PreparedT = TypeVar("PreparedT", bound="Prepared")


class Space(Protocol):
    """Memory for accepted subscriptions, so that match rows need not be copied. Its use is optional."""

    @property
    def free(self) -> Ids:
        """Room for the next subscriptions."""

    def more(self, least: int, used: int) -> None:
        """Have room for at least so many subscriptions; the first `used` of those in `free` are kept."""


@dataclass(slots=True)
class Selected:
    """What an index says of a batch, as slices by publication.

    Accepted subscriptions surely match, and their bindings are not truncated; each is there once. They may lie in the
    `Space` until it is used again. Of the other subscriptions that could match, the clauses to check are named, each
    once, by their places in the order of the index (`order_of`). `atoms` counts what the publications satisfied,
    `nodes` what of the index was visited.
    """

    offset: Offsets  # publication -> its slice of `subscription`; one entry more than publications
    subscription: Ids  # accepted
    check_offset: Offsets  # publication -> its slice of `check_place`
    check_place: Ids
    atoms: int = 0
    nodes: int = 0

    @property
    def candidates(self) -> int:
        """Accepted subscriptions and clauses to check."""
        return len(self.subscription) + len(self.check_place)

    def without(self, tombstones: NDArray[np.bool_], owner: Ids) -> Selected:
        """The same without subscriptions that are removed. `owner`: place -> subscription."""
        offset, subscription = _kept(self.offset, self.subscription, ~tombstones[self.subscription])
        check_offset, check_place = _kept(self.check_offset, self.check_place, ~tombstones[owner[self.check_place]])
        return replace(
            self, offset=offset, subscription=subscription, check_offset=check_offset, check_place=check_place
        )


def _kept(offset: Offsets, rows: Ids, stays: NDArray[np.bool_]) -> tuple[Offsets, Ids]:
    """The slices with the rows that stay."""
    before = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(stays, out=before[1:])
    return before[offset], rows[stays]


def owners(offset: Offsets) -> Ids:
    """Row -> its publication, for rows that lie in slices by publication."""
    if len(offset) == 2:
        return np.zeros(offset[1], np.int32)
    return np.repeat(np.arange(len(offset) - 1, dtype=np.int32), np.diff(offset))


class Prepared(Protocol):
    """What an index works out once for all publications of a batch that is then selected in parts."""

    def part(self: PreparedT, first: int, last: int) -> PreparedT:
        """The same for the publications first .. last - 1 alone."""


class Index(Protocol):
    """An index over clauses. Never changed once made, so any number of threads may ask it.

    It may have the attributes `proves_constants` (see the function of this name) and `order` (`order_of`).
    """

    def prepare(self, view: View) -> Prepared | None:
        """What serves all parts of the view; None where nothing does."""

    def select(self, view: View, prepared: Any, most: int, space: Space) -> Selected:
        """What could match: all subscriptions that do, and maybe others.

        `prepared` is what `prepare` gave for these publications, or None. `most` is `Settings.most_bindings`: a
        subscription may be accepted only where it has no more bindings than that.
        """

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """What is saved, for `IndexMaker.open`."""


def proves_constants(index: Index) -> bool:
    """Does a publication have all patterns without variables of each clause that the index names for it? So says its
    attribute of this name; verification does not look for them then."""
    return bool(getattr(index, "proves_constants", False))


def order_of(index: Index) -> Ids | None:
    """The clauses in the order of the index, by whose places it names them: its attribute `order`. None where it names
    them by their numbers. The join network lists clauses in this order, so that those named together lie together."""
    order: Ids | None = getattr(index, "order", None)
    return order


@runtime_checkable
class IndexMaker(Protocol):
    """What the name of a matcher stands for. `version` changes with the arrays that its indexes save."""

    name: str
    version: int

    def build(self, clauses: Clauses) -> Index:
        """An index over the clauses."""

    def open(self, clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> Index:
        """The index over the clauses that gave these arrays, which may be memory maps. They are what was saved: their
        file had its SHA-256. Raises `KeyError` or `ValueError` where they are not all there."""
