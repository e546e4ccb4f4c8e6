"""Room for match rows: what was taken stays as it is, however the room grows."""

from __future__ import annotations

import numpy as np
import pytest

from triplewire.engine.segments import arena as arenas
from triplewire.engine.segments.arena import Arena, Columns

PARTS = [(3, 2, 0), (0, 0, 7), (50, 1, 0), (4, 3, 100), (200, 0, 5)]  # accepted a publication, others, first number


def others(count: int) -> Columns:
    numbers = np.arange(count, dtype=np.int32)
    return numbers, numbers + np.int32(1_000), np.ones(count, np.bool_)


def expected(accepted: int, more: int, start: int) -> list[tuple[int, int, bool]]:
    rows = [(p, start + i, False) for p in range(2) for i in range(accepted)]
    return rows + [(n, 1_000 + n + start, True) for n in range(more)]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("first", [1, 16, 1 << 13])
def test_parts_of_any_size(monkeypatch: pytest.MonkeyPatch, first: int, in_place: bool) -> None:
    monkeypatch.setattr(arenas, "_FIRST", first)
    arena, taken = Arena(), []
    for accepted, more, start in PARTS:
        offset, found = np.array([0, accepted, 2 * accepted]), np.tile(np.arange(accepted, dtype=np.int32), 2)
        if in_place:
            arena.more(len(found), 0)
            arena.free[: len(found)] = found
            found = arena.free[: len(found)]
        arena.add(offset, found, others(more), start)
        taken.append(arena.take_rows())
    for part, columns in zip(PARTS, taken, strict=True):
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected(*part)


def test_what_is_written_is_kept_where_more_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "_FIRST", 4)
    arena = Arena()
    arena.add(np.array([0, 2]), np.array([5, 6], np.int32), others(0), 0)
    arena.free[:2] = 7, 8
    arena.more(100, 2)
    assert len(arena.free) >= 100
    arena.add(np.array([0, 2]), arena.free[:2], others(1), 10)
    publication, subscription, truncated = (column.tolist() for column in arena.take_rows())
    assert (publication, subscription) == ([0, 0, 0, 0, 0], [5, 6, 17, 18, 1_010])
    assert truncated == [False, False, False, False, True]
    assert [len(column) for column in arena.take_rows()] == [0, 0, 0]


def piece(columns: Columns) -> int:
    """The memory that rows lie in."""
    lent = columns[1].base
    assert lent is not None
    return id(lent.base.obj)


def test_a_piece_is_used_again_once_nobody_holds_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "_FIRST", 4)
    monkeypatch.setattr(arenas, "_MOST", 100)
    arena, held, seen = Arena(), list[Columns](), set[int]()
    offset, found = np.array([0, 60]), np.arange(60, dtype=np.int32)

    def part() -> Columns:
        arena.more(100, 0)
        arena.add(offset, found, others(0), 0)
        return arena.take_rows()

    for _ in range(20):
        held = [*held[-1:], part()]
        assert all(columns[1].tolist() == list(range(60)) for columns in held)
        seen.add(piece(held[-1]))
    assert len(seen) == 3  # two are held while rows are put into another one
    kept = [part() for _ in range(10)]
    assert all(columns[1].tolist() == list(range(60)) for columns in kept)
    assert len({piece(columns) for columns in kept}) == 10
    assert len(arena._pieces) == arenas._REMEMBERED


def test_a_part_begins_with_room_for_as_many_rows_as_others_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "_FIRST", 4)
    monkeypatch.setattr(arenas, "_MOST", 10)
    arena = Arena()
    for count in (60, 3, 60):
        arena.begin(1)
        arena.add(np.array([0, count]), np.arange(count, dtype=np.int32), others(0), 0)
        assert len(arena.take_rows()[0]) == count
        arena.begin(1)
        assert len(arena.free) >= 60
        arena.begin(1_000_000)
        assert len(arena.free) < 1_000
