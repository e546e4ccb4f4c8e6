"""Compiling is told of, once, and loading what is compiled is not."""

from __future__ import annotations

from numba import njit
from numba.core import event

from triplewire.engine.warm_up import Once, warm_up


def test_it_is_told_once_that_kernels_are_compiled() -> None:
    told: list[int] = []
    with event.install_listener("numba:compile", Once(lambda: told.append(1))):
        for number in range(2):
            assert njit(lambda x, number=number: x + number)(1) == 1 + number
    assert told == [1]


def test_nothing_is_told_where_all_is_compiled() -> None:
    told: list[int] = []
    warm_up("trie")
    warm_up("trie", lambda: told.append(1))
    warm_up("reference", lambda: told.append(1))
    assert not told
