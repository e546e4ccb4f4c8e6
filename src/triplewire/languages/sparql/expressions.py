"""SPARQL expressions (SPARQL 1.1, 19.8, productions 107 to 128), full-text conditions and operator calls among them.

Chains of `||`, `&&`, `!` become flat nodes; what still grows deep (arithmetic, parentheses) is capped, so that later
stages may walk a condition recursively.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TypeAlias

from triplewire.errors import LimitError, UnsupportedQuery
from triplewire.ir import nodes as ir
from triplewire.ir.values import casts
from triplewire.ir.values.functions import SYNONYMS
from triplewire.ir.values.regex_syntax import RegexError
from triplewire.ir.values.regexes import compile_regex
from triplewire.ir.walk import children
from triplewire.languages.grammar.bare import NAMESPACE, call_of
from triplewire.languages.grammar.full_text import parse_expression
from triplewire.languages.grammar.tokens import COMPARISONS, Token, Tokens
from triplewire.languages.sparql.terms import TermReader
from triplewire.model.terms import IRI, XSD_STRING, Literal, made_iri

Arity: TypeAlias = tuple[int, int | None]
"""Least and most arguments; None is without limit."""


def _taking(least: int, most: int | None, names: str) -> dict[str, Arity]:
    return dict.fromkeys(names.split(), (least, most))


FUNCTIONS: dict[str, Arity] = {
    **_taking(0, 0, "NOW"),
    **_taking(1, 1, "STR LANG DATATYPE IRI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI"),
    **_taking(1, 1, "YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512"),
    **_taking(1, 1, "ISIRI ISBLANK ISLITERAL ISNUMERIC"),
    **_taking(2, 2, "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"),
    **_taking(3, 3, "IF"),
    **_taking(2, 3, "SUBSTR REGEX"),
    **_taking(3, 4, "REPLACE"),
    **_taking(0, None, "CONCAT COALESCE"),
}
"""The functions of SPARQL 1.1 (17.4) by upper-case name. The arguments of BOUND and EXISTS are no expressions."""

CASTS = frozenset(casts.CASTS)
"""Datatype IRIs that are called as functions (17.5, and the other datatypes of XSD that have values here)."""

AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])

RANDOM = frozenset(["RAND", "UUID", "STRUUID", "BNODE"])
"""Their value would differ from one evaluation to the next; matching is deterministic (semantics, section 6)."""


def call_part(terms: TermReader) -> ir.Call:
    """What follows CALL: the operator's name, bare or under `op:`, and its arguments."""
    tokens = terms.tokens
    token = tokens.peek()
    if tokens.accept_kind("word"):
        return _call(terms, token, token.text)
    iri = terms.accept_iri() or tokens.unexpected("an operator's name")
    if not iri.value.startswith(NAMESPACE):
        tokens.fail(token, f"{iri} names no operator", "write the operator's bare name, or op:name")
    return _call(terms, token, iri.value[len(NAMESPACE) :])


def _call(terms: TermReader, token: Token, name: str) -> ir.Call:
    """The call of `name`, written at `token`; the cursor stands on its arguments."""

    def argument(_unit: str) -> ir.Variable | IRI | Literal:
        read = terms.accept_variable() or terms.accept_constant()
        return read or terms.tokens.unexpected("a variable, an IRI or a literal")

    return call_of(terms.tokens, token, name, argument)


_ARGUMENTS = {"REGEX": (1, 2), "REPLACE": (1, 3)}  # where pattern and flags stand


def _check_regex(tokens: Tokens, function: str, starts: Sequence[Token], arguments: Sequence[ir.Expression]) -> None:
    """Refuse a pattern, or flags, that is a plain literal and cannot be compiled, at its place: `starts` are the first
    tokens of the arguments."""
    if function not in _ARGUMENTS:
        return
    texts = {
        place: argument.lexical
        for place, argument in enumerate(arguments)
        if isinstance(argument, Literal) and argument.datatype == XSD_STRING
    }
    pattern, flags = _ARGUMENTS[function]
    if flags in texts:
        check_regex(tokens, starts[flags], "", texts[flags])
    if pattern in texts and (flags in texts or len(arguments) <= flags):
        check_regex(tokens, starts[pattern], texts[pattern], texts.get(flags, ""))


