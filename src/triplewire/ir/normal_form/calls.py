"""Operator calls that stand at the top of a query: all have to hold, whatever else it asks for.

A call counts where its arguments are constants: its outcome does not depend on a solution. What is left of the query
then has a meaning of its own (SPARQL: `FILTER(a && b)` keeps what `FILTER(a) FILTER(b)` keeps). Who asks such calls, in
which order: `triplewire.operators.order`.
"""

from __future__ import annotations

from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import AllOf, And, Call, Filter, Holds, Variable, Where, conjuncts
from triplewire.ir.walk import calls_in


def split(where: Where) -> tuple[tuple[CallKey, ...], Where]:
    """The calls with constants only that have to hold, each once, and the rest. There are none where the rest has
    calls, too: what those are asked with may depend on the solutions."""
    calls: dict[CallKey, None] = {}
    rest: list[Where] = []
    for part in where.parts if isinstance(where, And) else (where,):
        if isinstance(part, Call) and _is_constant(part):
            calls[CallKey(part.operator, part.arguments)] = None  # type: ignore[arg-type]  # no variables
        elif isinstance(part, Filter):
            left = []
            for condition in conjuncts(part.condition):
                if isinstance(condition, Holds) and _is_constant(condition.call):
                    calls[CallKey(condition.call.operator, condition.call.arguments)] = None  # type: ignore[arg-type]
                else:
                    left.append(condition)
            if left:
                rest.append(Filter(left[0] if len(left) == 1 else AllOf(tuple(left))))
        else:
            rest.append(part)
    if not calls or any(True for part in rest for _ in calls_in(part)):
        return (), where
    return tuple(calls), And(tuple(rest))


def _is_constant(call: Call) -> bool:
    return not any(isinstance(argument, Variable) for argument in call.arguments)
