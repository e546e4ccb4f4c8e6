"""What the author of a plug-in needs: the protocols and the types that they speak of. Import nothing else of ours.

A plug-in is found by family and name through an entry point of its package (`triplewire.plugins`):

    [project.entry-points."triplewire.operator"]     an object as in `Operator`
    near = "my_package:NEAR"

    [project.entry-points."triplewire.language"]     a function as in `Language`
    mine = "my_package:parse"

    [project.entry-points."triplewire.matcher"]      an object as in `IndexMaker`;
                                                      in `VerifierMaker` where it verifies by itself
    fast = "my_package:FAST"

A language makes trees of the nodes in `triplewire.ir.nodes`. An index may name too many subscriptions, never too few.
Texts of subscriptions that stay in a database: `TableTexts`, or another store as in `SubscriptionTexts`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.languages.context import Context, Language, Parsed
from triplewire.languages.grammar.tokens import Tokens
from triplewire.languages.sources.tables import SubscriptionTexts, TableTexts
from triplewire.model.operator import Argument, Operator, Parameter, Verdict
from triplewire.select.index import Index, IndexMaker, Selected

if TYPE_CHECKING:
    from triplewire.clauses.clauses import Clauses
    from triplewire.clauses.view import View
    from triplewire.verify.verifier import Verified, VerifierInput, VerifierMaker

__all__ = [
    "Answer",
    "Argument",
    "Clauses",
    "Context",
    "Index",
    "IndexMaker",
    "Language",
    "Operator",
    "Parameter",
    "Parsed",
    "Selected",
    "SubscriptionTexts",
    "TableTexts",
    "Tokens",
    "Verdict",
    "Verified",
    "VerifierInput",
    "VerifierMaker",
    "View",
    "World",
    "evaluate",
]


_LATER = {"Clauses": "triplewire.clauses.clauses", "View": "triplewire.clauses.view"}
_LATER |= dict.fromkeys(("Verified", "VerifierInput", "VerifierMaker"), "triplewire.verify.verifier")


def __getattr__(name: str) -> Any:
    """The types that bring compiled kernels along are imported when they are asked for."""
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
