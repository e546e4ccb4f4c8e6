"""Sets as bits with counts: each number is told in or out, and members are numbered in their order."""

from __future__ import annotations

import numpy as np
import pytest

from triplewire.kernels.shared.bits import BLOCK_SIZE, member
from triplewire.select.trie.members import block_count, count_members, members_of

SIZES = [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 1_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
def test_members_are_told_and_numbered(size: int, share: float) -> None:
    is_member = np.random.default_rng(size).random(size) < share
    members = members_of(is_member)
    before = np.cumsum(is_member) - is_member
    told = [member(members, number) for number in range(size)]
    assert told == list(zip(is_member.tolist(), before.tolist(), strict=True))
    assert len(members) == block_count(size)
    assert count_members(members) == np.count_nonzero(is_member)


def test_no_blocks_have_no_members() -> None:
    assert count_members(np.zeros(0, np.int64)) == 0
