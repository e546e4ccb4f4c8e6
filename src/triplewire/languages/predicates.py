"""Operator predicates (operators paper, section 2.2; semantics, section 3): calls and value constraints, all to hold.

    query      := ("PREFIX" name ":" iri)* ("{" items "}" | items)
    items      := item ("," item)*
    item       := call | constraint | "(" item ")"
    constraint := side ("=" | "!=" | "<" | "<=" | ">" | ">=") side | variable ("CONTAINS" | "FTCONTAINS" | "ISA") ...
    side       := constant | quantity | sum of products over variables and numbers

A comparison is lenient. Arithmetic, too, reads a value's text and no datatype: one that does not read as a number
makes the comparison false, NaN and INF among them. It is exact, quotients to 18 digits behind the point.
Calls: `languages.grammar.bare`; the tests that GQL has, too: `languages.grammar.conditions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triplewire.ir.nodes import And, Call, Expression, Filter, Function, Variable
from triplewire.ir.walk import walk
from triplewire.languages.context import Context, Parsed
from triplewire.languages.grammar.bare import (
    UNITS,
    BareTokens,
    NamesInForce,
    bounded,
    call_ahead,
    converted,
    literal,
    read_call,
    read_raw,
)
from triplewire.languages.grammar.conditions import FLIPPED, TESTS, ConditionReader, compared
from triplewire.languages.grammar.tokens import COMPARISONS, END, Token, number
from triplewire.model.operator import parameters_of
from triplewire.model.terms import Literal

_ENDS = (",", "}", *COMPARISONS)
_NO_ARITHMETIC = "a quantity takes no part in arithmetic"


def parse(text: str, context: Context) -> Parsed:
    """Compile a text of operator predicates. Raises `LanguageError`."""
    with bounded(context):
        return _Query(text, context).read()


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A number with a unit, not yet converted."""

    token: Token
    number: str
    unit: str


@dataclass(frozen=True, slots=True)
class _Constraint:
    """A comparison, kept until all calls are read: they tell the variables' units."""

    token: Token
    op: str
    left: Expression | _Quantity
    right: Expression | _Quantity


