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

A matcher may have compiled loops. They lie in a file or folder of their own, whose functions have our decorators:

    from triplewire.extend import helper, kernel

    @kernel                                      # Python calls it: it fills arrays, and makes none
    def count(...): ...

The module of the maker says where they are, and imports them when it builds an index, not before:

    kernels(Path(__file__).parent / "kernels")   # their machine code is kept on disk, under a key of these files

With `warm_up` (a `WarmUp`) on the maker, they are compiled in the background, and matches are interpreted until then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.kernel_cache import register as kernels
from triplewire.languages.context import Context, Language, Parsed
from triplewire.languages.grammar.tokens import Tokens
from triplewire.languages.sources.tables import SubscriptionTexts, TableTexts
from triplewire.model.operator import Argument, Operator, Parameter, Verdict
from triplewire.select.index import Index, IndexMaker, Insertable, Selected, WarmUp

if TYPE_CHECKING:
    from triplewire.clauses.clauses import Clauses
    from triplewire.clauses.view import View
    from triplewire.kernels.shared.compiled import helper, kernel
    from triplewire.verify.verifier import Verified, VerifierInput, VerifierMaker

__all__ = [
    "Answer",
    "Argument",
    "Clauses",
    "Context",
    "Index",
    "IndexMaker",
    "Insertable",
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
    "WarmUp",
    "World",
    "evaluate",
    "helper",
    "kernel",
    "kernels",
]

_LATE = {
    "Clauses": "triplewire.clauses.clauses",
    "View": "triplewire.clauses.view",
    **dict.fromkeys(("helper", "kernel"), "triplewire.kernels.shared.compiled"),
    **dict.fromkeys(("Verified", "VerifierInput", "VerifierMaker"), "triplewire.verify.verifier"),
}


def __getattr__(name: str) -> Any:
    """What brings compiled kernels along is imported when it is asked for."""
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
