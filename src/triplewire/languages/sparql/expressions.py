"""SPARQL expressions (SPARQL 1.1, 19.8, productions 107 to 128), full-text conditions and operator calls among them.

Chains of `||`, `&&`, `!` become flat nodes; what still grows deep (arithmetic, parentheses) is capped, so that later
stages may walk a condition recursively.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from triplewire.errors import LimitError, UnsupportedQuery
from triplewire.ir.nodes import (
    AllOf,
    AnyOf,
    Call,
    Compare,
    Exists,
    Expression,
    FullText,
    Function,
    Holds,
    In,
    Negate,
    Variable,
    Where,
)
from triplewire.ir.values import casts
from triplewire.ir.values.functions import SYNONYMS
from triplewire.ir.values.regexes import RegexError, compile_regex
from triplewire.languages.grammar import full_text as fulltext
from triplewire.languages.grammar.bare import NAMESPACE, operator_of, whole_call
from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.languages.sparql.terms import TermReader
from triplewire.model.terms import IRI, XSD_STRING, Literal

# --- functions -------------------------------------------------------------------------------------------------------
# The functions of SPARQL 1.1 (17.4) by name: how many arguments they take, and which are refused, with the reason.


class Arity(NamedTuple):
    """Least and most arguments; None is without limit."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more arguments"
        if self.least < self.most:
            return f"{self.least} to {self.most} arguments"
        return f"{self.least} argument" + ("" if self.least == 1 else "s")


def _same(count: int, names: str) -> dict[str, Arity]:
    return dict.fromkeys(names.split(), Arity(count, count))


FUNCTIONS: dict[str, Arity] = {
    **_same(0, "NOW"),
    **_same(1, "STR LANG DATATYPE IRI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI"),
    **_same(1, "YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512"),
    **_same(1, "ISIRI ISBLANK ISLITERAL ISNUMERIC"),
    **_same(2, "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"),
    **_same(3, "IF"),
    "SUBSTR": Arity(2, 3),
    "REGEX": Arity(2, 3),
    "REPLACE": Arity(3, 4),
    "CONCAT": Arity(0, None),
    "COALESCE": Arity(0, None),
}
"""By upper-case name. BOUND and EXISTS, whose arguments are no expressions, are read by `expressions`."""

CASTS = frozenset(casts.CASTS)
"""Datatype IRIs that are called as functions (17.5, and the other datatypes of XSD that have values here)."""

AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])

RANDOM = frozenset(["RAND", "UUID", "STRUUID", "BNODE"])
"""Their value would differ from one evaluation to the next; matching is deterministic (semantics, section 6)."""


# --- calls -----------------------------------------------------------------------------------------------------------
# Calls of expensive operators in SPARQL: `op:name(...)` in a filter, `CALL name(...)` in a group.


def operator_name(iri: IRI) -> str | None:
    """The operator that an IRI names, or None where it names none."""
    return iri.value[len(NAMESPACE) :] if iri.value.startswith(NAMESPACE) else None


def call_part(terms: TermReader) -> Call:
    """What follows CALL: the operator's name, bare or under `op:`, and its arguments."""
    tokens = terms.tokens
    token = tokens.peek()
    if tokens.accept_kind("word"):
        return call(terms, token, token.text)
    iri = terms.accept_iri()
    name = operator_name(iri) if iri else None
    if iri is None:
        tokens.unexpected("an operator's name")
    if name is None:
        tokens.fail(token, f"{iri} names no operator", "write the operator's bare name, or op:name")
    return call(terms, token, name)


def call(terms: TermReader, token: Token, name: str) -> Call:
    """The call of `name`, written at `token`; the cursor stands on its arguments."""
    tokens = terms.tokens
    operator_of(tokens, token, name)
    arguments: list[Variable | IRI | Literal] = []
    tokens.expect("(")
    while not tokens.accept(")"):
        if arguments:
            tokens.expect(",")
        argument = terms.accept_variable() or terms.accept_constant()
        if argument is None:
            tokens.unexpected("a variable, an IRI or a literal")
        arguments.append(argument)
    return whole_call(tokens, token, name, arguments)


# --- regex -----------------------------------------------------------------------------------------------------------
# Constant regular expressions are compiled while the query is read, so that an error stands at the pattern's place.


_ARGUMENTS = {"REGEX": (1, 2), "REPLACE": (1, 3)}  # where pattern and flags stand
_LACKING = re.compile(r"\\[1-9]|\(\?(?:[=!>]|<[=!])|-\[")  # back-references, look-around, class subtraction


def check_regex(tokens: Tokens, function: str, arguments: Sequence[tuple[Token, Expression]]) -> None:
    """Refuse a pattern, or flags, that is a plain literal and cannot be compiled; `arguments` stand at their tokens."""
    if function not in _ARGUMENTS:
        return
    pattern, flags = (_constant(arguments, at) for at in _ARGUMENTS[function])
    if flags is not None:
        _compile(tokens, flags[0], "", flags[1])
    if pattern is not None and (flags is not None or len(arguments) <= _ARGUMENTS[function][1]):
        _compile(tokens, *pattern, flags[1] if flags else "")


