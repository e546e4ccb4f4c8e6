"""Writes a part of the intermediate representation as one line of text, close to SPARQL.

    {?s rdf:type rss:item . ?s dc:date ?d . FILTER (?d >~ 2003)}

A `~` after a comparison marks the lenient coercion, single quotes a bare label of GQL, `?.1` a hidden variable. Terms
are shortened by the predeclared prefixes. Different trees have different texts. The nodes are in `triplewire.ir.nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from triplewire.ir.nodes import (
    ANY,
    AllOf,
    Analyzer,
    And,
    AnyOf,
    Bind,
    Call,
    Coercion,
    Compare,
    Exists,
    Expression,
    Filter,
    FullText,
    Function,
    Holds,
    In,
    InstanceOf,
    Label,
    Minus,
    Near,
    Negate,
    Not,
    Optional,
    Or,
    Pattern,
    PatternTerm,
    Phrase,
    Prefix,
    TextAnd,
    TextExpression,
    TextNot,
    TextOr,
    TextTest,
    Values,
    Variable,
    Where,
    Word,
)
from triplewire.model.namespaces import shorten
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Term

Node: TypeAlias = Where | Expression | TextExpression | PatternTerm | BlankNode

_INFIX = {"+", "-", "*", "/"}
_BARE = {  # lexical forms that stand for a literal of the datatype when they stand alone (SPARQL 1.1, 4.1.2)
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}


def show(node: Node) -> str:
    """The text of a part, an expression, a full-text expression or a term."""
    if isinstance(node, And | Or | Not | Optional | Minus | Pattern | Filter | Bind | Values | Call):
        return _where(node)
    if isinstance(node, Word | Prefix | Phrase | Near | TextNot | TextAnd | TextOr):
        return _text(node)
    if isinstance(node, IRI | Literal | BlankNode):
        return show_term(node)
    return _expression(node)


def show_term(term: Term) -> str:
    """A term in Turtle's notation, with prefixed names, and with numbers and booleans without quotes."""
    if isinstance(term, IRI):
        return shorten(term.value) or str(term)
    if isinstance(term, BlankNode) or term.language or term.datatype == XSD + "string":
        return str(term)
    bare = _BARE.get(term.datatype)
    if bare is not None and bare.fullmatch(term.lexical):
        return term.lexical
    return f"{Literal(term.lexical)}^^{show_term(IRI(term.datatype))}"


def show_position(term: PatternTerm) -> str:
    """A subject, predicate or object of a pattern."""
    if isinstance(term, Variable):
        return f"?{term.name}"
    if isinstance(term, Label):
        quoted = "'" + term.text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
        return f"{quoted}({show_term(IRI(term.iri))})" if term.iri else quoted
    return "*" if term is ANY else show_term(term)


def _list(nodes: Iterable[Node], separator: str = ", ") -> str:
    return separator.join(show(node) for node in nodes)


def _where(part: Where) -> str:
    match part:
        case Pattern(subject, predicate, object_):
            return f"{show_position(subject)} {show_position(predicate)} {show_position(object_)}"
        case And(parts):
            return "{" + _list(parts, " . ") + "}"
        case Or(branches):
            return "(" + _list(branches, " UNION ") + ")" if len(branches) > 1 else f"UNION({_list(branches)})"
        case Not(group):
            return f"NOT EXISTS {show(group)}"
        case Optional(group):
            return f"OPTIONAL {show(group)}"
        case Minus(group):
            return f"MINUS {show(group)}"
        case Filter(condition):
            return f"FILTER {show(condition)}"
        case Bind(variable, expression):
            return f"BIND({show(expression)} AS ?{variable.name})"
        case Values(variables, rows):
            lines = ("(" + " ".join("UNDEF" if t is None else show_term(t) for t in row) + ")" for row in rows)
            return f"VALUES ({_list(variables, ' ')}) {{{' '.join(lines)}}}"
        case Call():
            return "CALL " + _call(part)


def _call(call: Call) -> str:
    return f"{call.operator}({_list(call.arguments)})"


def _expression(node: Expression | PatternTerm) -> str:
    match node:
        case Compare(op, left, right, coercion):
            return f"({show(left)} {op}{'~' if coercion is Coercion.LENIENT else ''} {show(right)})"
        case TextTest(relation, operand, text, negated):
            verb = relation.value.upper()
            return f"(?{operand.name} {'NOT ' if negated else ''}{verb} {Literal(text)})"
        case InstanceOf(variable, relation, cls):
            return f"(?{variable.name} ISA {relation.value} {show(cls)})"
        case FullText(variable, expression):
            return f"ftcontains(?{variable.name}, {show(expression)})"
        case Function(name, arguments):
            return _function(name, arguments)
        case AllOf(conditions):
            return f"({_list(conditions, ' && ')})" if len(conditions) > 1 else f"ALL({_list(conditions)})"
        case AnyOf(conditions):
            return f"({_list(conditions, ' || ')})" if len(conditions) > 1 else f"ANY({_list(conditions)})"
        case Negate(condition):
            return f"!{show(condition)}"
        case In(operand, choices, negated):
            return f"({show(operand)} {'NOT IN' if negated else 'IN'} ({_list(choices)}))"
        case Exists(group):
            return f"EXISTS {show(group)}"
        case Holds(call):
            return f"op:{_call(call)}"
    return show_position(node)


def _function(name: str, arguments: tuple[Expression, ...]) -> str:
    if name in _INFIX and len(arguments) == 2:
        return f"({show(arguments[0])} {name} {show(arguments[1])})"
    written = show_term(IRI(name)) if ":" in name else name
    return f"{written}({_list(arguments)})"


def _text(node: TextExpression) -> str:
    match node:
        case Word(word, analyzer):
            return f"{Literal(word)}{_analyzer(analyzer)}"
        case Prefix(prefix, analyzer):
            return f"{Literal(prefix + '*')}{_analyzer(analyzer)}"
        case Phrase(items):
            words = [item.word if isinstance(item, Word) else item.prefix + "*" for item in items]
            return f"{Literal(' '.join(words))}{_analyzer(items[0].analyzer)}"
        case Near(operands, gaps, ordered):
            out = show(operands[0])
            for operand, (least, most), in_order in zip(operands[1:], gaps, ordered, strict=True):
                out += f" ftNEAR[{least},{most}]{'' if in_order else ' UNORDERED'} {show(operand)}"
            return f"({out})"
        case TextNot(operand):
            return f"ftNOT {show(operand)}"
        case TextAnd(operands):
            return f"({_list(operands, ' ftAND ')})" if len(operands) > 1 else f"ftALL({_list(operands)})"
        case TextOr(operands):
            return f"({_list(operands, ' ftOR ')})" if len(operands) > 1 else f"ftANY({_list(operands)})"


def _analyzer(analyzer: Analyzer) -> str:
    out = ""
    if analyzer.tokenizer != "default":
        out += f' USING ANALYZER "{analyzer.tokenizer}"'
    if analyzer.stemming:
        out += f' USING STEMMING "{analyzer.stemming}"'
    return out + (" USING DIACRITICS INSENSITIVE" if analyzer.ignore_diacritics else "")
