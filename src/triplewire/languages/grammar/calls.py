"""Calls of expensive operators as GQL and operator predicates write them: `locIn(Bronx, ?where, 5 km)`.

Bare arguments are plain literals; a number followed by letters is a quantity, converted to the unit that the operator
declares for that parameter. The operators themselves: `triplewire.operators`. SPARQL's: `languages.sparql.calls`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triplewire.ir.nodes import Call, Variable
from triplewire.languages.grammar.bare import NamesInForce, Raw, literal, read_raw
from triplewire.languages.grammar.quantities import convert, units_like
from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.operator import Operator, warnings_of_call
from triplewire.model.terms import IRI, Literal
from triplewire.operators import remedy_for_unknown

NAMESPACE = PREDECLARED["op"]
QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) ?([^\W\d_]\S*|°\S+|%)")


def call_ahead(names: NamesInForce, ahead: int = 0) -> bool:
    """Does a call stand `ahead` tokens further on: a name directly followed by a parenthesis? Behind an operator's name
    there may be blanks."""
    tokens = names.tokens
    name, after = tokens.peek(ahead), tokens.peek(ahead + 1)
    if name.kind not in ("word", "name") or after.text != "(":
        return False
    return after.offset == name.offset + len(name.text) or name.text.removeprefix("op:") in tokens.context.operators


def read_call(names: NamesInForce) -> tuple[Call, Token]:
    """The call at the cursor, and its first token. Raises `LanguageError`: no such operator, not its arguments."""
    tokens = names.tokens
    token = tokens.next()
    name = token.text
    if token.kind == "name":
        iri = names.iri_of(token).value
        if not iri.startswith(NAMESPACE):
            tokens.fail(token, f"{token} names no operator", "write the operator's bare name, or op:name")
        name = iri[len(NAMESPACE) :]
    elif token.kind != "word":
        tokens.fail(token, f"found {token}, expected an operator's name")
    operators = tokens.context.operators
    operator = operators.get(name)
    if operator is None:
        tokens.fail(token, f"there is no operator {name!r}", remedy_for_unknown(operators, name))
    return Call(name, _arguments(names, token, operator)), token


def _arguments(names: NamesInForce, token: Token, operator: Operator) -> tuple[Variable | IRI | Literal, ...]:
    tokens, parameters = names.tokens, operator.parameters
    arguments: list[Variable | IRI | Literal] = []
    tokens.expect("(")
    while not tokens.accept(")"):
        if arguments and not tokens.accept(","):
            tokens.unexpected("',' or ')'")
        unit = parameters[len(arguments)].unit if len(arguments) < len(parameters) else ""
        arguments.append(_argument(names, unit))
    if len(arguments) != len(parameters):
        tokens.fail(
            token,
            f"the operator {operator.name!r} takes {len(parameters)} argument{'s' * (len(parameters) != 1)}, "
            f"not {len(arguments)}",
            f"write {operator.name}({', '.join(parameter.name for parameter in parameters)})",
        )
    refuse_constants(tokens, token, operator, arguments)
    return tuple(arguments)


def refuse_constants(tokens: Tokens, token: Token, operator: Operator, arguments: Sequence[object]) -> None:
    """Refuse a call, written at `token`, whose constants the operator could only fail on."""
    try:
        warnings_of_call(operator, arguments)
    except ValueError as error:
        wanted = ", ".join(parameter.name for parameter in operator.parameters)
        tokens.fail(token, f"{operator.name}: {error}", f"write {operator.name}({wanted})")


def _argument(names: NamesInForce, unit: str) -> Variable | IRI | Literal:
    tokens = names.tokens
    token = tokens.accept_kind("variable", "string", "iri")
    if token is None:
        raw = read_raw(tokens, (",",), "an argument", "',' or ')'")
        written = quantity(raw)
        if written is not None:
            return Literal(converted(names, raw.first, written, unit))
        value = names.bare(raw)
        return Literal(value) if isinstance(value, str) else value
    if token.kind == "variable":
        return Variable(token.text[1:])
    return literal(names, token) if token.kind == "string" else names.reference(token)


def quantity(raw: Raw) -> tuple[str, str] | None:
    """Number and unit, where bare text is a number followed by letters."""
    match = QUANTITY.fullmatch(raw.text)
    return (match[1], match[2]) if match else None


def converted(names: NamesInForce, token: Token, written: tuple[str, str], unit: str) -> str:
    """A quantity, written at `token`, as a plain number of `unit`; "" takes none."""
    number, written_unit = written
    if not unit:
        names.tokens.fail(
            token, f"the operator takes no unit here, found {written_unit!r}", "leave the unit out, or quote the text"
        )
    try:
        return convert(number, written_unit, unit)
    except ValueError as error:
        names.tokens.fail(token, str(error), f"known: {units_like(unit)}; or quote the text")
