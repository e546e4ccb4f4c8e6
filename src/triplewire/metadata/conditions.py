"""Conditions on values as expressions of SQL, the same in every database (semantics, section 2, lenient comparison)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from triplewire.ir.values import compare
from triplewire.languages.mdv import CONTAINS, EXISTS
from triplewire.metadata.decompose import GRAM
from triplewire.metadata.keys import BRIEF
from triplewire.metadata.normal import WITHIN

COMPARE: Mapping[str, Callable[[Any, Any], Any]] = compare.OPERATORS
Columns = Any  # the columns of an alias of `md_terms`, or of triggering rules


class _PositionOf(FunctionElement[int]):
    """Where a text begins in another one, from 1; 0: nowhere."""

    inherit_cache = True


@compiles(_PositionOf)
def _instr(element: Any, compiler: Any, **how: Any) -> str:
    return f"instr({compiler.process(element.clauses, **how)})"


@compiles(_PositionOf, "postgresql")
def _strpos(element: Any, compiler: Any, **how: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **how)})"


def holds(text: Any, part: Any) -> sa.ColumnElement[bool]:
    """Does a text contain another one?"""
    return _PositionOf(text, part) > 0


def _brief(column: Any) -> Any:
    return sa.func.substr(column, 1, BRIEF)


def _beside_constant(kind: str, op: str) -> Callable[[Columns, Columns], sa.ColumnElement[bool]]:
    """`value op constant`, with the order of their beginnings first, which the index of triggering rules answers."""

    def condition(value: Columns, trigger: Columns) -> sa.ColumnElement[bool]:
        if kind == "text":
            column = value.label if op in ("=", "!=") else value.literal
        else:
            column = value.number_key if kind == "number" else value.instant_key
        exact: sa.ColumnElement[bool] = COMPARE[op](column, trigger.constant)
        if kind == "text" and op not in ("=", "!="):
            exact = sa.and_(exact, value.label.is_not(None))
        if op == "!=":
            return exact
        loose = {"=": "=", "<": "<=", "<=": "<=", ">": ">=", ">=": ">="}[op]
        return sa.and_(COMPARE[loose](_brief(column), trigger.brief), exact)

    return condition


def _always(value: Columns, trigger: Columns) -> sa.ColumnElement[bool]:
    return sa.true()


OPERATORS: Mapping[str, Callable[[Columns, Columns], sa.ColumnElement[bool]]] = {
    EXISTS: _always,
    **{f"{kind} {op}": _beside_constant(kind, op) for kind in ("number", "instant", "text") for op in COMPARE},
    **{f"{CONTAINS} {size}": lambda v, t: holds(v.literal, t.constant) for size in range(GRAM + 1)},
    f"not {CONTAINS}": lambda v, t: sa.not_(holds(v.literal, t.constant)),
    WITHIN: lambda v, t: holds(t.constant, v.literal),
    f"not {WITHIN}": lambda v, t: sa.not_(holds(t.constant, v.literal)),
}
"""Operators of triggering rules (the paper's tables FilterRulesOP), each as a condition on a value and the rule. In
`contains N` the constant is found by a piece of N characters."""


def compared(comparison: Any, left: Columns, right: Columns) -> sa.ColumnElement[bool]:
    """Do two values compare as the column says? Both as numbers, else both as instants, else as texts."""

    def by(op: str) -> sa.ColumnElement[bool]:
        compares = COMPARE[op]
        texts: sa.ColumnElement[bool] = compares(left.label, right.label)
        if op not in ("=", "!="):
            texts = sa.and_(texts, left.literal.is_not(None), right.literal.is_not(None))
        return sa.case(
            *(
                (sa.and_(a.is_not(None), b.is_not(None)), compares(a, b))
                for a, b in ((left.number_key, right.number_key), (left.instant_key, right.instant_key))
            ),
            else_=sa.func.coalesce(texts, sa.false()),
        )

    contains, within = holds(left.literal, right.literal), holds(right.literal, left.literal)
    cases: dict[str, sa.ColumnElement[bool]] = {op: by(op) for op in COMPARE}
    cases |= {CONTAINS: contains, f"not {CONTAINS}": sa.not_(contains)}
    cases |= {WITHIN: within, f"not {WITHIN}": sa.not_(within)}
    return sa.or_(*(sa.and_(comparison == op, condition) for op, condition in cases.items()))
