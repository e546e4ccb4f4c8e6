"""Chains of calls, what it saves to take one of two chains first, and paths of chains (operators paper, section 4.2).

    chained:  the calls of each subscription, by weight
    linked:   pairs of chains that share a call, and what it saves to take one before the other
    paths:    edges by what they save, as long as each chain has two neighbours at most and none closes a cycle
    walked:   the chains of each path from one end to the other, in the direction that saves more

Used through `triplewire.operators.order.greedy`.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import called_helper, kernel
from triplewire.kernels.shared.search import root


@kernel
def chained(offset: Any, call: Any, weight: Any, chain: Any) -> None:
    """Write the calls of each subscription to `chain` by ascending weight; equal ones by number."""
    for subscription in range(offset.size - 1):
        first = offset[subscription]
        for i in range(first, offset[subscription + 1]):
            new_call, place = call[i], i
            while place > first and (
                weight[chain[place - 1]] > weight[new_call]
                or (weight[chain[place - 1]] == weight[new_call] and chain[place - 1] > new_call)
            ):
                chain[place] = chain[place - 1]
                place -= 1
            chain[place] = new_call


@called_helper
def saving(offset: Any, chain: Any, weight: Any, true: Any, cost: Any, a: int, b: int) -> float:
    """Expected cost of both chains with `a` first, less that with `b` first."""
    total, p_a, p_b = 0.0, 1.0, 1.0
    c_a, c_b, q_a, q_b = 0.0, 0.0, 1.0, 1.0  # cost above, and probability of what is above, without earlier links
    i, j = offset[a], offset[b]
    while i < offset[a + 1] and j < offset[b + 1]:
        x, y = chain[i], chain[j]
        if x == y:
            total += (1 - true[x]) * (p_b * c_a - p_a * c_b)
            p_a *= true[x]
            p_b *= true[x]
            i += 1
            j += 1
        elif weight[x] < weight[y] or (weight[x] == weight[y] and x < y):
            c_a += q_a * cost[x]
            q_a *= true[x]
            p_a *= true[x]
            i += 1
        else:
            c_b += q_b * cost[y]
            q_b *= true[y]
            p_b *= true[y]
            j += 1
    return total


@called_helper
def _first_link(offset: Any, chain: Any, a: int, b: int) -> int:
    """The first call of `a` that `b` has, too."""
    for i in range(offset[a], offset[a + 1]):
        for other in range(offset[b], offset[b + 1]):
            if chain[i] == chain[other]:
                return int(chain[i])
    return -1


@kernel
def linked(offset: Any, chain: Any, back_offset: Any, back: Any, weight: Any, true: Any, cost: Any, most: int,
           edges: Any, savings: Any) -> int:  # fmt: skip
    """Write pairs of chains that share a call, the one to be taken first in front, and what that saves. Each chain is
    paired, for each of its calls, with the next `most` that have it. Returns how many pairs there are."""
    length = 0
    for call in range(back_offset.size - 1):
        for i in range(back_offset[call], back_offset[call + 1]):
            for j in range(i + 1, min(i + 1 + most, back_offset[call + 1])):
                a, b = back[i], back[j]
                if length == savings.size or _first_link(offset, chain, a, b) != call:
                    continue
                value = saving(offset, chain, weight, true, cost, a, b)
                if value != 0:
                    edges[length, 0] = b if value > 0 else a
                    edges[length, 1] = a if value > 0 else b
                    savings[length] = abs(value)
                    length += 1
    return length


@kernel
def paths(edges: Any, savings: Any, order: Any, parent: Any, neighbour: Any, value: Any) -> None:
    """Take edges in this order as long as no chain has three and none closes a cycle. `neighbour`: chain -> the two
    beside it, or -1; `value` has what it saves to go on to each of them, negative against the edge's direction."""
    for number in range(parent.size):
        parent[number] = number
    neighbour[:] = -1
    value[:] = 0
    for place in range(order.size):
        edge = order[place]
        a, b = edges[edge, 0], edges[edge, 1]
        if neighbour[a, 1] >= 0 or neighbour[b, 1] >= 0:
            continue
        root_a, root_b = root(parent, a), root(parent, b)
        if root_a == root_b:
            continue
        parent[root_a] = root_b
        side_a, side_b = int(neighbour[a, 0] >= 0), int(neighbour[b, 0] >= 0)
        neighbour[a, side_a], neighbour[b, side_b] = b, a
        value[a, side_a], value[b, side_b] = savings[edge], -savings[edge]


@called_helper
def _walk(neighbour: Any, value: Any, end: int, path: Any, start: int) -> float:
    """Write a path from one of its ends on, and return what its direction saves."""
    total, last, current, place = 0.0, -1, end, start
    while current >= 0:
        path[place] = current
        place += 1
        side = 0 if neighbour[current, 0] != last and neighbour[current, 0] >= 0 else 1
        following = neighbour[current, side]
        if following == last:
            following = -1
        if following >= 0:
            total += value[current, side]
        last, current = current, following
    return total


@kernel
def walked(neighbour: Any, value: Any, path: Any, start: Any, total: Any, seen: Any) -> int:
    """Write all paths one behind the other, each in the direction that saves more. `start`: where each begins. Returns
    how many there are."""
    count, length = 0, 0
    for chain in range(seen.size):
        if seen[chain] or neighbour[chain, 1] >= 0:
            continue
        saved = _walk(neighbour, value, chain, path, length)
        end = length
        while True:
            seen[path[end]] = True
            is_last = end > length and neighbour[path[end], 1] < 0
            end += 1
            if is_last or neighbour[chain, 0] < 0:
                break
        if saved < 0:
            for i in range((end - length) // 2):
                path[length + i], path[end - 1 - i] = path[end - 1 - i], path[length + i]
        start[count], total[count] = length, abs(saved)
        count, length = count + 1, end
    return count
