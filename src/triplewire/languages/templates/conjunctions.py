"""Texts that are read part by part: SPARQL queries of triples and FILTERs, and GQL queries of tuples.

Graph patterns of many edges seldom differ in their parameters only, but their triples do, once variables are
parameters, too. Where a part ends and the next one begins: `triplewire.kernels.text.parts`. Such parts are read one
after the other and know nothing of each other: the patterns of the text are those of its parts, the filters stand
behind them, and it selects what the patterns bind, or the variables of its head. A condition alone binds nothing: it is
parsed with patterns behind it, which are taken off again. A template is trusted as a part when the first text with it,
parsed in full, is what its parts make of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triplewire.ir.nodes import And, Filter, Pattern, Variable
from triplewire.ir.normal_form import Clause, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages.templates.builder import is_conjunction
from triplewire.languages.templates.template import (
    VARIABLE,
    Conjunction,
    Environment,
    Parameters,
    Template,
    content,
)

_PREFIXES = r"(?P<prologue>(?:\s*PREFIX\s+[\w.-]*:\s*<[^<>\"{}|^`\\\x00-\x20]*>)*)\s*"
_HEADS = {
    "sparql": re.compile(
        _PREFIXES + r"(?:(?P<ask>ASK)|SELECT\s+(?:\*|(?P<names>\0(?:\s+\0)*)))(?:\s+WHERE)?\s*", re.IGNORECASE
    ),
    "gql": re.compile(
        _PREFIXES + r"(?P<ask>(?!))?(?:SELECT\s+(?:\*|(?P<names>\0(?:\s*,?\s*\0)*))\s+)?WHERE\s+", re.IGNORECASE
    ),
}
_AROUND = {"sparql": ("\nSELECT * WHERE { ", " }"), "gql": ("\nSELECT * WHERE ", "")}
_VARIABLE = re.compile(b"\0\\?.", re.DOTALL)
_CONDITION = re.compile(r"FILTER\b", re.IGNORECASE)
BINDS = (" . ", " <urn:triplewire:binds> ", "")
"""What stands around a variable, twice, in a pattern that binds it."""


@dataclass(frozen=True, eq=False)
class Head:
    """What stands before the parts of a text. `names`: it lists the variables that it selects; else it selects all."""

    language: str
    prologue: str
    ask: bool
    names: bool

    def joined(self, templates: Sequence[Template], selected: Parameters) -> Conjunction:
        """The conjunction of templates behind this head. `selected`: the variables that the head names."""
        names = tuple(dict.fromkeys(map(content, selected))) if self.names or self.ask else None
        return Conjunction(self.language, tuple(templates), self.ask, names=names)


def head_of(language: str, skeleton: bytes) -> Head | None:
    """The head with these bytes and marks; None where it is none."""
    head = _HEADS[language].fullmatch(_VARIABLE.sub(b"\0", skeleton).decode())
    if head is None:
        return None
    return Head(language, head["prologue"], head["ask"] is not None, head["names"] is not None)


def around(language: str, prologue: str) -> tuple[str, str]:
    """What is parsed before and behind a part."""
    before, after = _AROUND[language]
    return prologue + before, after


def is_condition(text: str, language: str) -> bool:
    """Does a part that begins with this text ask for no pattern?"""
    return language == "sparql" and _CONDITION.match(text) is not None


def part(template: Template, count: int, is_condition: bool) -> Template | None:
    """A template as a part with the first `count` of its parameters; None where other parts might change what it means.
    Of a condition, the patterns that bind its variables are taken off."""
    form, parts = template.example_form, template.stated.parts if isinstance(template.stated, And) else ()
    names = {content(holder.example) for holder in template.placeholders if holder.kind == VARIABLE}
    if template.warnings or template.ask or template.named:
        return None
    if not is_conjunction(template.stated, form):
        return None
    terms = [term for pattern in form.clauses[0].patterns for term in pattern]
    bound = dict.fromkeys([term.name for term in terms if isinstance(term, Variable)])
    wildcards = {name for name in bound if name.startswith("*")}
    if any(isinstance(node, Variable) and node.hidden for node in walk(template.stated)):
        return None
    if any(name in wildcards for name, _ in form.clauses[0].tests):
        return None
    bound = dict.fromkeys(name for name in bound if name not in wildcards)
    if tuple(bound) != template.select or not names.issuperset(bound):
        return None
    if not is_condition:
        return template
    placeholders, tests = template.placeholders[:count], form.clauses[0].tests
    clause = Clause((), tests)
    conditions = tuple([part for part in parts if isinstance(part, Filter)])
    if len(conditions) != 1 or sum(isinstance(part, Pattern) for part in parts) != len(parts) - 1:
        return None
    return replace(
        template,
        placeholders=placeholders,
        select=(),
        stated=conditions[0],
        example_form=replace(form, clauses=(clause,)),
    )


def says(form: Conjunction, parameters: Parameters, stated: Subscription, environment: Environment, most: int) -> bool:
    """Is a text, parsed in full, what its parts make of it?"""
    _, base, prefixes = environment
    of_parts = form.subscription(parameters, stated.id, stated.text, dict(prefixes), base)
    is_same = stated == of_parts and not stated.warnings and stated.construct is None
    return is_same and normal_form(stated, most=most) == form.normal_form(parameters)
