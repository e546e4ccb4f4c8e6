"""Group graph patterns (SPARQL 1.1, 5.2 and 19.8, productions 53 to 68): And, in the order of the text.

A nested group stays an And of its own, so that its filters reach no further than in SPARQL (18.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from triplewire.ir.nodes import (
    And,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    Holds,
    Minus,
    Negate,
    Not,
    Optional,
    Or,
    Pattern,
    Values,
    Variable,
    Where,
)
from triplewire.languages.grammar.tokens import Token
from triplewire.languages.sparql.calls import call_part
from triplewire.languages.sparql.expressions import Expressions
from triplewire.languages.sparql.terms import TermReader
from triplewire.languages.sparql.triples import BlankLabels, TripleReader
from triplewire.model.terms import IRI, Literal

Scope = dict[str, None]
"""The names of the variables in scope (18.2.1), in order of appearance."""

_MODIFIERS = {"GROUP": "GROUP BY", "HAVING": "HAVING", "ORDER": "ORDER BY", "LIMIT": "LIMIT", "OFFSET": "OFFSET"}
_REMEDIES = {
    "GROUP": "select the variables and group what is notified",
    "HAVING": "select the variables and group what is notified",
    "ORDER": "bindings are a set: leave it out",
    "LIMIT": "leave it out; max_bindings caps the bindings of a match",
    "OFFSET": "bindings are a set: leave it out",
}


class ParsedGroup(NamedTuple):
    """A group as read: its tree, and the visible variables that it may bind."""

    where: And
    scope: Scope


class Groups:
    """Reads groups at the cursor of `terms.tokens`."""

    def __init__(self, terms: TermReader) -> None:
        self._terms = terms
        self._tokens = terms.tokens
        self._labels = BlankLabels(terms)
        self.expressions = Expressions(terms, self._existing)

    def group(self) -> ParsedGroup:
        """`{ ... }`"""
        tokens = self._tokens
        with tokens.nested():
            tokens.expect("{")
            self._labels.end_of_pattern()
            parts: list[Where] = []
            scope: Scope = {}
            triples = TripleReader(self._terms, self._labels, parts)
            may_be_triples = True
            while not tokens.accept("}"):
                seen = len(parts)
                if (tokens.peek().kind != "symbol" and self._element(parts, scope)) or self._braces(parts, scope):
                    tokens.accept(".")
                    may_be_triples = True
                elif may_be_triples and triples.starts():
                    triples.same_subject()
                    for part in parts[seen:]:
                        _bound_by(part, scope)
                    may_be_triples = tokens.accept(".") is not None
                else:
                    self._unexpected(may_be_triples)
            self._labels.end_of_pattern()
            return ParsedGroup(And(tuple(parts)), scope)

    def _unexpected(self, may_be_triples: bool) -> None:
        self.refuse_modifiers()
        self._tokens.unexpected(
            "triples, a filter or another part of a group, or '}'" if may_be_triples else "'.' or '}'"
        )

    def refuse_modifiers(self) -> None:
        """Refuse, by name, what may follow a query's pattern but has no meaning for a standing query."""
        token = self._tokens.peek()
        if token.kind == "word" and token.text.upper() in _MODIFIERS:
            word = token.text.upper()
            self._tokens.unsupported(token, _MODIFIERS[word], _REMEDIES[word])

    def _existing(self) -> Where:
        """The group of EXISTS, within a filter: the basic graph pattern around the filter goes on behind it."""
        around = self._labels.current
        where = self.group().where
        self._labels.current = around
        return where

    def _braces(self, parts: list[Where], scope: Scope) -> bool:
        """A nested group, or several joined by UNION."""
        if not self._tokens.at("{"):
            return False
        branches = [self.group()]
        while self._tokens.accept("UNION"):
            branches.append(self.group())
        parts.append(Or(tuple(branch.where for branch in branches)) if len(branches) > 1 else branches[0].where)
        for branch in branches:
            scope.update(branch.scope)
        return True

    def _element(self, parts: list[Where], scope: Scope) -> bool:
        """A part that starts with a keyword; False where the next token is none."""
        tokens = self._tokens
        if tokens.accept("FILTER"):
            parts.append(as_part(self.expressions.constraint()))
            return True  # a filter does not end a basic graph pattern (5.2.2)
        keyword = tokens.accept("OPTIONAL", "MINUS", "BIND", "VALUES", "CALL")
        if keyword is None:
            self._refuse_other_data()
            return False
        self._labels.end_of_pattern()
        match keyword.text.upper():
            case "OPTIONAL":
                inner = self.group()
                parts.append(Optional(inner.where))
                scope.update(inner.scope)
            case "MINUS":
                parts.append(Minus(self.group().where))
            case "BIND":
                parts.append(self._bind(scope))
            case "VALUES":
                values = self.values()
                parts.append(values)
                _bound_by(values, scope)
            case _:
                made = call_part(self._terms)
                parts.append(made)
                _bound_by(made, scope)
        self._labels.end_of_pattern()
        return True

    def _refuse_other_data(self) -> None:
        """Refuse, by name, what would match anything but the publication's own triples."""
        token = self._tokens.peek()
        if self._tokens.at("GRAPH", "SERVICE"):
            remedy = "a publication is one graph: write the patterns without it" if self._tokens.at("GRAPH") else ""
            self._tokens.unsupported(token, token.text.upper(), remedy)
        if self._tokens.at("SELECT"):
            self._tokens.unsupported(token, "a subquery (SELECT inside a group)", "write its patterns directly")

    def _bind(self, scope: Scope) -> Bind:
        self._tokens.expect("(")
        expression = self.expressions.expression()
        bind = Bind(self._new_variable(scope), expression)
        self._tokens.expect(")")
        return bind

    def _new_variable(self, scope: Scope) -> Variable:
        """`AS ?variable`, which must not be in scope yet and then is."""
        self._tokens.expect("AS")
        token = self._tokens.peek()
        return self.introduce(token, self._terms.variable(), scope)

    def introduce(self, token: Token, variable: Variable, scope: Scope) -> Variable:
        """Bring `variable`, written at `token`, into scope; refuses one that is there already (18.2.1)."""
        if variable.name in scope:
            self._tokens.fail(token, f"{token.text} has a value already", "give the new value another name")
        scope[variable.name] = None
        return variable

    def values(self) -> Values:
        """The data block after VALUES (10.2)."""
        tokens = self._tokens
        start = tokens.peek()
        single = self._terms.accept_variable()
        variables: list[Variable] = []
        if single is None:
            tokens.expect("(")
            while variable := self._terms.accept_variable():
                variables.append(variable)
            tokens.expect(")")
        else:
            variables.append(single)
        if len(set(variables)) < len(variables):
            tokens.fail(start, "VALUES names a variable twice")
        tokens.expect("{")
        rows: list[tuple[IRI | Literal | None, ...]] = []
        while not tokens.accept("}"):
            first = tokens.peek()
            row = [self._datum()] if single is not None else self._row()
            if len(row) != len(variables):
                tokens.fail(first, f"a row of {len(row)} values for {len(variables)} variables")
            rows.append(tuple(row))
        return Values(tuple(variables), tuple(rows))

    def _row(self) -> list[IRI | Literal | None]:
        self._tokens.expect("(")
        row = []
        while not self._tokens.accept(")"):
            row.append(self._datum())
        return row

    def _datum(self) -> IRI | Literal | None:
        if self._tokens.accept("UNDEF"):
            return None
        constant = self._terms.accept_constant()
        if constant is None:
            self._tokens.unexpected("an IRI, a literal or UNDEF")
        return constant


def as_part(condition: Expression) -> Where:
    """A whole filter as a part of its group: NOT EXISTS is a Not, an operator call a Call."""
    match condition:
        case Negate(Exists(group)):
            return Not(group)
        case Holds(call):
            return call
    return Filter(condition)


def _bound_by(part: Where, scope: Scope) -> None:
    """Adds the visible variables of what triples, VALUES and CALL make. (Groups bring their own scope.)"""
    terms: Iterable[object] = ()
    match part:
        case Pattern(subject, predicate, object_):
            terms = (subject, predicate, object_)
        case Values(variables, _):
            terms = variables
        case Call(_, arguments):
            terms = arguments
        case And(inner) | Or(inner):  # made by a property path
            for below in inner:
                _bound_by(below, scope)
    for term in terms:
        if isinstance(term, Variable) and not term.hidden:
            scope[term.name] = None
