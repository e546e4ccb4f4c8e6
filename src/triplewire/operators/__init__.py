"""The registry of operators, and the built-in ones, which are cheap: they read the publication only.

The protocol is `triplewire.model.operator`. `function_operator` makes an operator of a function. A call in a query is
`triplewire.ir.nodes.Call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from triplewire import plugins
from triplewire.model.operator import Operator
from triplewire.operators.function import function_operator

__all__ = ["built_in_operators", "function_operator"]


@cache
def built_in_operators() -> Mapping[str, Operator]:
    """All installed operators by name: the built-in ones and those of plug-ins."""
    return MappingProxyType({name: plugins.find("operator", name) for name in plugins.names("operator")})