def _compile(tokens: Tokens, token: Token, pattern: str, flags: str) -> None:
    limit = tokens.context.settings.max_regex_bytes
    line, column = tokens.place(token.offset)
    source = tokens.context.source
    if len(pattern.encode("utf-8", "surrogatepass")) > limit:
        what, remedy = f"a regular expression of more than {limit} bytes", "raise max_regex_bytes, or shorten it"
        raise LimitError(what, source=source, line=line, column=column, remedy=remedy)
    try:
        compile_regex(pattern, flags, limit)
    except RegexError as error:
        lacking = _LACKING.search(pattern) is not None
        remedy = "write it without back-references, look-around and class subtraction" if lacking else ""
        raise UnsupportedQuery(str(error), source=source, line=line, column=column, remedy=remedy) from None


def _constant(arguments: Sequence[tuple[Token, Expression]], at: int) -> tuple[Token, str] | None:
    """The argument's place and text, if it is given as a plain literal."""
    if len(arguments) <= at:
        return None
    token, argument = arguments[at]
    if not isinstance(argument, Literal) or argument.datatype != XSD_STRING:
        return None
    return token, argument.lexical


# --- expressions ------------------------------------------------------------


_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_CONDITION = "a condition: ( ... ), a function call, ftcontains(...), EXISTS or NOT EXISTS"


