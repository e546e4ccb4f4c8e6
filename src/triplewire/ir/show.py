"""Writes a part of the intermediate representation as one line of text, close to SPARQL.

    {?s rdf:type rss:item . ?s dc:date ?d . FILTER (?d >~ 2003)}

A `~` after a comparison marks the lenient coercion, single quotes a bare label of GQL, `?.1` a hidden variable. Terms
are shortened by the predeclared prefixes. Different trees have different texts. The nodes are in `triplewire.ir.nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from triplewire.ir import nodes as ir
from triplewire.model.namespaces import shorten
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Term, made_iri

Node: TypeAlias = ir.Where | ir.Expression | ir.TextExpression | ir.PatternTerm | BlankNode

_INFIX = {"+", "-", "*", "/"}
_BARE = {  # lexical forms that stand for a literal of the datatype when they stand alone (SPARQL 1.1, 4.1.2)
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}


def show(node: Node) -> str:
    """The text of a part, an expression, a full-text expression or a term."""
    if isinstance(
        node, ir.And | ir.Or | ir.Not | ir.Optional | ir.Minus | ir.Pattern | ir.Filter | ir.Bind | ir.Values | ir.Call
    ):
        return _where(node)
    if isinstance(node, ir.TextExpression):
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
    return f"{Literal(term.lexical)}^^{show_term(made_iri(term.datatype))}"


def show_position(term: ir.PatternTerm) -> str:
    """A subject, predicate or object of a pattern."""
    if isinstance(term, ir.Variable):
        return f"?{term.name}"
    if isinstance(term, ir.Label):
        quoted = "'" + term.text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
        return f"{quoted}({show_term(IRI(term.iri))})" if term.iri else quoted
    return "*" if term is ir.ANY else show_term(term)


def _list(nodes: Iterable[Node], separator: str = ", ") -> str:
    return separator.join(show(node) for node in nodes)


def _where(part: ir.Where) -> str:
    match part:
        case ir.Pattern(subject, predicate, object_):
            return f"{show_position(subject)} {show_position(predicate)} {show_position(object_)}"
        case ir.And(parts):
            return "{" + _list(parts, " . ") + "}"
        case ir.Or(branches):
            return "(" + _list(branches, " UNION ") + ")" if len(branches) > 1 else f"UNION({_list(branches)})"
        case ir.Not(group):
            return f"NOT EXISTS {show(group)}"
        case ir.Optional(group):
            return f"OPTIONAL {show(group)}"
        case ir.Minus(group):
            return f"MINUS {show(group)}"
        case ir.Filter(condition):
            return f"FILTER {show(condition)}"
        case ir.Bind(variable, expression):
            return f"BIND({show(expression)} AS ?{variable.name})"
        case ir.Values(variables, rows):
            lines = ("(" + " ".join("UNDEF" if t is None else show_term(t) for t in row) + ")" for row in rows)
            return f"VALUES ({_list(variables, ' ')}) {{{' '.join(lines)}}}"
        case ir.Call():
            return "CALL " + _call(part)


def _call(call: ir.Call) -> str:
    return f"{call.operator}({_list(call.arguments)})"


def _expression(node: ir.Expression | ir.PatternTerm) -> str:
    match node:
        case ir.Compare(op, left, right, coercion):
            return f"({show(left)} {op}{'~' if coercion is ir.Coercion.LENIENT else ''} {show(right)})"
        case ir.TextTest(relation, operand, text, negated):
            verb = relation.value.upper()
            return f"(?{operand.name} {'NOT ' if negated else ''}{verb} {Literal(text)})"
        case ir.InstanceOf(variable, relation, cls):
            return f"(?{variable.name} ISA {relation.value} {show(cls)})"
        case ir.FullText(variable, expression):
            return f"ftcontains(?{variable.name}, {show(expression)})"
        case ir.Function(name, arguments):
            if name in _INFIX and len(arguments) == 2:
                return f"({show(arguments[0])} {name} {show(arguments[1])})"
            return f"{show_term(IRI(name)) if ':' in name else name}({_list(arguments)})"
        case ir.AllOf(conditions):
            return f"({_list(conditions, ' && ')})" if len(conditions) > 1 else f"ALL({_list(conditions)})"
        case ir.AnyOf(conditions):
            return f"({_list(conditions, ' || ')})" if len(conditions) > 1 else f"ANY({_list(conditions)})"
        case ir.Negate(condition):
            return f"!{show(condition)}"
        case ir.In(operand, choices, negated):
            return f"({show(operand)} {'NOT IN' if negated else 'IN'} ({_list(choices)}))"
        case ir.Exists(group):
            return f"EXISTS {show(group)}"
        case ir.Holds(call):
            return f"op:{_call(call)}"
    return show_position(node)


def _text(node: ir.TextExpression) -> str:
    match node:
        case ir.Word(word, analyzer):
            return f"{Literal(word)}{_analyzer(analyzer)}"
        case ir.Prefix(prefix, analyzer):
            return f"{Literal(prefix + '*')}{_analyzer(analyzer)}"
        case ir.Phrase(items):
            words = [item.word if isinstance(item, ir.Word) else item.prefix + "*" for item in items]
            return f"{Literal(' '.join(words))}{_analyzer(items[0].analyzer)}"
        case ir.Near(operands, gaps, ordered):
            out = show(operands[0])
            for operand, (least, most), in_order in zip(operands[1:], gaps, ordered, strict=True):
                out += f" ftNEAR[{least},{most}]{'' if in_order else ' UNORDERED'} {show(operand)}"
            return f"({out})"
        case ir.TextNot(operand):
            return f"ftNOT {show(operand)}"
        case ir.TextAnd(operands):
            return f"({_list(operands, ' ftAND ')})" if len(operands) > 1 else f"ftALL({_list(operands)})"
        case ir.TextOr(operands):
            return f"({_list(operands, ' ftOR ')})" if len(operands) > 1 else f"ftANY({_list(operands)})"


def _analyzer(analyzer: ir.Analyzer) -> str:
    out = ""
    if analyzer.tokenizer != "default":
        out += f' USING ANALYZER "{analyzer.tokenizer}"'
    if analyzer.stemming:
        out += f' USING STEMMING "{analyzer.stemming}"'
    return out + (" USING DIACRITICS INSENSITIVE" if analyzer.ignore_diacritics else "")
