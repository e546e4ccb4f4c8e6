"""How many generated cases the tests try. `make full` tries all of them: decision 039."""

from __future__ import annotations

import os

COMPARED = int(os.environ.get("TRIPLEWIRE_TEST_PAIRS") or 6_000)
"""Pairs that generated tests compare, or a measure of them."""

IN_FULL = os.environ.get("TRIPLEWIRE_DAMAGE") == "all"


def usually(number: int, in_full: int) -> int:
    """How many cases to try: `make full` tries `in_full`."""
    return in_full if IN_FULL else number


def examples(number: int) -> int:
    """A sixth of the number that `make full` tries."""
    return number if IN_FULL else -(-number // 6)
