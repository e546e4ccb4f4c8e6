"""Conditions of GQL's SUCHTHAT: AND, OR, NOT and parentheses over comparisons, ISA, CONTAINS, FTCONTAINS and operators.

The tests of one variable are shared with operator predicates; lenient comparison (semantics, section 2), also of sums,
and what FROM says with RDQL.
"""

from __future__ import annotations

import re

from triplewire.ir import nodes as ir
from triplewire.ir.values.compare import label_of
from triplewire.ir.values.numbers import lenient_number
from triplewire.ir.walk import walk
from triplewire.languages.grammar.bare import NamesInForce, Raw, call_ahead, literal, read_call, read_raw
from triplewire.languages.grammar.full_text import parse_expression
from triplewire.languages.grammar.tokens import COMPARISONS, END, Token, Tokens, number, string_value
from triplewire.model.origins import FROM_SOURCE
from triplewire.model.terms import IRI, Literal
from triplewire.model.values import MAX_DIGITS

TESTS = ("CONTAINS", "FTCONTAINS", "ISA")
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""A comparison read from right to left."""

NUMERAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""What reads as a number (semantics, section 2)."""

ALL_SOURCES = ("publications", "*")
"""What FROM names without narrowing anything."""

_ENDS = (",", "AND", "OR", "SUCHTHAT", "}")
_GO_ON = "AND, OR or the end of the condition"


def narrowed(sources: list[str]) -> list[ir.Filter]:
    """What FROM says: a publication of one of these sources; nothing where one of them is all there are."""
    if any(name.lower() in ALL_SOURCES for name in sources):
        return []
    return [ir.Filter(ir.Holds(ir.Call(FROM_SOURCE, (Literal("\n".join(dict.fromkeys(sources))),))))]


def compared(tokens: Tokens, token: Token, op: str, left: ir.Expression, right: ir.Expression) -> ir.Compare:
    """The lenient comparison, written at `token`, of variables, constants and sums; one side is no constant.

    Sums, too, read a value's text and no datatype, and are exact (quotients to 18 digits behind the point). Refuses a
    sum that is compared with a text, and numbers that are too long for arithmetic.
    """
    sides = (left, right)
    if not any(isinstance(side, ir.Function) for side in sides):
        return ir.Compare(op, left, right, ir.Coercion.LENIENT)
    for side in sides:
        if isinstance(side, IRI) or (isinstance(side, Literal | ir.Label) and not NUMERAL.fullmatch(label_of(side))):
            tokens.fail(token, f"a sum compares with numbers only, found {side}")
    for node in (node for side in sides for node in walk(side)):
        if isinstance(node, Literal | ir.Label) and _exact(label_of(node)) is None:
            tokens.fail(token, f"arithmetic with a number of more than {MAX_DIGITS:,} digits")
    return ir.Compare(op, _numeric(left), _numeric(right))


def _exact(text: str) -> Literal | None:
    """The number in `text` without exponent, so that it is computed exactly; None where that would be too long."""
    value = lenient_number(text)
    if value is None or abs(value.adjusted()) + len(value.as_tuple().digits) >= MAX_DIGITS:
        return None
    return number(f"{value:f}" if "e" in text.lower() else text)


def _numeric(expression: ir.Expression) -> ir.Expression:
    """Arithmetic whose variables read as numbers as in lenient comparison: by their text, whatever their datatype."""
    if isinstance(expression, ir.Function):
        return ir.Function(expression.name, tuple(map(_numeric, expression.arguments)))
    if isinstance(expression, ir.Variable):
        return ir.Function("NUMBER", (expression,))
    if isinstance(expression, Literal | ir.Label):
        return _exact(label_of(expression)) or number(label_of(expression))
    return expression


