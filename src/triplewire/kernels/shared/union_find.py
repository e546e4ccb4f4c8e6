"""Sets that are joined step by step, each named by one of its members: `parent` leads from a member towards it.

R. Tarjan, "Efficiency of a Good But Not Linear Set Union Algorithm", Journal of the ACM 22 (1975).
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import called_helper


@called_helper
def root(parent: Any, member: int) -> Any:
    """The member that names the set. The way to it is halved for the next time."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member
