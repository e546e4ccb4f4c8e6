"""MDV rules (MDV paper, section 2.3; semantics, section 3).

    rule       := ("PREFIX" name ":" iri)* "search" class variable ("," class variable)* "register" variable
                  ("where" or)?
    or         := and ("or" and)*
    and        := not ("and" not)*
    not        := "not"* (comparison | "(" or ")")
    comparison := side ("=" | "!=" | "<" | "<=" | ">" | ">=" | "contains") side
    side       := path | string | number | iri | prefixed name
    path       := variable ("." step "?"?)*

Keywords in any case; `--` begins a comment. `or` and `not` end here: a condition is read straight into disjunctive
normal form, with negated operators. What is read is a `form.Rule`; the tree of it: `languages.mdv.branches`.

A bare class or step lies in the default vocabulary (`PREFIX :`), else in the base's namespace, else, with a warning,
in RSS 1.0. A class that is the name of another rule means that rule.
"""

from __future__ import annotations

import re
from itertools import chain, product
from math import prod
from typing import TypeAlias

from triplewire.errors import LimitError, SubscriptionError
from triplewire.ir.subscription import Subscription
from triplewire.languages.context import Context, Parsed
from triplewire.languages.grammar.bare import (
    COMPARISONS,
    IRIS,
    STRINGS,
    WORD,
    BareTokens,
    NamesInForce,
    bounded,
    namespaced,
)
from triplewire.languages.grammar.strings import number, string_value
from triplewire.languages.grammar.tokens import Token
from triplewire.languages.mdv.branches import where_of
from triplewire.languages.mdv.form import CONTAINS, Path, Rule, Searched, Side, Step, Test
from triplewire.model.namespaces import RSS, label_iri
from triplewire.model.terms import IRI, Literal

KEYWORDS = frozenset({"SEARCH", "REGISTER", "WHERE", "AND", "OR", "NOT", CONTAINS.upper()})
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", CONTAINS: CONTAINS}