class ConditionReader:
    """Reads conditions at the cursor; remembers where it met each variable, as `used`."""

    def __init__(self, names: NamesInForce) -> None:
        self._names = names
        self._tokens = names.tokens
        self.used: list[Token] = []

    def suchthat(self) -> list[ir.Expression]:
        """What follows SUCHTHAT: the conditions that must all hold. Stops before an AND that begins the next tuple."""
        return list(ir.conjuncts(self._or(top=True)))

    def _or(self, top: bool = False) -> ir.Expression:
        with self._tokens.nested():
            operands = self._tokens.separated(lambda: self._and(top), "OR")
            return operands[0] if len(operands) == 1 else ir.AnyOf(tuple(operands))

    def _and(self, top: bool) -> ir.Expression:
        begins = [self._tokens.peek().offset]
        operands = [self._not()]
        while self._tokens.at("AND") and not (top and self._tuple_ahead()):
            self._tokens.next()
            begins.append(self._tokens.peek().offset)
            operands.append(self._not())
        self._tokens.note_conjuncts(begins)
        return operands[0] if len(operands) == 1 else ir.AllOf(tuple(operands))

    def _not(self) -> ir.Expression:
        negated = False
        while self._tokens.accept("NOT"):
            negated = not negated
        condition = self._primary()
        return ir.Negate(condition) if negated else condition

    def _tuple_ahead(self) -> bool:
        """Is what follows AND a tuple (or a group of them) rather than a condition?

        A tuple has commas of its own, outside of deeper parentheses; no condition in parentheses has.
        """
        tokens, ahead, depth = self._tokens, 1, 0
        while tokens.peek(ahead).text == "(":
            ahead += 1
        if tokens.peek(ahead).text.upper() == "CALL":
            return call_ahead(self._names, ahead + 1)
        if ahead == 1:
            return False
        while (token := tokens.peek(ahead)).kind != END:
            if token.text in ("(", "["):
                depth += 1
            elif token.text in (")", "]"):
                if depth == 0:
                    return False
                depth -= 1
            elif token.text == "," and depth == 0:
                return True
            ahead += 1
        return False

    def _primary(self) -> ir.Expression:
        tokens = self._tokens
        if tokens.accept("("):
            inner = self._or()
            tokens.expect(")")
            return inner
        if tokens.peek().kind == "name" and call_ahead(self._names):
            call, token = read_call(self._names)
            self.used += [token._replace(text=f"?{a.name}") for a in call.arguments if isinstance(a, ir.Variable)]
            return ir.Holds(call)
        token = tokens.peek()
        if token.kind == "variable":
            return self.test(self.variable())
        left = self.constant(ends=(*_ENDS, *COMPARISONS, *TESTS))
        if tokens.at(*TESTS):
            tokens.fail(token, f"{tokens.peek().text} needs a variable on its left, found {token}")
        op = tokens.expect(*COMPARISONS).text
        if tokens.peek().kind != "variable":
            tokens.unexpected("a variable, as the left side is a constant")
        return ir.Compare(FLIPPED[op], self.variable(), left, ir.Coercion.LENIENT)

    def variable(self) -> ir.Variable:
        """The variable at the cursor."""
        token = self._tokens.expect_kind("variable", "a variable")
        self.used.append(token)
        return ir.Variable(token.text[1:])

    def test(self, variable: ir.Variable) -> ir.Expression:
        """The operator and right side of a condition on `variable`."""
        tokens = self._tokens
        keyword = tokens.accept(*TESTS)
        if keyword is not None:
            return self.named_test(variable, keyword.text.upper())
        expected = f"a comparison ({' '.join(COMPARISONS)}), {', '.join(TESTS)}"
        operator = tokens.accept(*COMPARISONS) or tokens.unexpected(expected)
        right = self.variable() if tokens.peek().kind == "variable" else self.constant()
        return ir.Compare(operator.text, variable, right, ir.Coercion.LENIENT)

    def named_test(self, variable: ir.Variable, keyword: str) -> ir.Expression:
        """What follows `keyword`, one of TESTS that was just taken."""
        if keyword == "FTCONTAINS":
            return ir.FullText(variable, parse_expression(self._tokens))
        if keyword == "CONTAINS":
            quoted = self._tokens.accept_kind("string")
            text = string_value(self._tokens, quoted) if quoted else self._raw(_ENDS, "a text").text
            return ir.TextTest(ir.TextRelation.CONTAINS, variable, text)
        written = self._tokens.accept("<=", ">=", "=")
        relation = ir.Relation(written.text) if written else ir.Relation.DESCENDANT
        cls = self.constant(_ENDS, "a class")
        return ir.InstanceOf(variable, relation, self._names.label(cls.lexical) if isinstance(cls, Literal) else cls)

    def constant(
        self, ends: tuple[str, ...] = _ENDS, expected: str = "a variable or a constant"
    ) -> IRI | Literal | ir.Label:
        """The constant at the cursor: a quoted string is an exact literal, bare text an IRI or a label."""
        token = self._tokens.accept_kind("string", "iri")
        if token is not None:
            return literal(self._names, token) if token.kind == "string" else self._names.reference(token)
        raw = self._raw(ends, expected)
        word = self._names.bare(raw)
        if not isinstance(word, str):
            return word
        if "=" in word:
            what = f"{word[:40]!r} is no constant, as it holds ="
            self._tokens.fail(raw.first, what, "write one =, or quote the text")
        return ir.Label(word) if NUMERAL.fullmatch(word) else self._names.label(word)

    def _raw(self, ends: tuple[str, ...], expected: str) -> Raw:
        return read_raw(self._tokens, ends, expected, _GO_ON)
