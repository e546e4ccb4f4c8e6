"""Calls of expensive operators in SPARQL: `op:name(...)` in a filter, `CALL name(...)` in a group.

The operators themselves: `triplewire.operators`.
"""

from __future__ import annotations

from triplewire.ir.nodes import Call, Variable
from triplewire.languages.grammar.calls import NAMESPACE, operator_of, whole_call
from triplewire.languages.grammar.tokens import Token
from triplewire.languages.sparql.terms import TermReader
from triplewire.model.terms import IRI, Literal


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
