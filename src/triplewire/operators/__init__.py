"""The registry of operators, and the built-in ones: `families` needs extras of the package, the others nothing.

The protocol is `triplewire.model.operator`. `function_operator` makes an operator of a function. A call in a query is
`triplewire.ir.nodes.Call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from triplewire import plugins
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.operator import Operator
from triplewire.operators.calling.isolated import Isolated
from triplewire.operators.function import function_operator

__all__ = ["built_in_operators", "function_operator", "remedy_for_unknown", "with_taxonomy"]


@cache
def built_in_operators() -> Mapping[str, Operator]:
    """All installed operators by name: the built-in ones and those of plug-ins."""
    return MappingProxyType({name: plugins.find("operator", name) for name in plugins.names("operator")})


def remedy_for_unknown(operators: Mapping[str, Operator], name: str) -> str:
    """What to do where there is no operator of this name: those that are there, and where to get a built-in one."""
    known = f"known: {', '.join(sorted(operators)) or 'none'}"
    if name not in built_in_operators():
        return known
    return f"{known}; it is built in: Engine(operators={{**built_in_operators(), ...}}) keeps such ones"


@runtime_checkable
class AsksTaxonomy(Protocol):
    """What an operator may have besides: a need of the taxonomy."""

    def with_taxonomy(self, taxonomy: Taxonomy) -> Operator:
        """The same operator over this taxonomy. The engine calls it before the first subscription, and for each
        taxonomy that takes the place of that one."""


def with_taxonomy(operators: Mapping[str, Operator], taxonomy: Taxonomy) -> Mapping[str, Operator]:
    """The same operators; those that ask a taxonomy ask this one."""
    asking: dict[str, Operator] = {}
    for name, operator in operators.items():
        inner = operator.inner if isinstance(operator, Isolated) else operator
        if isinstance(inner, AsksTaxonomy):
            new = inner.with_taxonomy(taxonomy)
            asking[name] = operator.of(new) if isinstance(operator, Isolated) else new
    return {**operators, **asking} if asking else operators
