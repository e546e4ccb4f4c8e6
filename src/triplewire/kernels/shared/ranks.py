"""Range tests: whether one holds of a value, by ranks instead of values.

The constants of a range group are ranked ascending. Of a value it is known how many constants are `below` it, and how
many are below it or equal to it (`upto`); both are -1 for what is no value of the group.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.columns import RESIDUAL, TestColumns
from triplewire.kernels.shared.compiled import helper

LESS, AT_MOST, GREATER, AT_LEAST, UNEQUAL = 1, 2, 3, 4, 5
"""Operators of range tests: `value < constant`, `value <= constant`, `value > constant`, `value >= constant`,
`value != constant`; 0 is no range test."""


@helper
def range_holds(op: int, rank: int, below: int, upto: int) -> Any:
    """Does the range test with this operator and the rank of its constant hold of a value?"""
    if op == UNEQUAL:
        return below >= 0 and (rank < below or rank >= upto)
    bound = below if (op == AT_MOST) | (op == GREATER) else upto
    return below >= 0 and (rank >= bound if op <= AT_MOST else rank < bound)


@helper
def is_found(test: int, tests: TestColumns) -> Any:
    """Do look-ups find the nodes of which a test holds? A residual test does not hold before it is evaluated, and `!=`
    holds of nearly all nodes: these are only asked of nodes that something else has found."""
    return (tests.kind[test] != RESIDUAL) & (tests.op[test] != UNEQUAL)


@helper
def first_rank(op: int, below: int, upto: int) -> Any:
    """The lowest rank for which the test holds; not for UNEQUAL, whose ranks are no interval."""
    return (upto if op == LESS else below) if op <= AT_MOST else 0


@helper
def end_rank(op: int, below: int, upto: int) -> Any:
    """The rank behind the highest for which the test holds."""
    return 0x7FFFFFFF if op <= AT_MOST else below if op == GREATER else upto
