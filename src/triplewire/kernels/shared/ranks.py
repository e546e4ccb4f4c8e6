"""Range tests: whether one holds of a value, by ranks instead of values.

The constants of a range group are ranked ascending. Of a value it is known how many constants are `below` it, and how
many are below it or equal to it (`upto`); both are -1 for what is no value of the group.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import helper

LESS, AT_MOST, GREATER = 1, 2, 3
"""Operators of range tests: `value < constant`, `value <= constant`, `value > constant`. Any other number above 0 is
`value >= constant`; 0 is no range test."""


@helper
def range_holds(op: int, rank: int, below: int, upto: int) -> Any:
    """Does the range test with this operator and the rank of its constant hold of a value?"""
    bound = below if (op == AT_MOST) | (op == GREATER) else upto
    return below >= 0 and (rank >= bound if op <= AT_MOST else rank < bound)


@helper
def first_rank(op: int, below: int, upto: int) -> Any:
    """The lowest rank for which the test holds."""
    return (upto if op == LESS else below) if op <= AT_MOST else 0


@helper
def end_rank(op: int, below: int, upto: int) -> Any:
    """The rank behind the highest for which the test holds."""
    return 0x7FFFFFFF if op <= AT_MOST else below if op == GREATER else upto
