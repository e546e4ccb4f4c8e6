"""What a kernel can say of a pair of a publication and a clause (or the clauses of a subscription).

An outcome is a byte. UNKNOWN is not one by itself: flags are added to it (`triplewire.kernels.joins.solutions`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

MISS, MATCH, TRUNCATED = 0, 1, 2
"""There is no solution; there are at most as many as a match may have; there are more."""

UNKNOWN = 16
"""Flags that are added to it say why the outcome is not known."""

LEFT = 255
"""The kernel cannot tell. The pair is left to the next, more general one."""


class Verdicts(NamedTuple):
    """Room for what becomes of pairs: matches, as publications and subscriptions, and whether they are truncated; and
    the pairs that are left."""

    matched: Any  # shape (2, pairs)
    truncated: Any
    left: Any  # shape (2, pairs)
