"""How many generated cases the tests try. `make full` tries all of them: decision 071."""

from __future__ import annotations

import os

COMPARED = int(os.environ.get("TRIPLEWIRE_TEST_PAIRS") or 10_000)
"""Pairs that generated tests compare, or a measure of them."""

IN_FULL = os.environ.get("TRIPLEWIRE_DAMAGE") == "all"


def examples(number: int) -> int:
    """A third of the number that `make full` tries."""
    return number if IN_FULL else -(-number // 3)