def check_regex(tokens: Tokens, token: Token, pattern: str, flags: str) -> None:
    """Refuse a regular expression, written at `token`, that is too long or cannot be compiled."""
    limit = tokens.context.settings.max_regex_bytes
    if len(pattern.encode("utf-8", "surrogatepass")) > limit:
        what, remedy = f"a regular expression of more than {limit} bytes", "raise max_regex_bytes, or shorten it"
        tokens.fail(token, what, remedy, LimitError)
    try:
        compile_regex(pattern, flags, limit)
    except RegexError as error:
        tokens.fail(token, str(error), error.remedy, UnsupportedQuery)


_CONDITION = "a condition: ( ... ), a function call, ftcontains(...), EXISTS or NOT EXISTS"


class Expressions:
    """Reads expressions at the cursor; `group` reads the group after EXISTS."""

    def __init__(self, terms: TermReader, group: Callable[[], ir.Where]) -> None:
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

    def constraint(self) -> ir.Expression:
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
        if tokens.at(*COMPARISONS, "&&", "||", "+", "-", "/", "IN"):
            tokens.fail(tokens.peek(), f"found {tokens.peek()} after a whole condition", "put it in parentheses")
        return condition

    def bracketed(self) -> ir.Expression:
        """An expression in parentheses."""
        self._tokens.expect("(")
        inner = self.expression()
        self._tokens.expect(")")
        return inner

    def expression(self) -> ir.Expression:
        """A whole expression; refused where its tree would be too deep."""
        tokens = self._tokens
        with tokens.nested():
            first = tokens.peek()
            outermost, self._inside = not self._inside, True
            conditions = tokens.separated(self._conjunction, "||")
            read = ir.AnyOf(tuple(conditions)) if len(conditions) > 1 else conditions[0]
            self._inside = not outermost
            limit = tokens.context.settings.max_query_depth
            # a tree is no deeper than its text is long, so short ones need no look; groups are limited by `nested`
            if outermost and tokens.peek().offset - first.offset > limit and deeper(read, limit):
                tokens.fail(first, f"an expression of more than {limit} levels", "raise max_query_depth, or shorten it")
            return read

    def _conjunction(self) -> ir.Expression:
        begins = [self._tokens.peek().offset]
        conditions = [self._relation()]
        while self._tokens.accept("&&"):  # not by `conjuncts`: each level of an expression takes many frames as it is
            begins.append(self._tokens.peek().offset)
            conditions.append(self._relation())
        self._tokens.note_conjuncts(begins)
        return ir.AllOf(tuple(conditions)) if len(conditions) > 1 else conditions[0]

    def _relation(self) -> ir.Expression:
        tokens = self._tokens
        left = self._arithmetic()
        op = tokens.accept(*COMPARISONS)
        if op:
            return ir.Compare(op.text, left, self._arithmetic())
        if tokens.accept("IN"):
            return ir.In(left, self._arguments())
        if tokens.at("NOT"):
            tokens.next()
            tokens.expect("IN")
            return ir.In(left, self._arguments(), negated=True)
        return left

    def _arithmetic(self) -> ir.Expression:
        """Sums of products, both from left to right."""
        tokens = self._tokens
        total: ir.Expression | None = None
        sign = ""
        product = self._unary()
        while op := tokens.accept("*", "/", "+", "-"):
            if op.text in "*/":
                product = ir.Function(op.text, (product, self._unary()))
                continue
            total = ir.Function(sign, (total, product)) if total is not None else product
            sign = op.text
            product = self._unary()
        return ir.Function(sign, (total, product)) if total is not None else product

    def _unary(self) -> ir.Expression:
        tokens = self._tokens
        count = 0
        while tokens.accept("!"):
            count += 1
        if tokens.at("+", "-") and not self._terms.sign_touches():
            read: ir.Expression = ir.Function("NEGATE" if tokens.next().text == "-" else "PLUS", (self._primary(),))
        else:
            read = self._primary()
        for _ in range(2 - count % 2 if count else 0):  # !! is the effective boolean value, !!! is !
            read = ir.Negate(read)
        return read

    def _primary(self) -> ir.Expression:
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

    def _arguments(self, starts: list[Token] | None = None) -> tuple[ir.Expression, ...]:
        """Expressions in parentheses, with commas between them; there may be none. `starts` gets their first tokens."""
        starts = [] if starts is None else starts
        tokens = self._tokens
        tokens.expect("(")
        if tokens.accept(")"):
            return ()
        if tokens.at("DISTINCT"):
            tokens.unsupported(tokens.peek(), "DISTINCT in a function call (an aggregate)")
        starts.append(tokens.peek())
        arguments = [self.expression()]
        while tokens.accept(","):
            starts.append(tokens.peek())
            arguments.append(self.expression())
        tokens.expect(")")
        return tuple(arguments)

    def _called(self, token: Token) -> ir.Expression:
        """An IRI: a constant, or, with arguments, a cast or an operator."""
        tokens = self._tokens
        iri = self._terms.iri_of(token)
        if not tokens.at("("):
            return iri
        if iri.value.startswith(NAMESPACE):
            return ir.Holds(_call(self._terms, token, iri.value[len(NAMESPACE) :]))
        if iri.value not in CASTS:
            remedy = "known: SPARQL's own, casts to xsd types, and op:name(...)"
            tokens.unsupported(token, f"the function {iri}", remedy)
        return self._function(token, iri.value, (1, 1))

    def _word(self, token: Token) -> ir.Expression:
        """A call by keyword; the cursor stands behind the keyword."""
        tokens = self._tokens
        name = token.text.upper()
        name = SYNONYMS.get(name, name)
        if name in FUNCTIONS:
            return self._function(token, name, FUNCTIONS[name])
        if name == "EXISTS":
            return ir.Exists(self._group())
        if name == "NOT":
            tokens.expect("EXISTS")
            return ir.Negate(ir.Exists(self._group()))
        if name in ("BOUND", "FTCONTAINS"):
            tokens.expect("(")
            variable = self._terms.variable()
            condition: ir.Expression = ir.Function("BOUND", (variable,))
            if name == "FTCONTAINS":
                tokens.expect(",")
                condition = ir.FullText(variable, parse_expression(tokens))
            tokens.expect(")")
            return condition
        if name == "FTSIM":  # full text, too, but what it asks is learned from texts
            return ir.Holds(_call(self._terms, token, "ftsim"))
        self.refuse_aggregate(token)
        if name in RANDOM:
            tokens.unsupported(token, f"the function {name}", "matching is deterministic: no two values may differ")
        if not tokens.at("("):
            tokens.fail(token, f"found {token}, expected an expression", "a variable starts with a question mark")
        near = get_close_matches(name[:40], [*FUNCTIONS, "BOUND", "FTCONTAINS"], n=1)
        tokens.fail(token, f"there is no function {token}", f"did you mean {near[0]}?" if near else "")

    def _function(self, token: Token, name: str, arity: Arity) -> ir.Expression:
        starts: list[Token] = []
        arguments = self._arguments(starts)
        least, most = arity
        if len(arguments) < least or (most is not None and len(arguments) > most):
            count = f"{least} or more" if most is None else f"{least} to {most}" if least < most else str(least)
            wanted = f"{count} argument{'s' * (count != '1')}"
            self._tokens.fail(token, f"{token.text} takes {wanted}, not {len(arguments)}")
        _check_regex(self._tokens, name, starts, arguments)
        if name == "IRI" and self._terms.base:
            arguments += (made_iri(self._terms.base),)
        return ir.Function(name, arguments)


def deeper(expression: ir.Expression, limit: int) -> bool:
    """Is the tree more than `limit` expressions deep, those in groups and full-text ones included? Looks level by
    level."""
    level: list[object] = [expression]
    for _ in range(limit):
        waiting = [child for node in level for child in children(node)]
        level = []
        while waiting:
            below = waiting.pop()
            if type(below) is tuple or isinstance(below, ir.Where):
                waiting.extend(children(below))
            elif hasattr(below, "__match_args__"):  # a dataclass; other values are leaves
                level.append(below)
        if not level:
            return False
    return True
