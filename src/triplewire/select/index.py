"""The seam for matchers: an index over clauses answers which subscriptions of them could match a batch.

An `IndexMaker` is what the name of a matcher stands for (`triplewire.plugins`). It builds an `Index` over `Clauses`, or
opens it from the arrays that were saved. Segments, live changes, storage and verification are the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard, TypeVar, runtime_checkable

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
    once, by their places in the order of the index (`Index.order`). `atoms` counts what the publications satisfied,
    `nodes` what of the index was visited or looked up, `comparisons` the rows that joins of its own tried, `list_steps`
    the entries of lists that it read.
    """

    offset: Offsets  # publication -> its slice of `subscription`; one entry more than publications
    subscription: Ids  # accepted
    check_offset: Offsets  # publication -> its slice of `check_place`
    check_place: Ids
    atoms: int = 0
    nodes: int = 0
    comparisons: int = 0
    list_steps: int = 0

    @property
    def work(self) -> tuple[int, int, int]:
        """What selection has looked at: `nodes`, `comparisons` and `list_steps`."""
        return self.nodes, self.comparisons, self.list_steps

    @property
    def candidates(self) -> int:
        """Accepted subscriptions and clauses to check."""
        return len(self.subscription) + len(self.check_place)

    def without(self, tombstones: NDArray[np.bool_], owner: Ids) -> Selected:
        """The same without subscriptions that are removed. `owner`: place -> subscription."""
        offset, subscription = staying(self.offset, self.subscription, ~tombstones[self.subscription])
        check_offset, check_place = staying(self.check_offset, self.check_place, ~tombstones[owner[self.check_place]])
        return replace(
            self, offset=offset, subscription=subscription, check_offset=check_offset, check_place=check_place
        )


def staying(offset: Offsets, rows: Ids, stays: NDArray[np.bool_]) -> tuple[Offsets, Ids]:
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
    """An index over clauses. Never changed once made, so any number of threads may ask it."""

    @property
    def order(self) -> Ids | None:
        """The clauses in the order of the index, by whose places it names them; None where it names them by their
        numbers. The join network lists clauses in this order, so that those named together lie together."""

    @property
    def proves_constants(self) -> bool:
        """Does a publication have all patterns without variables of each clause that the index names for it?
        Verification does not look for them then."""

    def prepare(self, view: View) -> Prepared | None:
        """What serves all parts of the view; None where nothing does."""

    def select(self, view: View, prepared: Any, most: int, space: Space) -> Selected:
        """What could match: all subscriptions that do, and maybe others.

        `prepared` is what `prepare` gave for these publications, or None. `most` is `Settings.most_bindings`: a
        subscription may be accepted only where it has no more bindings than that.
        """

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """What is saved, for `IndexMaker.open`."""


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


class Insertable(Index, Protocol):
    """An index that grows: where others are built anew, more subscriptions are inserted into it. The engine does so
    when it takes new subscriptions into a segment, and when it merges segments."""

    def inserted(self, clauses: Clauses, first: int) -> Index:
        """The index over clauses: those of the subscriptions that this one has, and behind them those of the
        subscriptions from number `first` on. It may share memory with this one, which goes on to answer as before.

        Subscriptions, clauses and constants keep their numbers, and new ones come behind them. The numbers of tests
        may be others."""


def can_grow(index: Index) -> TypeGuard[Insertable]:
    """Is it an `Insertable`? To ask for all that a protocol has takes as long as to match a publication."""
    return hasattr(index, "inserted")


@runtime_checkable
class TellsLeft(Protocol):
    """An index that tells which subscriptions it never accepts, since it cannot hold all that they say."""

    @property
    def left(self) -> Ids:
        """The numbers of these subscriptions, ascending."""


class WarmUp(NamedTuple):
    """Subscriptions, as (language, text), and documents of N-Quads: matching each document with all subscriptions runs
    each kernel of a matcher once. So they are compiled in advance, in a process of their own."""

    subscriptions: tuple[tuple[str, str], ...]
    documents: tuple[bytes, ...]


@runtime_checkable
class WarmedMaker(IndexMaker, Protocol):
    """A maker of indexes that have kernels of their own. Those outside this package are registered
    (`triplewire.extend.kernels`)."""

    warm_up: WarmUp
