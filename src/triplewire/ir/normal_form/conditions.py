"""Conditions in disjunctive normal form: the tests on single nodes that a condition implies.

A filter keeps a solution where its condition is true, and drops it where the condition is false or an error. So of
`&&` all parts must be true, of `||` one, and `!` goes inwards by De Morgan's laws, which hold in SPARQL's three-valued
logic.
The clauses that hold the tests: `triplewire.ir.normal_form.clauses`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from triplewire.ir.fulltext.nodes import Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word
from triplewire.ir.nodes import (
    AllOf,
    AnyOf,
    Compare,
    Exists,
    Expression,
    FullText,
    Function,
    Holds,
    In,
    InstanceOf,
    Label,
    Negate,
    TextRelation,
    TextTest,
    Variable,
)
from triplewire.ir.values.regex_texts import PLAIN, needed_texts
from triplewire.ir.walk import rewrite, walk
from triplewire.model.terms import IRI, XSD_STRING, Literal

Test: TypeAlias = Expression
"""A condition on one node: an expression over `X`, true of the node, or a bare `Label` that the node answers to."""

X = Variable("x")
Tests: TypeAlias = tuple[tuple[str, Test], ...]
Alternatives: TypeAlias = list[Tests]

T = TypeVar("T")
_NOTHING: Alternatives = [()]


class Necessary:
    """The necessary tests of conditions over variables that are certainly bound.

    `most` limits the alternatives. `exact` becomes false when a test had to be left out."""

    def __init__(self, bound: frozenset[str], most: int) -> None:
        self.bound = bound
        self.most = most
        self.exact = True

    def of(self, condition: Expression) -> Alternatives:
        """The alternatives of a condition: where it is true, all tests of at least one of them hold.

        Where `exact` stays true, the reverse holds, too."""
        if type(condition) is FullText:
            name = condition.variable.name
            if name not in self.bound:
                return self._nothing()
            before = self.exact
            parts = self._text(condition.expression)
            if self.exact is not before:  # what was left out is in the whole
                self.exact = before
                parts = [(*needed, condition.expression) for needed in parts]
            return [tuple([(name, FullText(X, part)) for part in dict.fromkeys(needed)]) for needed in parts]
        if type(condition) is AllOf:
            return _product([self.of(part) for part in condition.conditions], self)
        if type(condition) is Negate:
            inner = condition.condition
            if type(inner) is Negate:
                return self.of(inner.condition)
            if type(inner) is AllOf:
                return self.of(AnyOf(tuple([Negate(part) for part in inner.conditions])))
            if type(inner) is AnyOf:
                return self.of(AllOf(tuple([Negate(part) for part in inner.conditions])))
        if type(condition) is AnyOf:
            return self._any_of(condition)
        return self._single(condition)

    def _nothing(self) -> Alternatives:
        self.exact = False
        return _NOTHING

    def _single(self, condition: Expression) -> Alternatives:
        """A condition that is tested as a whole, if it is about one bound variable."""
        names = variables(condition)
        if names is None or len(names) != 1:
            return self._nothing()
        (name,) = names
        if name not in self.bound:
            return self._nothing()
        test = over_x(condition)
        looked_up = _looked_up_before(test)
        return [((name, looked_up), (name, test)) if looked_up is not None else ((name, test),)]

    def _any_of(self, condition: AnyOf) -> Alternatives:
        names = variables(condition)
        single = names is not None and len(names) == 1
        if single and (all(map(_is_key, condition.conditions)) or not all(map(_narrows, condition.conditions))):
            return self._single(condition)
        before = self.exact
        alternatives = [tests for part in condition.conditions for tests in self.of(part)]
        if len(alternatives) > self.most and single:
            self.exact = before
            return self._single(condition)
        if () in alternatives:
            return self._nothing()
        return self.limited(alternatives)

    def limited(self, alternatives: list[tuple[T, ...]]) -> list[tuple[T, ...]]:
        """No more than `most`: past it, what all have in common."""
        if len(alternatives) <= self.most:
            return alternatives
        self.exact = False
        return [common(alternatives)]

    def _text(self, expression: TextExpression) -> list[tuple[TextExpression, ...]]:
        """The same for a text: parts that it must satisfy."""
        kind = type(expression)
        if kind is Word or kind is Prefix or kind is TextNot:
            return [(expression,)]
        if isinstance(expression, TextAnd):
            return _product([self._text(operand) for operand in expression.operands], self)
        if isinstance(expression, TextOr):
            words = tuple([operand for operand in expression.operands if isinstance(operand, Word | Prefix)])
            if len(words) == len(expression.operands):
                return [(expression,)]
            alternatives: list[tuple[TextExpression, ...]] = [(TextOr(words),)] if words else []
            for operand in expression.operands:
                if not isinstance(operand, Word | Prefix):
                    alternatives += self._text(operand)
            return alternatives if len(alternatives) <= self.most else [(expression,)]
        return [(*_words(expression), expression)]


def _words(expression: TextExpression) -> list[TextExpression]:
    """The words without which a phrase or NEAR occurs nowhere."""
    if isinstance(expression, Phrase):
        return list(expression.items)
    if isinstance(expression, Near):
        return [word for operand in expression.operands for word in _words(operand)]
    if isinstance(expression, TextOr):
        return [expression] if all(isinstance(o, Word | Prefix) for o in expression.operands) else []
    return [expression] if isinstance(expression, Word | Prefix) else []


def common(alternatives: Iterable[Sequence[T]]) -> tuple[T, ...]:
    """What is in all of them, in the order of the first."""
    first, *others = alternatives
    parts_of_others = [set(other) for other in others]
    return tuple([part for part in dict.fromkeys(first) if all(part in other for other in parts_of_others)])


def _product(factors: list[list[tuple[T, ...]]], necessary: Necessary) -> list[tuple[T, ...]]:
    """All combinations. A factor that would make too many is reduced to the parts that its members have in common."""
    combinations: list[tuple[T, ...]] = [()]
    for factor in sorted(factors, key=len):
        if len(combinations) * len(factor) > necessary.most:
            necessary.exact = False
            factor = [common(factor)]
        combinations = [a + b for a in combinations for b in factor]
    return combinations


# --- expressions -------------------------------------------------------------------------------------------------


def variables(expression: Expression) -> frozenset[str] | None:
    """The variables of an expression; None where its value depends on more than these."""
    if type(expression) is Compare:  # the frequent one
        left, right = expression.left, expression.right
        if type(left) is Variable and isinstance(right, IRI | Literal | Label):
            return frozenset((left.name,))
    names = set()
    for node in walk(expression):
        if isinstance(node, Variable):
            names.add(node.name)
        elif isinstance(node, Exists | Holds) or (isinstance(node, Function) and node.name == "NOW"):
            return None
    return frozenset(names)


def over_x(expression: Expression) -> Test:
    """An expression of one variable, over `X`."""
    if type(expression) is Compare and type(expression.left) is Variable:
        right = expression.right
        if isinstance(right, IRI | Literal | Label):
            return Compare(expression.op, X, right, expression.coercion)
    return rewrite(expression, (Variable,), lambda _: X)


# --- what an index can look up ------------------------------------------------------------------------------------


def _looked_up_before(test: Test) -> Test | None:
    """A test for texts that no node without them satisfies, where the test asks for regular expressions: an index looks
    for them, so that few nodes are left. None where there is none, and where the test itself can be looked up."""
    tests = _texts_in_place_of(test)
    if not tests or tests == (test,) or (isinstance(test, AnyOf) and tests == test.conditions):
        return None
    return tests[0] if len(tests) == 1 else AnyOf(tests)


def _texts_in_place_of(test: Test) -> tuple[Test, ...]:
    """Tests that can be looked up, of which one holds wherever this one does; none where they are not known."""
    match test:
        case AnyOf(conditions):
            parts = [_texts_in_place_of(part) for part in conditions]
            return tuple(dict.fromkeys([text for part in parts for text in part])) if all(parts) else ()
        case TextTest(TextRelation.REGEX, operand, pattern, False) if not PLAIN.fullmatch(pattern):
            return tuple([TextTest(TextRelation.CONTAINS, operand, text) for text in needed_texts(pattern, "")])
        case Function("REGEX", (operand, Literal(pattern, datatype), *more)) if datatype == XSD_STRING:
            stated = more[0] if more else Literal("")
            flags = stated.lexical if isinstance(stated, Literal) else "x"  # of computed ones nothing is known
            if operand not in _OPERANDS and ("i" in flags or operand not in _IN_A_CASE):
                return ()
            if PLAIN.fullmatch(pattern) and (flags == "" or (flags == "i" and pattern.isascii())):
                return (test,)
            texts = [Literal(text) for text in needed_texts(pattern, flags)]
            if "i" in flags:
                return tuple([Function("REGEX", (operand, text, Literal("i"))) for text in texts])
            return tuple([Function("CONTAINS", (operand, text)) for text in texts])
    is_regex = isinstance(test, TextTest) and not test.negated  # of a plain text, as others are dealt with
    return (test,) if is_regex or (_is_key(test) and _is_of_the_node(test)) else ()


def _is_of_the_node(test: Test) -> bool:
    """Does a test that is a key look at the node, not at what is computed of it?"""
    match test:
        case Function(_, arguments):
            return any(argument in _OPERANDS or argument in _IN_A_CASE for argument in arguments)
        case Compare(_, left, right):
            return X in (left, right)
        case In(operand):
            return operand == X
    return True


_OPERANDS = (X, Function("STR", (X,)))
_IN_A_CASE = tuple([Function(case, (operand,)) for case in ("LCASE", "UCASE") for operand in _OPERANDS])

_LOOKED_UP = frozenset(("CONTAINS", "STRSTARTS", "STRENDS", "SAMETERM", "LANGMATCHES"))


def _is_key(test: Expression) -> bool:
    """Does the text of a node decide, by a look-up? A disjunction of such tests is one more of them."""
    if isinstance(test, AnyOf):
        return all(map(_is_key, test.conditions))
    if isinstance(test, FullText):
        return _is_of_words(test.expression)
    if isinstance(test, TextTest):
        return not test.negated and test.relation is not TextRelation.REGEX
    if isinstance(test, In):
        return not test.negated
    if isinstance(test, Function):
        return test.name in _LOOKED_UP
    return isinstance(test, InstanceOf) or (isinstance(test, Compare) and test.op == "=")


def _is_of_words(expression: TextExpression) -> bool:
    operands = expression.operands if isinstance(expression, TextOr) else (expression,)
    return all(isinstance(operand, Word | Prefix) for operand in operands)


def _narrows(test: Expression) -> bool:
    """Can an index find the nodes of which it holds?"""
    if isinstance(test, AnyOf):
        return all(map(_narrows, test.conditions))
    if isinstance(test, AllOf):
        return any(map(_narrows, test.conditions))
    if isinstance(test, FullText):
        return not isinstance(test.expression, TextNot)
    if isinstance(test, Compare):
        return test.op != "!="
    return _is_key(test)
