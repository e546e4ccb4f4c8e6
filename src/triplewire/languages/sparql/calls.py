"""Calls of expensive operators in SPARQL: `op:name(...)` in a filter, `CALL name(...)` in a group.

The operators themselves: `triplewire.operators`.
"""

from __future__ import annotations

from triplewire.ir.nodes import Call, Variable
from triplewire.languages.grammar.calls import refuse_constants
from triplewire.languages.grammar.tokens import Token
from triplewire.languages.sparql.functions import Arity
from triplewire.languages.sparql.terms import TermReader
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.terms import IRI, Literal
from triplewire.operators import remedy_for_unknown

NAMESPACE = PREDECLARED["op"]


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
    operators = tokens.context.operators
    operator = operators.get(name)
    if operator is None:
        tokens.fail(token, f"there is no operator {name!r}", remedy_for_unknown(operators, name))
    arguments: list[Variable | IRI | Literal] = []
    tokens.expect("(")
    while not tokens.accept(")"):
        if arguments:
            tokens.expect(",")
        argument = terms.accept_variable() or terms.accept_constant()
        if argument is None:
            tokens.unexpected("a variable, an IRI or a literal")
        arguments.append(argument)
    wanted = [parameter.name for parameter in operator.parameters]
    if len(arguments) != len(wanted):
        tokens.fail(
            token,
            f"the operator {name!r} takes {Arity(len(wanted), len(wanted))}, not {len(arguments)}",
            f"write {name}({', '.join(wanted)})",
        )
    refuse_constants(tokens, token, operator, arguments)
    return Call(name, tuple(arguments))