class _Query:
    def __init__(self, text: str, context: Context) -> None:
        self._tokens = BareTokens(text, context)
        self._names = NamesInForce(self._tokens)
        self._conditions = ConditionReader(self._names)
        self._calls: list[Call] = []
        self._constraints: list[_Constraint | Filter] = []
        self._seen: dict[str, None] = {}  # all variables, in order of appearance
        self._mentioned: list[Token] = []  # variables of constraints

    def read(self) -> Parsed:
        tokens = self._tokens
        self._names.prologue()
        brace = tokens.accept("{")
        tokens.conjuncts(self._item, ",")
        if brace:
            tokens.expect("}")
        if tokens.peek().kind != END:
            tokens.unexpected("',' or '}'" if brace else f"',' or {END}")
        units: dict[str, set[str]] = {}  # of the parameters in which each variable stands; "" for none
        for call in self._calls:
            parameters = parameters_of(tokens.context.operators[call.operator], len(call.arguments))
            for argument, parameter in zip(call.arguments, parameters or (), strict=True):
                if isinstance(argument, Variable):
                    units.setdefault(argument.name, set()).add(parameter.unit)
        for token in self._mentioned:
            if token.text[1:] not in units:
                tokens.fail(token, f"no call mentions the variable {token.text}", "use it in a call, or leave it out")
        filters = [c if isinstance(c, Filter) else self._filter(c, units) for c in self._constraints]
        return Parsed(tuple(self._seen), And((*self._calls, *filters)))

    def _item(self) -> None:
        tokens = self._tokens
        enclosing = self._enclosing()
        for _ in range(enclosing):
            tokens.next()
        if call_ahead(self._names):
            call, _ = read_call(self._names)
            self._calls.append(call)
            self._seen.update((a.name, None) for a in call.arguments if isinstance(a, Variable))
        else:
            self._constraints.append(self._constraint())
        for _ in range(enclosing):
            tokens.expect(")")

    def _enclosing(self) -> int:
        """How many of the parentheses at the cursor hold the whole item?

        Those in which its comparison, or its call, stands; the others belong to a sum.
        """
        tokens, ahead = self._tokens, 0
        while tokens.peek(ahead).text == "(":
            ahead += 1
        depth = leading = ahead
        while leading and (token := tokens.peek(ahead)).kind != END and depth >= 0:
            if token.text in COMPARISONS or token.text.upper() in TESTS or call_ahead(self._names, ahead):
                return min(depth, leading)
            depth += (token.text == "(") - (token.text == ")")
            ahead += 1
        return leading

    def _constraint(self) -> _Constraint | Filter:
        tokens, first = self._tokens, self._tokens.peek()
        left = self._side("a call or a constraint")
        if isinstance(left, Variable) and (keyword := tokens.accept(*TESTS)):
            return Filter(self._conditions.named_test(left, keyword.text.upper()))
        op = tokens.accept(*COMPARISONS) or tokens.unexpected(f"a comparison ({' '.join(COMPARISONS)})")
        right = self._side("a value")
        if not any(isinstance(node, Variable) for side in (left, right) for node in walk(side)):
            tokens.fail(first, "a constraint compares two constants", "name a variable that a call binds")
        return _Constraint(first, op.text, left, right)

    def _side(self, expected: str) -> Expression | _Quantity:
        tokens, names = self._tokens, self._names
        token = tokens.peek()
        if token.kind in ("variable", "number") or token.text in ("(", "+", "-"):
            total, _ = self._sum()
            return total
        if tokens.accept_kind("string"):
            return literal(names, token)
        if tokens.accept_kind("iri"):
            return names.reference(token)
        found_text = names.bare(read_raw(tokens, _ENDS, expected, "a comparison, ',' or the end"))
        return Literal(found_text) if isinstance(found_text, str) else found_text

    def _sum(self) -> tuple[Expression | _Quantity, int]:
        """The sum at the cursor, and how deep its tree is."""
        with self._tokens.nested():
            return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._factor))

    def _chain(
        self, operators: tuple[str, ...], operand: Callable[[], tuple[Expression | _Quantity, int]]
    ) -> tuple[Expression | _Quantity, int]:
        tokens = self._tokens
        left, depth = operand()
        while tokens.at(*operators):
            op = tokens.next()
            right, right_depth = operand()
            if isinstance(left, _Quantity) or isinstance(right, _Quantity):
                tokens.fail(op, _NO_ARITHMETIC, "compare a variable with it directly")
            left, depth = Function(op.text, (left, right)), max(depth, right_depth) + 1
            if depth > tokens.context.settings.max_query_depth:
                tokens.fail(op, f"the sum is more than {depth - 1} levels deep", "raise max_query_depth, or shorten it")
        return left, depth

    def _factor(self) -> tuple[Expression | _Quantity, int]:
        tokens = self._tokens
        negative, first = False, tokens.peek()
        while sign := tokens.accept("+", "-"):
            negative ^= sign.text == "-"
        token = tokens.peek()
        if tokens.accept("("):
            inner, depth = self._sum()
            tokens.expect(")")
        elif tokens.accept_kind("variable"):
            self._mentioned.append(token)
            self._seen[token.text[1:]] = None
            inner, depth = Variable(token.text[1:]), 0
        elif tokens.accept_kind("number"):
            text = f"-{token.text}" if negative else token.text
            unit = self._unit()
            return (_Quantity(first, text, unit) if unit else number(text)), 0
        else:
            tokens.unexpected("a variable, a number or '('")
        if not negative:
            return inner, depth
        if isinstance(inner, _Quantity):
            tokens.fail(first, _NO_ARITHMETIC, "write the sign before the number")
        return Function("NEGATE", (inner,)), depth + 1

    def _unit(self) -> str:
        """The unit behind a number, or "": letters, a degree or per cent sign, and in `km/h` a second part."""
        tokens = self._tokens
        token = tokens.peek()
        if token.text == "°" and tokens.peek(1).kind == "word":
            tokens.next()
            return "°" + tokens.next().text
        if token.text == "%":
            return tokens.next().text
        if token.kind != "word" or token.text.upper() in TESTS:
            return ""
        tokens.next()
        if tokens.at("/") and f"{token.text}/{tokens.peek(1).text}" in UNITS:
            tokens.next()
            return f"{token.text}/{tokens.next().text}"
        return token.text

    def _filter(self, constraint: _Constraint, units: dict[str, set[str]]) -> Filter:
        left, right, op = constraint.left, constraint.right, constraint.op
        if not isinstance(left, Variable | Function):
            left, right, op = right, left, FLIPPED[op]
        if isinstance(right, _Quantity):
            right = self._in_unit_of(left, right, units)
        # two constants were refused, so the left one is no constant now, and no quantity stands in a sum
        assert not isinstance(left, _Quantity)
        return Filter(compared(self._tokens, constraint.token, op, left, right))

    def _in_unit_of(self, side: Expression | _Quantity, quantity: _Quantity, units: dict[str, set[str]]) -> Literal:
        if not isinstance(side, Variable):
            self._tokens.fail(quantity.token, _NO_ARITHMETIC, "compare a variable with it directly")
        wanted = units[side.name]
        if len(wanted) > 1:
            named = " and ".join(repr(unit) if unit else "no unit" for unit in sorted(wanted))
            self._tokens.fail(quantity.token, f"the calls give ?{side.name} {named}", "compare with a number alone")
        (unit,) = wanted
        return number(converted(self._names, quantity.token, quantity.number, quantity.unit, unit))