class Expressions:
    """Reads expressions at the cursor; `group` reads the group after EXISTS."""

    def __init__(self, terms: TermReader, group: Callable[[], Where]) -> None:
        self._terms = terms
        self._tokens = terms.tokens
        self._group = group
        self._inside = False

    def refuse_aggregate(self, token: Token) -> None:
        """Refuse `token` by name where it is an aggregate."""
        name = token.text.upper()
        if token.kind == "word" and name in AGGREGATES:
            remedy = "select the variables and aggregate what is notified"
            self._tokens.unsupported(token, f"the aggregate {name}", remedy)

    def constraint(self) -> Expression:
        """What may follow FILTER: a bracketed expression or a call (production 69)."""
        tokens = self._tokens
        first = tokens.peek()
        if tokens.at("("):
            return self.bracketed()
        if first.kind == "word":
            condition = self._word(tokens.next())
        elif first.kind in ("iri", "name"):
            condition = self._called(tokens.next())
            if isinstance(condition, IRI):
                tokens.fail(first, f"found {first}, expected {_CONDITION}")
        else:
            tokens.unexpected(_CONDITION)
        if tokens.at(*_COMPARISONS, "&&", "||", "+", "-", "/", "IN"):
            tokens.fail(tokens.peek(), f"found {tokens.peek()} after a whole condition", "put it in parentheses")
        return condition

    def bracketed(self) -> Expression:
        """An expression in parentheses."""
        self._tokens.expect("(")
        inner = self.expression()
        self._tokens.expect(")")
        return inner

    def expression(self) -> Expression:
        """A whole expression; refused where its tree would be too deep."""
        tokens = self._tokens
        with tokens.nested():
            first = tokens.peek()
            outermost, self._inside = not self._inside, True
            read = self._disjunction()
            self._inside = not outermost
            limit = tokens.context.settings.max_query_depth
            # a tree is no deeper than its text is long, so short ones need no look; groups are limited by `nested`
            if outermost and tokens.peek().offset - first.offset > limit and _deeper(read, limit):
                tokens.fail(first, f"an expression of more than {limit} levels", "raise max_query_depth, or shorten it")
            return read

    def _disjunction(self) -> Expression:
        conditions = [self._conjunction()]
        while self._tokens.accept("||"):
            conditions.append(self._conjunction())
        return AnyOf(tuple(conditions)) if len(conditions) > 1 else conditions[0]

    def _conjunction(self) -> Expression:
        conditions = [self._relation()]
        while self._tokens.accept("&&"):
            conditions.append(self._relation())
        return AllOf(tuple(conditions)) if len(conditions) > 1 else conditions[0]

    def _relation(self) -> Expression:
        tokens = self._tokens
        left = self._arithmetic()
        op = tokens.accept(*_COMPARISONS)
        if op:
            return Compare(op.text, left, self._arithmetic())
        if tokens.accept("IN"):
            return In(left, self._arguments())
        if tokens.at("NOT"):
            tokens.next()
            tokens.expect("IN")
            return In(left, self._arguments(), negated=True)
        return left

    def _arithmetic(self) -> Expression:
        """Sums of products, both from left to right."""
        tokens = self._tokens
        total: Expression | None = None
        sign = ""
        product = self._unary()
        while op := tokens.accept("*", "/", "+", "-"):
            if op.text in "*/":
                product = Function(op.text, (product, self._unary()))
                continue
            total = Function(sign, (total, product)) if total is not None else product
            sign = op.text
            product = self._unary()
        return Function(sign, (total, product)) if total is not None else product

    def _unary(self) -> Expression:
        tokens = self._tokens
        count = 0
        while tokens.accept("!"):
            count += 1
        if tokens.at("+", "-") and not self._terms.sign_touches():
            read: Expression = Function("NEGATE" if tokens.next().text == "-" else "PLUS", (self._primary(),))
        else:
            read = self._primary()
        for _ in range(2 - count % 2 if count else 0):  # !! is the effective boolean value, !!! is !
            read = Negate(read)
        return read

    def _primary(self) -> Expression:
        tokens = self._tokens
        if tokens.at("("):
            return self.bracketed()
        literal = self._terms.accept_literal()
        if literal is not None:
            return literal
        token = tokens.peek()
        if token.kind == "variable":
            return self._terms.variable()
        if token.kind in ("iri", "name"):
            return self._called(tokens.next())
        if token.kind == "word":
            return self._word(tokens.next())
        tokens.unexpected("an expression")

    def _arguments(self, starts: list[Token] | None = None) -> tuple[Expression, ...]:
        """Expressions in parentheses, with commas between them; there may be none. `starts` gets their first tokens."""
        starts = [] if starts is None else starts
        tokens = self._tokens
        tokens.expect("(")
        if tokens.accept(")"):
            return ()
        if tokens.at("DISTINCT"):
            tokens.unsupported(tokens.peek(), "DISTINCT in a function call (an aggregate)")
        starts.append(tokens.peek())
        read = [self.expression()]
        while tokens.accept(","):
            starts.append(tokens.peek())
            read.append(self.expression())
        tokens.expect(")")
        return tuple(read)

    def _called(self, token: Token) -> Expression:
        """An IRI: a constant, or, with arguments, a cast or an operator."""
        tokens = self._tokens
        iri = self._terms.iri_of(token)
        if not tokens.at("("):
            return iri
        name = operator_name(iri)
        if name is not None:
            return Holds(call(self._terms, token, name))
        if iri.value not in CASTS:
            tokens.unsupported(
                token, f"the function {iri}", "known: SPARQL's own, casts to xsd types, and op:name(...)"
            )
        return self._function(token, iri.value, Arity(1, 1))

    def _word(self, token: Token) -> Expression:
        """A call by keyword; the cursor stands behind the keyword."""
        tokens = self._tokens
        name = token.text.upper()
        name = SYNONYMS.get(name, name)
        if name in FUNCTIONS:
            return self._function(token, name, FUNCTIONS[name])
        if name == "EXISTS":
            return Exists(self._group())
        if name == "NOT":
            tokens.expect("EXISTS")
            return Negate(Exists(self._group()))
        if name in ("BOUND", "FTCONTAINS"):
            return self._of_variable(name)
        self.refuse_aggregate(token)
        if name in RANDOM:
            tokens.unsupported(token, f"the function {name}", "matching is deterministic: no two values may differ")
        if not tokens.at("("):
            tokens.fail(token, f"found {token}, expected an expression", "a variable starts with a question mark")
        near = get_close_matches(name[:40], [*FUNCTIONS, "BOUND", "FTCONTAINS"], n=1)
        tokens.fail(token, f"there is no function {token}", f"did you mean {near[0]}?" if near else "")

    def _function(self, token: Token, name: str, arity: Arity) -> Expression:
        starts: list[Token] = []
        arguments = self._arguments(starts)
        if len(arguments) < arity.least or (arity.most is not None and len(arguments) > arity.most):
            self._tokens.fail(token, f"{token.text} takes {arity}, not {len(arguments)}")
        check_regex(self._tokens, name, list(zip(starts, arguments, strict=True)))
        if name == "IRI" and self._terms.base:
            arguments += (IRI(self._terms.base),)
        return Function(name, arguments)

    def _of_variable(self, name: str) -> Expression:
        tokens = self._tokens
        tokens.expect("(")
        variable = self._terms.variable()
        read: Expression
        if name == "BOUND":
            read = Function("BOUND", (variable,))
        else:
            tokens.expect(",")
            read = FullText(variable, fulltext.parse_expression(tokens))
        tokens.expect(")")
        return read


def _deeper(expression: Expression, limit: int) -> bool:
    """Is the tree more than `limit` expressions deep, those in groups and full-text ones included? Looks level by
    level."""
    level: list[object] = [expression]
    for _ in range(limit):
        level = [below for node in level for below in _expressions_below(node)]
        if not level:
            return False
    return True


def _expressions_below(node: object) -> Iterator[object]:
    """The next expressions below a node, through the parts of groups."""
    waiting = _children(node)
    while waiting:
        below = waiting.pop()
        if isinstance(below, Where):
            waiting.extend(_children(below))
        else:
            yield below


def _children(node: object) -> list[object]:
    values: list[object] = []
    for name in getattr(node, "__match_args__", ()):  # the fields of a dataclass; other values are leaves
        value = getattr(node, name)
        values.extend(value if isinstance(value, tuple) else (value,))
    return [child for child in values if hasattr(child, "__match_args__")]
