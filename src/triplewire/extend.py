"""What the author of a plug-in needs: the protocols and the types that they speak of. Import nothing else of ours.

A plug-in is found by family and name through an entry point of its package (`triplewire.plugins`):

    [project.entry-points."triplewire.operator"]     an object as in `Operator`
    near = "my_package:NEAR"

    [project.entry-points."triplewire.language"]     a function as in `Language`
    mine = "my_package:parse"

    [project.entry-points."triplewire.matcher"]      a function as in `MakeMatcher`
    fast = "my_package:fast"

A language makes trees of the nodes in `triplewire.ir.nodes`. A selector may name too many subscriptions, never too few.
"""

from __future__ import annotations

from triplewire.ir.evaluate import Answer, World, evaluate
from triplewire.languages.context import Context, Language, Parsed
from triplewire.languages.tokens import Tokens
from triplewire.matchers import MakeMatcher, Matcher
from triplewire.model.operator import Argument, Operator, Parameter, Verdict
from triplewire.select import Selector
from triplewire.verify import Outcome, Verifier

__all__ = [
    "Answer",
    "Argument",
    "Context",
    "Language",
    "MakeMatcher",
    "Matcher",
    "Operator",
    "Outcome",
    "Parameter",
    "Parsed",
    "Selector",
    "Tokens",
    "Verdict",
    "Verifier",
    "World",
    "evaluate",
]
