"""Keys by which a database compares values as the engine does (semantics, section 2, lenient comparison).

A database has no exact decimals of any size (SQLite has none at all), no years below 1, and its own orders of text.
So numbers and instants become texts whose order by code point is that of the values, and equal values have equal
keys; texts stand for themselves. A constant is read as a number, an instant or a text, and compared with the column
of that kind.

    "92"  -> p2:92 (as "p" + order of magnitude + digits)      "-0.5" -> the same of 0.5, each part turned round
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from triplewire.errors import UnsupportedQuery
from triplewire.ir.values.dates import lenient_instant
from triplewire.ir.values.numbers import lenient_number
from triplewire.languages.mdv import Rule
from triplewire.model.terms import IRI, BlankNode, Literal, Term

BRIEF = 160
"""Characters of a key that stand in an index. PostgreSQL takes 2,704 bytes; the order of beginnings never contradicts
that of the keys."""

_TURNED = str.maketrans("0123456789", "9876543210")
_MIDDLE = ord("m")


Keys: TypeAlias = tuple[str | None, str | None, str | None, str | None]


def compared_by(term: Term) -> Keys:
    """What a term is compared by (none: it fails every comparison), the same of a literal alone, which has an order and
    contains text, and its keys as a number and an instant."""
    if isinstance(term, BlankNode):
        return None, None, None, None
    if isinstance(term, IRI):
        return term.value, None, None, None
    label = None if term.lexical.strip() == "NaN" else term.lexical
    return label, term.lexical, number_key(term.lexical), instant_key(term.lexical)


def number_key(text: str) -> str | None:
    """The key of a label that reads as a number; None for any other."""
    number = lenient_number(text)
    return None if number is None else decimal_key(number)


def instant_key(text: str) -> str | None:
    """The key of a label that reads as a date or dateTime; None for any other."""
    instant = lenient_instant(text)
    if instant is None:
        return None
    seconds, fraction = instant
    scaled = seconds * 10 ** len(fraction) + int(fraction or "0")
    return decimal_key(Decimal((int(scaled < 0), tuple(map(int, str(abs(scaled)))), -len(fraction))))


def decimal_key(number: Decimal) -> str:
    """A text for an exact number; the texts are ordered by code point as the numbers are.

    Source: the scheme of sign, length of the exponent, exponent, digits, as in "Efficient Lexicographic Encoding of
    Numbers" (Peter Seymour); where a part has to be ordered the other way, each digit becomes its complement to 9.
    """
    sign, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    if not written:
        return "n"
    assert isinstance(exponent, int)  # lenient numbers are finite
    magnitude = exponent + len(written)
    written = written.rstrip("0")
    if sign:
        return f"-{_integer(-magnitude)}{written.translate(_TURNED)}~"  # `~` behind all digits: -5 above -5.2
    return f"p{_integer(magnitude)}{written}"


def _integer(value: int) -> str:
    """An integer of at most 17 digits, ordered: a letter says sign and count of the digits that follow."""
    digits = str(abs(value))
    if value < 0:
        return f"{chr(_MIDDLE - len(digits))}{digits.translate(_TURNED)}"
    return f"{chr(_MIDDLE + len(digits) - 1)}{digits}"


def constant_key(text: str) -> tuple[str, str]:
    """How values are read that are compared with this constant ("number", "instant" or "text"), and its key."""
    if (key := number_key(text.strip())) is not None:
        return "number", key
    if (key := instant_key(text.strip())) is not None:
        return "instant", key
    return "text", text


def check_constants(rule: Rule, source: str) -> None:
    """Raises `UnsupportedQuery` with line and column for a constant that no database takes."""
    for test in rule.tests:
        if any(isinstance(side, Literal) and "\x00" in side.lexical for side in (test.left, test.right)):
            line, column = rule.place(test)
            raise UnsupportedQuery("a constant holds U+0000, as no text does", source=source, line=line, column=column)
