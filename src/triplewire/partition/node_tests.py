"""Does a test of a node follow from other tests of it, or from what the node is? "Don't know" is no.

Tests are those of a normal form (`triplewire.ir.normal_form`). Where a test is true, all that follows from
it must be true, in every publication, whatever else the publication says of the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triplewire.ir.evaluation.expressions import TEXT_TESTS
from triplewire.ir.evaluation.patterns import fits
from triplewire.ir.fulltext import satisfies
from triplewire.ir.nodes import (
    AllOf,
    AnyOf,
    Coercion,
    Compare,
    Expression,
    FullText,
    In,
    InstanceOf,
    Label,
    Near,
    Phrase,
    Prefix,
    Relation,
    TextAnd,
    TextExpression,
    TextNot,
    TextOr,
    TextRelation,
    TextTest,
    Variable,
    Word,
)
from triplewire.ir.normal_form import Test, X
from triplewire.ir.taxonomy import Taxonomy
from triplewire.ir.values.compare import OPERATORS, Text, lenient, strict, value_of
from triplewire.ir.values.dates import Moment, lenient_instant
from triplewire.ir.values.numbers import ExpressionError, Number, lenient_number
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, Literal, made_iri

_DEEPEST = 16  # expressions in each other that are looked into
_LONGEST_CHOICE = 64  # members of an IN that are looked at one by one
_EXACT = 1 << 24  # whole numbers up to it are the same as float, double and decimal
_WHOLE = frozenset(XSD + name for name in ("integer", "decimal", "int", "long", "short", "byte", "nonNegativeInteger"))
_DOUBLE = XSD + "double"
_EMPTY = Publication("urn:none", triples=()).graph

# --- full text -------------------------------------------------------------------------------------------------------


def words_follow(wanted: TextExpression, given: TextExpression, depth: int = 0) -> bool:
    """Does every text that satisfies `given` satisfy `wanted`?"""
    if wanted == given:
        return True
    if depth > _DEEPEST:
        return False
    deeper = depth + 1
    if isinstance(given, TextOr):
        return all(words_follow(wanted, operand, deeper) for operand in given.operands)
    if isinstance(wanted, TextAnd):
        return all(words_follow(operand, given, deeper) for operand in wanted.operands)
    if isinstance(wanted, TextOr) and any(words_follow(operand, given, deeper) for operand in wanted.operands):
        return True
    if isinstance(given, TextAnd):
        return any(words_follow(wanted, operand, deeper) for operand in given.operands)
    if isinstance(wanted, TextNot):
        return isinstance(given, TextNot) and words_follow(given.operand, wanted.operand, deeper)
    if isinstance(given, Near):
        return any(words_follow(wanted, operand, deeper) for operand in given.operands)
    words, items = _items(wanted), _items(given)
    return words is not None and items is not None and _stand_in(words, items)


def _items(expression: TextExpression) -> tuple[Word | Prefix, ...] | None:
    """The items of a phrase, or of one word or prefix. None of anything else, and of a phrase whose words have passed
    through different analyzers."""
    if isinstance(expression, Word | Prefix):
        return (expression,)
    if isinstance(expression, Phrase):
        analyzers = {item.analyzer for item in expression.items}
        return expression.items if len(analyzers) == 1 else None
    return None


def _stand_in(wanted: Sequence[Word | Prefix], given: Sequence[Word | Prefix]) -> bool:
    """Do the wanted items stand one behind the other in those that are given?"""
    starts = range(len(given) - len(wanted) + 1)
    return any(all(map(_item, wanted, given[start:])) for start in starts)


def _item(wanted: Word | Prefix, given: Word | Prefix) -> bool:
    """Is a word that is `given` one that is `wanted`? Stemmed words and prefixes, which are not, differ."""
    if wanted == given:
        return True
    if wanted.analyzer != given.analyzer or wanted.analyzer.stemming or not isinstance(wanted, Prefix):
        return False
    return (given.word if isinstance(given, Word) else given.prefix).startswith(wanted.prefix)


# --- node tests ------------------------------------------------------------------------------------------------------


def follows(wanted: Test, given: Sequence[Test], taxonomy: Taxonomy) -> bool:
    """Is `wanted` true of every node of which all tests `given` are true?"""
    if wanted in given:
        return True
    if isinstance(wanted, AllOf):
        return all(follows(part, given, taxonomy) for part in wanted.conditions)
    if isinstance(wanted, FullText) and isinstance(wanted.expression, TextAnd):
        return all(follows(FullText(X, part), given, taxonomy) for part in wanted.expression.operands)
    if isinstance(wanted, AnyOf) and any(follows(part, given, taxonomy) for part in wanted.conditions):
        return True
    if isinstance(wanted, In) and not wanted.negated and len(wanted.choices) <= _LONGEST_CHOICE:
        return follows(_choices(wanted), given, taxonomy)
    return any(_follows_one(wanted, test, taxonomy) for test in given)


def holds(test: Test, node: IRI | Literal, taxonomy: Taxonomy) -> bool:
    """Is the test true of this very node, in every publication? False where that is not known."""
    match test:
        case AllOf(conditions):
            return all(holds(part, node, taxonomy) for part in conditions)
        case AnyOf(conditions):
            return any(holds(part, node, taxonomy) for part in conditions)
        case Label():
            return fits(test, node)
        case FullText():
            return isinstance(node, Literal) and node.has_text and satisfies(test.expression, node.lexical)
        case TextTest() if test.relation is not TextRelation.REGEX:
            return isinstance(node, Literal) and TEXT_TESTS[test.relation](node.lexical, test.text) != test.negated
        case InstanceOf():  # what the publication states can only add to it
            return taxonomy.holds(node, test.relation, test.cls, _EMPTY)
        case Compare():
            return _compared(test, node)
        case In(negated=False):
            return test.operand == X and holds(_choices(test), node, taxonomy)
    return False


def _choices(test: In) -> AnyOf:
    """`IN` is by strict `=`."""
    return AnyOf(tuple([Compare("=", test.operand, choice, Coercion.STRICT) for choice in test.choices]))


def _compared(test: Compare, node: IRI | Literal) -> bool:
    limit = test.right
    if test.left != X or isinstance(limit, Variable) or not isinstance(limit, IRI | Literal | Label):
        return False
    if test.coercion is Coercion.LENIENT:
        return lenient(test.op, node, limit, constant=limit)
    if isinstance(limit, Label):
        return False
    try:
        return strict(test.op, node, limit)
    except ExpressionError:
        return False


def _follows_one(wanted: Test, given: Test, taxonomy: Taxonomy) -> bool:
    """Does it follow from one test?"""
    if wanted == given:
        return True
    if isinstance(given, AllOf):
        return follows(wanted, given.conditions, taxonomy)
    if isinstance(given, AnyOf):
        return all(follows(wanted, (part,), taxonomy) for part in given.conditions)
    if isinstance(given, In) and not given.negated and len(given.choices) <= _LONGEST_CHOICE:
        return follows(wanted, (_choices(given),), taxonomy)
    if isinstance(given, Label):
        return _follows_label(wanted, given, taxonomy)
    if isinstance(given, Compare) and (given.op, given.coercion, given.left) == ("=", Coercion.STRICT, X):
        node = given.right
        if isinstance(node, IRI) and holds(wanted, node, taxonomy):
            return True
    match wanted, given:
        case FullText(), FullText():
            return words_follow(wanted.expression, given.expression)
        case TextTest(), TextTest():
            return _text(wanted, given)
        case InstanceOf(), InstanceOf():
            return _is_below(wanted, given, taxonomy)
        case Compare(), Compare() if wanted.left == X and given.left == X and wanted.coercion is given.coercion:
            by = _lenient_range if wanted.coercion is Coercion.LENIENT else _strict_range
            return by(wanted.op, wanted.right, given.op, given.right)
    return False


def _follows_label(wanted: Test, label: Label, taxonomy: Taxonomy) -> bool:
    """Lenient tests look at the label alone, so they have one answer for all nodes that a bare label means."""
    for part in wanted.conditions if isinstance(wanted, AllOf | AnyOf) else (wanted,):
        is_lenient = isinstance(part, Compare) and part.coercion is Coercion.LENIENT
        if not (is_lenient or isinstance(part, TextTest | InstanceOf | Label)):
            return False
    nodes: tuple[IRI | Literal, ...] = Literal(label.text), *([made_iri(label.iri)] if label.iri else [])
    return all(holds(wanted, node, taxonomy) for node in nodes)


def _text(wanted: TextTest, given: TextTest) -> bool:
    if wanted.operand != given.operand or wanted.negated != given.negated:
        return False
    if wanted.negated:  # what has the one has the other, so what lacks the other lacks the one
        wanted, given = given, wanted
    contains, regex = TextRelation.CONTAINS, TextRelation.REGEX
    if regex in (wanted.relation, given.relation) or wanted.relation not in (contains, given.relation):
        return False
    return TEXT_TESTS[wanted.relation](given.text, wanted.text)


def _is_below(wanted: InstanceOf, given: InstanceOf, taxonomy: Taxonomy) -> bool:
    """Does the taxonomy say that the one relation gives the other?"""
    if wanted.variable != given.variable or not _named_alike(wanted.cls, given.cls):
        return False
    lower, upper = taxonomy.meant(given.cls), taxonomy.meant(wanted.cls)
    if not lower:
        return False
    match given.relation, wanted.relation:
        case (Relation.DESCENDANT | Relation.DIRECT, Relation.DESCENDANT) | (Relation.SUBCLASS, Relation.SUBCLASS):
            return all(upper & taxonomy.at_or_above(cls) for cls in lower)
        case Relation.ANCESTOR, Relation.ANCESTOR:
            return all(any(cls in taxonomy.at_or_above(other) for other in upper) for cls in lower)
        case Relation.DIRECT, Relation.DIRECT:
            return lower <= upper
    return False


def _named_alike(a: IRI | Label, b: IRI | Label) -> bool:
    """Are literals resolved in the same way for both? What a literal stands for depends on how a class is named."""
    if isinstance(a, IRI) or isinstance(b, IRI):
        return isinstance(a, IRI) and isinstance(b, IRI)
    if not a.iri or not b.iri:
        return a.iri == b.iri
    spaces = [label.iri.removesuffix(label.text) for label in (a, b)]
    return a.iri.endswith(a.text) and b.iri.endswith(b.text) and spaces[0] == spaces[1]


# --- ranges ----------------------------------------------------------------------------------------------------------


def _lenient_range(op: str, limit: Expression, given_op: str, given_limit: Expression) -> bool:
    """Values are read as the constant is: as exact numbers, instants or texts."""
    if not (isinstance(limit, Literal | Label) and isinstance(given_limit, Literal | Label)):
        return False
    if any(isinstance(term, Label) and term.iri for term in (limit, given_limit)):
        return False  # `=` may mean the IRI, too
    (kind, wanted), (given_kind, given) = _reading(limit), _reading(given_limit)
    has_no_order = given_op == "=" and op not in ("=", "!=")  # an IRI of that text is equal, and has no order
    if kind != given_kind or kind == "NaN" or has_no_order:
        return False
    return _implied(op, wanted, given_op, given)


def _reading(term: Literal | Label) -> tuple[str, Any]:
    text = term.lexical if isinstance(term, Literal) else term.text
    if text.strip() == "NaN":
        return "NaN", text
    number = lenient_number(text.strip())
    if number is not None:
        return "number", number
    instant = lenient_instant(text.strip())
    return ("text", text) if instant is None else ("instant", instant)


def _strict_range(op: str, limit: Expression, given_op: str, given_limit: Expression) -> bool:
    """SPARQL's operator mapping. Numbers of several types are compared as the wider one, which rounds: between two
    decimals only what survives rounding follows."""
    if not (isinstance(limit, Literal) and isinstance(given_limit, Literal)):
        return False
    a, b = value_of(limit), value_of(given_limit)
    if isinstance(a, Text) and isinstance(b, Text):
        return a.language == b.language and _implied(op, a.lexical, given_op, b.lexical)
    if isinstance(a, Moment) and isinstance(b, Moment):
        if limit.datatype != given_limit.datatype or (a.zone is None) != (b.zone is None):
            return False
        return _implied(op, a.instant, given_op, b.instant)
    if not (isinstance(a, Number) and isinstance(b, Number)):
        return False
    x: Any = a.value
    y: Any = b.value
    if x != x or y != y:
        return False
    if limit.datatype == given_limit.datatype == _DOUBLE:
        return _implied(op, x, given_op, y)
    if limit.datatype not in _WHOLE or given_limit.datatype not in _WHOLE:
        return False
    if all(value == int(value) and abs(value) <= _EXACT for value in (x, y)):
        return _implied(op, x, given_op, y)
    return given_op[0] == op[0] and op[0] in "<>" and len(given_op) <= len(op) and _implied(op, x, given_op, y)


def _implied(op: str, limit: Any, given_op: str, given: Any) -> bool:
    """For values of one order: does `x given_op given` give `x op limit`?"""
    if given_op == "=":
        return OPERATORS[op](given, limit)
    if given_op == "!=":
        return op == "!=" and bool(given == limit)
    if op != "!=" and op[0] != given_op[0]:
        return False
    beyond = given < limit if given_op[0] == "<" else given > limit
    is_open = given_op in ("<", ">")
    return bool(beyond or (given == limit and (is_open or (op != "!=" and len(op) == 2))))
