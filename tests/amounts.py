"""How many generated cases the tests try. `make full` tries all of them: decision 039."""

from __future__ import annotations

import os

from triplewire import plugins

COMPARED = int(os.environ.get("TRIPLEWIRE_TEST_PAIRS") or 3_000)
"""Pairs that generated tests compare, or a measure of them."""

IN_FULL = os.environ.get("TRIPLEWIRE_DAMAGE") == "all"


def usually(number: int, in_full: int) -> int:
    """How many cases to try: `make full` tries `in_full`."""
    return in_full if IN_FULL else number


def examples(number: int) -> int:
    """A sixth of the number that `make full` tries."""
    return number if IN_FULL else -(-number // 6)


OF_PAPERS = [name for name, place in plugins.BUILT_IN["matcher"].items() if ".papers." in place]
"""The matchers of the papers. Tests of indexes and of agreement try them all; those of engines only in `make full`."""

MATCHERS = [name for name in plugins.names("matcher") if IN_FULL or name not in OF_PAPERS]
"""The matchers that tests of engines try."""
