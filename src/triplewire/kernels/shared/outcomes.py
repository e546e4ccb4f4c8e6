"""What a kernel can say of a pair of a publication and a clause (or the clauses of a subscription).

An outcome is a byte. UNKNOWN is not one by itself: flags are added to it (`triplewire.kernels.joins.solutions`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from triplewire.kernels.shared.compiled import called_helper

MISS, MATCH, TRUNCATED = 0, 1, 2
"""There is no solution; there are at most as many as a match may have; there are more."""

UNKNOWN = 16
"""Flags that are added to it say why the outcome is not known."""

LEFT = 255
"""The kernel cannot tell. The pair is left to the next, more general one."""


class Verdicts(NamedTuple):
    """Room for what becomes of pairs: matches, as publications and subscriptions, and whether they are truncated; and
    the pairs that are left."""

    outcome: Any  # scratch, a byte a pair
    matched: Any  # shape (2, pairs)
    truncated: Any
    left: Any  # shape (2, pairs)


@called_helper
def write_outcomes(publication: Any, clause: Any, owner: Any, verdicts: Verdicts) -> Any:
    """Matches go to `matched`, pairs that are not decided to `left`; how many each."""
    (outcome, matched, truncated, left), matches, others = verdicts, 0, 0
    for k in range(clause.size):
        if outcome[k] == LEFT:
            left[0, others], left[1, others], others = publication[k], clause[k], others + 1
        elif outcome[k] != MISS:
            matched[0, matches], matched[1, matches] = publication[k], owner[clause[k]]
            truncated[matches] = outcome[k] == TRUNCATED
            matches += 1
    return matches, others
