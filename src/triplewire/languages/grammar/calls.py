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
    parameters = operator_of(tokens, token, name).parameters
    arguments: list[Variable | IRI | Literal] = []
    tokens.expect("(")
    while not tokens.accept(")"):
        if arguments and not tokens.accept(","):
            tokens.unexpected("',' or ')'")
        unit = parameters[len(arguments)].unit if len(arguments) < len(parameters) else ""
        arguments.append(_argument(names, unit))
    return whole_call(tokens, token, name, arguments), token


def operator_of(tokens: Tokens, token: Token, name: str) -> Operator:
    """The operator of a name that is written at `token`; refuses one that is not there."""
    operators = tokens.context.operators
    operator = operators.get(name)
    if operator is None:
        tokens.fail(token, f"there is no operator {name!r}", remedy_for_unknown(operators, name))
    return operator


def whole_call(tokens: Tokens, token: Token, name: str, arguments: Sequence[Variable | IRI | Literal]) -> Call:
    """The call of an operator, written at `token`, with these arguments. Refuses another number of them than it takes,
    and constants that it could only fail on."""
    operator = tokens.context.operators[name]
    count = len(operator.parameters)
    remedy = f"write {name}({', '.join(parameter.name for parameter in operator.parameters)})"
    if len(arguments) != count:
        what = f"the operator {name!r} takes {count} argument{'s' * (count != 1)}, not {len(arguments)}"
        tokens.fail(token, what, remedy)
    try:
        warnings_of_call(operator, arguments)
    except ValueError as error:
        tokens.fail(token, f"{name}: {error}", remedy)
    return Call(name, tuple(arguments))


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