_PATTERN = re.compile(
    rf"""
      (?P<skip>\s++|--[^\n]*+)
    | {IRIS}
    | {STRINGS}
    | (?P<name>(?:{WORD})?+:(?:[\w%]++(?:-[\w%]++)*+)?+)
    | (?P<word>{WORD})
    | (?P<number>(?:[0-9]++(?:\.[0-9]++)?+|(?<![\w>?])\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)
    | (?P<symbol>!=|<=|>=|[.,()?=<>+-])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

Branches: TypeAlias = list[list[Test]]
"""A condition in disjunctive normal form."""


def parse(text: str, context: Context) -> Parsed:
    """Compile an MDV rule. Raises `LanguageError`, and `LimitError` past `max_branches` or `max_patterns`."""
    with bounded(context):
        rule = _Parser(text, context).rule()
        return Parsed((rule.registered,), where_of(rule, context), warnings=rule.warnings)


def parse_rule(text: str, context: Context | None = None) -> Rule:
    """What an MDV rule says. `context` has what comes from outside the text: prefixes, base, other rules, limits.
    Raises `LanguageError` with line and column, and `LimitError` past `max_branches`."""
    context = Context() if context is None else context
    with bounded(context):
        return _Parser(text, context).rule()


def _behind_a_side(previous: Token) -> bool:
    """Can `<` only be a comparison behind this token?"""
    if previous.kind == "word":
        return previous.text.upper() not in KEYWORDS
    if previous.kind == "name":
        return not previous.text.endswith(":")  # a prefix that is being declared
    return previous.kind in ("string", "number", "iri") or previous.text == "?"


class _Parser:
    def __init__(self, text: str, context: Context) -> None:
        self._context = context
        self._tokens = BareTokens(text, context, _PATTERN, _behind_a_side)
        self._names = NamesInForce(self._tokens)
        self._searched: dict[str, Searched] = {}  # by variable
        self._guessed: dict[str, None] = {}  # bare names without a vocabulary

    def rule(self) -> Rule:
        """The whole text."""
        tokens = self._tokens
        self._names.prologue()
        tokens.expect("SEARCH")
        self._class()
        while tokens.accept(","):
            self._class()
        tokens.expect("REGISTER")
        registered = self._search_variable().text
        branches: Branches = self._or(negated=False) if tokens.accept("WHERE") else [[]]
        tokens.rest_is_empty()
        searched = tuple(self._searched.values())
        return Rule(tokens.text, searched, registered, tuple(map(tuple, branches)), self._warnings())

    # --- the search clause

    def _class(self) -> None:
        tokens = self._tokens
        token = tokens.accept_kind("word", "name", "iri", "number")
        if token is None:
            tokens.unexpected("a class or the name of a rule")
        name = token.text[1:-1] if token.kind == "iri" else token.text
        rule = self._rule(token, name)
        meaning: IRI | Subscription
        if rule is not None:
            meaning = rule
        elif token.kind == "number":
            tokens.fail(token, f"found {token}, expected a class or the name of a rule")
        else:
            meaning = self._bare(token.text) if token.kind == "word" else self._names.iri_of(token)
        variable = tokens.peek()
        if variable.kind != "word" or variable.text.upper() in KEYWORDS:
            tokens.unexpected("a variable")
        if variable.text in self._searched:
            tokens.fail(variable, f"the variable {variable.text!r} is taken", "give each class a variable of its own")
        self._searched[tokens.next().text] = Searched(variable.text, meaning, token.offset)

    def _rule(self, token: Token, name: str) -> Subscription | None:
        """The other rule of that name, if there is one."""
        if name == self._context.source:
            return None
        try:
            rule = self._context.rules.get(name)
        except SubscriptionError as error:
            self._tokens.fail(token, error.what, error.remedy)
        return rule if rule is not None and rule.language == "mdv" else None

    def _search_variable(self) -> Token:
        token = self._tokens.expect_kind("word", "a variable of the search clause")
        if token.text not in self._searched:
            known = ", ".join(self._searched)
            self._tokens.fail(token, f"the search clause has no variable {token.text!r}", f"it has: {known}")
        return token

    def _bare(self, text: str) -> IRI:
        """The IRI of a class or step without prefix."""
        if self._names.default:
            return IRI(label_iri(text, self._names.default))
        if self._names.base:
            return IRI(namespaced(text, self._names.base))
        self._guessed[text] = None
        return IRI(label_iri(text, RSS))

    def _warnings(self) -> tuple[str, ...]:
        if not self._guessed:
            return ()
        names = ", ".join(self._guessed)
        return (f"without PREFIX : <...> or a base, these names are read as terms of RSS 1.0: {names}",)

    # --- the where clause

    def _or(self, negated: bool) -> Branches:
        with self._tokens.nested():
            operands = [self._and(negated)]
            while self._tokens.accept("OR"):
                operands.append(self._and(negated))
            return self._conjunction(operands) if negated else self._disjunction(operands)

    def _and(self, negated: bool) -> Branches:
        operands = [self._not(negated)]
        while self._tokens.accept("AND"):
            operands.append(self._not(negated))
        return self._disjunction(operands) if negated else self._conjunction(operands)

    def _not(self, negated: bool) -> Branches:
        while self._tokens.accept("NOT"):
            negated = not negated
        if self._tokens.accept("("):
            inner = self._or(negated)
            self._tokens.expect(")")
            return inner
        return [[self._comparison(negated)]]

    def _disjunction(self, operands: list[Branches]) -> Branches:
        self._check_count(sum(map(len, operands)))
        return list(chain.from_iterable(operands))

    def _conjunction(self, operands: list[Branches]) -> Branches:
        self._check_count(prod(map(len, operands)))
        single = list(chain.from_iterable(branches[0] for branches in operands if len(branches) == 1))
        several = [branches for branches in operands if len(branches) > 1]
        return [single + list(chain.from_iterable(choice)) for choice in product(*several)]

    def _check_count(self, count: int) -> None:
        limit = self._context.settings.max_branches
        if count > limit:
            raise LimitError(
                f"the condition has more than {limit} branches in disjunctive normal form",
                source=self._context.source,
                remedy="split it into several rules, or raise max_branches",
            )

    def _comparison(self, negated: bool) -> Test:
        tokens, first = self._tokens, self._tokens.peek()
        left = self._side()
        operator = tokens.accept(*COMPARISONS, CONTAINS.upper())
        if operator is None:
            tokens.unexpected(f"a comparison ({' '.join(COMPARISONS)} {CONTAINS})")
        right = self._side()
        if not isinstance(left, Path) and not isinstance(right, Path):
            tokens.fail(first, "this compares two constants", "begin a path with a variable of the search clause")
        op = operator.text.lower()
        if op == CONTAINS and (isinstance(left, IRI) or isinstance(right, IRI)):
            tokens.fail(operator, "contains compares text, not an IRI", "quote the text")
        return Test(_NEGATED[op] if negated else op, left, right, negated and op == CONTAINS, first.offset)

    def _side(self) -> Side:
        tokens = self._tokens
        token = tokens.peek()
        if tokens.accept_kind("string"):
            return Literal(string_value(tokens, token))
        if tokens.accept_kind("iri", "name"):
            return self._names.iri_of(token)
        if tokens.accept_kind("number"):
            return number(token.text)
        if token.text in ("+", "-") and tokens.peek(1).kind == "number":
            tokens.next()
            return number(token.text + tokens.next().text)
        if token.kind != "word" or token.text.upper() in KEYWORDS:
            tokens.unexpected("a path or a constant")
        if token.text not in self._searched and tokens.peek(1).text != ".":
            known = ", ".join(self._searched)
            tokens.fail(token, f"found {token}, expected a path or a constant", f"variables: {known}; quote a text")
        return self._path()

    def _path(self) -> Path:
        tokens = self._tokens
        variable = self._search_variable()
        steps: list[Step] = []
        while tokens.accept("."):
            token = tokens.accept_kind("word", "name", "iri")
            if token is None:
                tokens.unexpected("a step of the path")
            step = self._bare(token.text) if token.kind == "word" else self._names.iri_of(token)
            # `?`, any element: without a schema every step means that
            steps.append(Step(step, tokens.accept("?") is not None))
        return Path(variable.text, tuple(steps), variable.offset)
