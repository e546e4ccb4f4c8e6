"""What an indexed test looks for in a node: postings, each a plain tuple that JSON can hold.

A test holds of a node when one of its postings does. A test that is no disjunction of such look-ups is residual: it is
only ever evaluated (`triplewire.ir.evaluation.expressions.holds`). The postings are exact:
`triplewire.clauses.view` finds the nodes of which a test holds, no more and no fewer.

    ("w", word)  ("p", prefix)                     by the default analyser
    ("W", tokenizer, stemming, diacritics, word)   by another one; "P" with a prefix
    ("s", kinds, where, text)                      the text is in the node's ("c"), at its start ("s"), at its end ("e")
                                                   or is it ("b"). A letter before says of which case the
                                                   node's text is made first: "L" lower, "U" upper, "I" ignored as
                                                   RE2 does
    ("l", "=", language)  ("l", "~", range)        the node is a literal of such a language, or of none ("")
    ("t", kinds, text)                             the node's text is this
    ("e", suffix, text)                            the node is this literal; suffixes as in `triplewire.encode.batch`
    ("n", op, constant)  ("i", op, constant)       lenient numbers, lenient instants
    ("N", op, lexical, datatype)  ("M", ...)       strict numbers, strict dates and times
    ("c", relation, IRI)  ("c", relation, IRI, name)   a class, by its IRI or by a label

`op` is one of = != < <= > >=, the node on its left. All but = are tests of their own, never one of several postings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from triplewire.ir.nodes import (
    Analyzer,
    AnyOf,
    Coercion,
    Compare,
    FullText,
    Function,
    In,
    InstanceOf,
    Label,
    Prefix,
    TextExpression,
    TextOr,
    TextRelation,
    TextTest,
    Word,
)
from triplewire.ir.normal_form import Test, X
from triplewire.ir.values.compare import BOOLEAN, BOOLEANS, Text, label_of, value_of
from triplewire.ir.values.dates import Moment, lenient_instant
from triplewire.ir.values.numbers import Number, lenient_number
from triplewire.ir.values.regexes import PLAIN
from triplewire.model.packed import suffix_of
from triplewire.model.terms import IRI, XSD_STRING, Literal

Posting: TypeAlias = tuple[str | int, ...]

TEXT_LITERAL, OTHER_LITERAL, AN_IRI, TOO_LONG, HALVED = 1, 2, 4, 8, 16
LITERAL = TEXT_LITERAL | OTHER_LITERAL
ANY_TEXT = LITERAL | AN_IRI
SHORT_TEXT = ANY_TEXT | TOO_LONG
SUFFIX = 32
"""Kinds of nodes, as bits. SHORT_TEXT is what SPARQL's STR takes: no text that is TOO_LONG. Regular expressions take no
text with half a surrogate pair, HALVED. The number of a suffix is in the bits from SUFFIX on."""

LOWER, UPPER, CASELESS = "L", "U", "I"
"""How the text of a node is changed before it is searched: see the postings "s" above."""

DEFAULT = Analyzer()
ORDERS = ("<", "<=", ">", ">=")
RANKED = (*ORDERS, "!=")
"""The operators of range tests (`triplewire.kernels.shared.columns`)."""

_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLACES = {TextRelation.CONTAINS: "c", TextRelation.STARTS: "s", TextRelation.ENDS: "e"}
_CASES = {"LCASE": LOWER, "UCASE": UPPER}
_FUNCTIONS = {"CONTAINS": "c", "STRSTARTS": "s", "STRENDS": "e"}
_ANCHORED = {"": "c", "^": "s", "$": "e", "^$": "b"}


def postings(test: Test) -> tuple[Posting, ...] | None:
    """The postings of a test, none for one that never holds; None for a residual test."""
    match test:
        case FullText(_, expression):
            return _of_text(expression)
        case Compare():
            return _compared(test)
        case Label(text, iri):
            return (("t", LITERAL, text), ("t", AN_IRI, iri)) if iri else (("t", LITERAL, text),)
        case TextTest(relation, _, text, False) if relation in _PLACES and text:
            return (("s", LITERAL, _PLACES[relation], text),)
        case TextTest(TextRelation.REGEX, _, text, False):
            return _regex(text, "", LITERAL)
        case InstanceOf(_, relation, Label(text, iri)):
            return (("c", relation.value, iri, text),)
        case InstanceOf(_, relation, IRI(iri)):
            return (("c", relation.value, iri),)
        case In(operand, choices, False):
            return _merged(postings(Compare("=", operand, choice)) for choice in choices)
        case AnyOf(conditions):
            return _merged(map(postings, conditions))
        case Function():
            return _function(test)
    return None


def _merged(parts: Iterable[tuple[Posting, ...] | None]) -> tuple[Posting, ...] | None:
    merged: list[Posting] = []
    for part in parts:
        if part is None or any(posting[1] in RANKED for posting in part if posting[0] in ("n", "i", "N", "M")):
            return None
        merged += part
    return tuple(dict.fromkeys(merged))


def _of_text(expression: TextExpression) -> tuple[Posting, ...] | None:
    match expression:
        case Word(word, analyzer):
            return (("w", word),) if analyzer == DEFAULT else (("W", *_named(analyzer), word),)
        case Prefix(prefix, analyzer) if prefix:
            return (("p", prefix),) if analyzer == DEFAULT else (("P", *_named(analyzer), prefix),)
        case TextOr(operands):
            return _merged(map(_of_text, operands))
    return None


def _named(analyzer: Analyzer) -> tuple[str, str, int]:
    return analyzer.tokenizer, analyzer.stemming, int(analyzer.ignore_diacritics)


def _function(test: Function) -> tuple[Posting, ...] | None:
    match test:
        case Function("CONTAINS" | "STRSTARTS" | "STRENDS", (operand, Literal(text, datatype))):
            if datatype != XSD_STRING or not text:
                return None
            change, kinds = _string(operand)
            return (("s", kinds, change + _FUNCTIONS[test.name], text),) if kinds else None
        case Function("REGEX", (operand, Literal(text, datatype))) if datatype == XSD_STRING:
            return _regex(text, *_string(operand))
        case Function("REGEX", (operand, Literal(text, datatype), flags)) if datatype == XSD_STRING:
            change, kinds = _string(operand)
            if flags == Literal("i") and not change and text.isascii():  # beyond ASCII, RE2's folding is another one
                return _regex(text.lower(), CASELESS, kinds)
        case Function("LANGMATCHES", (operand, Literal(text, datatype))):
            return (("l", "~", text),) if operand == _LANG and datatype == XSD_STRING else None
        case Function("SAMETERM", (left, right)):
            constant = right if left == X else left
            if X in (left, right) and isinstance(constant, IRI | Literal):
                return (_this(constant),)
    return None


_STR, _LANG = Function("STR", (X,)), Function("LANG", (X,))


def _string(operand: Test) -> tuple[str, int]:
    """How the text of a node is changed before a string function takes it, and which kinds of nodes have such a text.
    No kinds, 0, where the operand is computed in another way."""
    change = ""
    if isinstance(operand, Function) and operand.name in _CASES:
        change, (operand,) = _CASES[operand.name], operand.arguments
    return change, TEXT_LITERAL if operand == X else SHORT_TEXT if operand == _STR else 0


def _regex(pattern: str, change: str, kinds: int) -> tuple[Posting, ...] | None:
    plain = PLAIN.fullmatch(pattern)
    if plain is None or not kinds:
        return None
    return (("s", kinds | HALVED, change + _ANCHORED[plain[1] + plain[3]], plain[2]),)


def _this(term: IRI | Literal) -> Posting:
    if isinstance(term, IRI):
        return "t", AN_IRI, term.value
    return "e", suffix_of(term), term.lexical


def _compared(test: Compare) -> tuple[Posting, ...] | None:
    op, constant = test.op, test.right
    if op == "=" and _LANG in (test.left, test.right) and test.coercion is Coercion.STRICT:
        language = test.right if test.left == _LANG else test.left
        if isinstance(language, Literal) and language.datatype == XSD_STRING:
            return (("l", "=", language.lexical),)
        return None
    if op == "=" and X not in (test.left, test.right) and test.coercion is Coercion.STRICT:
        return _same_text(test.left, test.right) or _same_text(test.right, test.left)
    if test.right == X:
        op, constant = _FLIPPED.get(op, op), test.left
    if op not in _FLIPPED or X not in (test.left, test.right) or not isinstance(constant, IRI | Literal | Label):
        return None
    if test.coercion is Coercion.LENIENT:
        return _lenient(op, constant)
    return _strict(op, Literal(constant.text) if isinstance(constant, Label) else constant)


def _same_text(operand: Test, constant: Test) -> tuple[Posting, ...] | None:
    change, kinds = _string(operand)
    if kinds == SHORT_TEXT and isinstance(constant, Literal) and constant.datatype == XSD_STRING and constant.lexical:
        return (("s", kinds, change + "b", constant.lexical),)
    return None


def _lenient(op: str, constant: IRI | Literal | Label) -> tuple[Posting, ...] | None:
    text = label_of(constant)
    if text.strip() == "NaN" or (op in ORDERS and isinstance(constant, IRI)):
        return ()
    if lenient_number(text.strip()) is not None:
        return (("n", op, text.strip()),)
    if lenient_instant(text.strip()) is not None:
        return (("i", op, text.strip()),)
    if op != "=":
        return None
    if isinstance(constant, Label) and constant.iri:
        return ("t", ANY_TEXT, text), ("t", AN_IRI, constant.iri)
    return (("t", ANY_TEXT, text),)


def _strict(op: str, constant: IRI | Literal) -> tuple[Posting, ...] | None:
    if isinstance(constant, IRI):
        return (_this(constant),) if op == "=" else () if op in ORDERS else None
    value = value_of(constant)
    if isinstance(value, Number):
        if value.value != value.value:  # NaN
            return None if op == "!=" else ()
        return (("N", op, constant.lexical, constant.datatype),)
    if isinstance(value, Moment):
        return (("M", op, constant.lexical, constant.datatype),)
    if op != "=":
        return None
    if isinstance(value, Text):
        return (_this(constant),)
    if isinstance(value, bool):
        return tuple([("e", BOOLEAN, lexical) for lexical, meant in BOOLEANS.items() if meant is value])
    return None
