"""Checks a subscription when it is registered: limits, and that it has something to match (semantics, section 2).

The author can correct what is refused here, so an error names the construct or the setting. What a query means:
`triplewire.ir.evaluation.evaluate`.
"""

from __future__ import annotations

from typing import TypeGuard

from triplewire.config import Settings
from triplewire.errors import LimitError, UnsupportedQuery
from triplewire.ir import nodes as ir
from triplewire.ir.evaluation.expressions import KNOWN_FUNCTIONS
from triplewire.ir.subscription import Subscription
from triplewire.ir.values.regex_syntax import RegexError
from triplewire.ir.values.regexes import compile_regex
from triplewire.ir.walk import children, walk
from triplewire.model.terms import XSD_STRING, Literal

_NODES_PER_LEVEL = 6  # levels of the tree, tuples counted, that a level of a text may become


def check(subscription: Subscription, settings: Settings) -> ir.Where:
    """The tree of a subscription, checked.

    Raises `LimitError` past `max_query_depth`, `max_patterns`, `max_branches` or `max_regex_bytes`;
    `UnsupportedQuery` where no pattern or call must hold, and where a regular expression or a function is not
    supported.
    """
    where, source = subscription.where, subscription.id
    nodes = list(walk(where))
    # from a node to one below it there are at most two tuples, so a small tree is not deep
    if 3 * len(nodes) + 1 >= _NODES_PER_LEVEL * settings.max_query_depth:
        _check_depth(where, source, settings)
    patterns = sum([isinstance(node, ir.Pattern) for node in nodes])
    if patterns > settings.max_patterns:
        raise LimitError(
            f"{patterns} triple patterns, more than {settings.max_patterns}",
            source=source,
            remedy="raise max_patterns, or split the subscription",
        )
    # these groups are evaluated separately, so their branches are counted separately
    for group in [
        where,
        *[node.group for node in nodes if isinstance(node, ir.Not | ir.Optional | ir.Minus | ir.Exists)],
    ]:
        if _branches(group, settings.max_branches) > settings.max_branches:
            raise LimitError(
                f"more than {settings.max_branches} branches of alternatives, all combinations counted",
                source=source,
                remedy="raise max_branches, or split the subscription",
            )
    if not _is_positive(where):
        raise UnsupportedQuery(
            "a standing query needs a triple pattern or an operator call that must hold",
            source=source,
            remedy="add one outside OPTIONAL, MINUS and NOT EXISTS",
        )
    for node in nodes:
        if isinstance(node, ir.Function):
            _check_function(node, source, settings)
        elif isinstance(node, ir.TextTest) and node.relation is ir.TextRelation.REGEX:
            _check_regex(node.text, "", source, settings)
    return where


def _check_depth(where: ir.Where, source: str, settings: Settings) -> None:
    limit = _NODES_PER_LEVEL * settings.max_query_depth
    level: list[object] = [where]
    for _ in range(limit):
        level = [part for node in level for part in children(node) if not isinstance(part, str)]
        if not level:
            return
    raise LimitError(
        f"the query's tree is more than {limit} nodes deep",
        source=source,
        remedy=f"raise max_query_depth ({_NODES_PER_LEVEL} nodes a level), or flatten it",
    )


def _branches(where: ir.Where, limit: int) -> int:
    """The number of conjunctions in the disjunctive normal form, counted up to the limit. `_check_depth` has limited
    the depth of the tree."""
    if isinstance(where, ir.Or):
        return min(sum(_branches(branch, limit) for branch in where.branches), limit + 1)
    product = 1
    if isinstance(where, ir.And):
        for part in where.parts:
            product = min(product * _branches(part, limit), limit + 1)
    return product


def _is_positive(where: ir.Where) -> bool:
    """Is there a pattern or a call outside negated and optional groups?"""
    for part in ir.joined(where):
        if isinstance(part, ir.Pattern | ir.Call):
            return True
        if isinstance(part, ir.Or) and any(map(_is_positive, part.branches)):
            return True
        if isinstance(part, ir.Filter) and any(isinstance(node, ir.Holds) for node in walk(part)):
            return True
    return False


_PATTERN_AND_FLAGS = {"REGEX": (1, 2), "REPLACE": (1, 3)}  # at which argument


def _check_function(function: ir.Function, source: str, settings: Settings) -> None:
    if function.name not in KNOWN_FUNCTIONS:
        raise UnsupportedQuery(
            f"the function {function.name} is not supported in a standing query",
            source=source,
            remedy="use a function of SPARQL 1.1 whose value depends on its arguments alone",
        )
    at, flags_at = _PATTERN_AND_FLAGS.get(function.name, (0, 0))
    if not at or len(function.arguments) <= at:
        return
    pattern = function.arguments[at]
    flags = function.arguments[flags_at] if len(function.arguments) > flags_at else Literal("")
    if _is_text(pattern) and _is_text(flags):
        _check_regex(pattern.lexical, flags.lexical, source, settings)


def _is_text(node: object) -> TypeGuard[Literal]:
    return isinstance(node, Literal) and node.datatype == XSD_STRING


def _check_regex(pattern: str, flags: str, source: str, settings: Settings) -> None:
    if len(pattern.encode("utf-8", "surrogatepass")) > settings.max_regex_bytes:
        raise LimitError(
            f"a regular expression of more than {settings.max_regex_bytes} bytes",
            source=source,
            remedy="raise max_regex_bytes, or shorten it",
        )
    try:
        compile_regex(pattern, flags, settings.max_regex_bytes)
    except RegexError as error:
        raise UnsupportedQuery(str(error), source=source, remedy=error.remedy) from None
