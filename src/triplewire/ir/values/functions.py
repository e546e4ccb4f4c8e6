"""The SPARQL 1.1 functions (17.4) and casts (17.5) that take values and give one; by name, in FUNCTIONS.

What is no plain function of its arguments' values (BOUND, IF, COALESCE, &&, IN, EXISTS ...) is in
`triplewire.ir.evaluation.expressions`; strings, casts, numbers, dates and regular expressions each have a module. A
function raises `ExpressionError` where SPARQL has an error.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TypeAlias
from urllib.parse import quote

from triplewire.ir.values import dates, numbers, regexes
from triplewire.ir.values.casts import CASTS
from triplewire.ir.values.compare import label_of, value_of
from triplewire.ir.values.dates import DATE_TIME, Moment
from triplewire.ir.values.numbers import DECIMAL, INTEGER, ExpressionError, Number, brief, number_literal
from triplewire.model.references import has_scheme, is_absolute, resolve
from triplewire.model.term_checks import LANGUAGE_TAG
from triplewire.model.terms import IRI, LANG_STRING, XSD_STRING, BlankNode, Literal, Term, made_iri, made_literal
from triplewire.model.values import MAX_DIGITS


def string_of(term: Term) -> Literal:
    """The term, which must be a string literal: simple, xsd:string or language-tagged."""
    if isinstance(term, Literal) and (term.datatype == XSD_STRING or term.language):
        return term
    raise ExpressionError(f"{brief(term)} is no string")


def simple(term: Term) -> str:
    """The text of the term, which must be a string without a language tag."""
    if isinstance(term, Literal) and term.datatype == XSD_STRING:
        return term.lexical
    raise ExpressionError(f"{brief(term)} is no string without a language tag")


def like(text: str, model: Literal) -> Literal:
    """A string with the language tag of `model`, if it has one."""
    return Literal(text, LANG_STRING, model.language) if model.language else Literal(text)


def compatible(first: Term, second: Term) -> tuple[Literal, str]:
    """The first argument and the text of the second, where the two may be used together (17.4.3.1.2)."""
    a, b = string_of(first), string_of(second)
    if b.language and b.language != a.language:
        raise ExpressionError("the two strings have different language tags")
    return a, b.lexical


def concat(arguments: Sequence[Term], limit: int) -> Literal:
    """CONCAT: all in one; with a language tag where all have the same."""
    strings = [string_of(argument) for argument in arguments]
    if sum(len(string.lexical) for string in strings) > limit:
        raise ExpressionError(f"CONCAT makes a text of more than {limit} characters")
    text = "".join(string.lexical for string in strings)
    languages = {string.language for string in strings}
    return like(text, strings[0]) if len(languages) == 1 else Literal(text)


def before_or_after(first: Term, second: Term, *, after: bool) -> Literal:
    """STRBEFORE, STRAFTER: what stands before or after the first occurrence, a plain empty string where there is
    none."""
    string, sought = compatible(first, second)
    head, _, tail = string.lexical.partition(sought) if sought else ("", "", string.lexical)
    return like(tail if after else head, string) if sought in string.lexical else Literal("")


def substring(first: Term, start: Term, length: Term | None) -> Literal:
    """SUBSTR: characters count from 1; positions outside the string hold nothing."""
    string = string_of(first)
    begin = _integer_of(start) - 1
    end = len(string.lexical) if length is None else begin + _integer_of(length)
    return like(string.lexical[max(begin, 0) : max(end, 0)], string)


def _integer_of(term: Term) -> int:
    number = value_of(term)
    if isinstance(number, Number) and number.kind == INTEGER:
        return int(number.value)
    raise ExpressionError(f"{brief(term)} is no integer")


def language_matches(tag: str, wanted: str) -> bool:
    """LANGMATCHES: basic filtering of RFC 4647, section 3.3.1."""
    tag, wanted = tag.lower(), wanted.lower()
    if wanted == "*":
        return tag != ""
    return tag == wanted or tag.startswith(wanted + "-")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a function's value depends on beside its arguments: NOW, and limits. `spend` is told of the steps that the
    work takes, before it is done, and may raise to refuse it."""

    now: dt.datetime
    max_text: int  # characters of a computed string
    max_regex: int  # UTF-8 bytes of a regular expression
    spend: Callable[[int], None]


Implementation: TypeAlias = Callable[[Sequence[Term], Surroundings], Term | bool]


def apply(name: str, arguments: Sequence[Term], surroundings: Surroundings) -> Term | bool:
    """The function's value. Raises `ExpressionError`."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise ExpressionError(f"there is no function {name}")
    surroundings.spend(1 + regexes.of_reading(*arguments, times=_TIMES.get(name, 1)))
    value = function(arguments, surroundings)
    if isinstance(value, Literal):
        surroundings.spend(regexes.of_reading(value))  # what is written
        if len(value.lexical) > surroundings.max_text:
            raise ExpressionError(f"{name} makes a text of more than {surroundings.max_text} characters")
    return value


def _literal(term: Term) -> Literal:
    if isinstance(term, Literal):
        return term
    raise ExpressionError(f"{brief(term)} is no literal")


def _number(term: Term) -> Number:
    value = value_of(term)
    if isinstance(value, Number):
        return value
    raise ExpressionError(f"{brief(term)} is no number")


def _moment(term: Term, fields: str) -> Moment:
    value = value_of(term)
    if isinstance(value, Moment) and (not fields or value.datatype in dates.HAS_FIELD[fields]):
        return value
    raise ExpressionError(f"{brief(term)} has no {fields or 'time zone'}")


def _lenient_number(a: Sequence[Term], _: Surroundings) -> Term:
    """What lenient comparison reads: the text, whatever the datatype. A decimal, so that arithmetic is exact."""
    value = None if isinstance(a[0], BlankNode) else numbers.lenient_number(label_of(a[0]))
    if value is None or abs(value.adjusted()) + len(value.as_tuple().digits) >= MAX_DIGITS:
        raise ExpressionError(f"{brief(a[0])} does not read as a number, or has too many digits")
    return number_literal(Number(DECIMAL, value))


def _integer(value: int) -> Literal:
    return number_literal(Number(INTEGER, value))


def _str(a: Sequence[Term], _: Surroundings) -> Term:
    if isinstance(a[0], BlankNode):
        raise ExpressionError("a blank node has no text")
    return Literal(a[0].value if isinstance(a[0], IRI) else a[0].lexical)


def _iri(a: Sequence[Term], _: Surroundings) -> Term:
    """The second argument, if there is one, is the base."""
    if isinstance(a[0], IRI):
        return a[0]
    text = simple(a[0])
    if not has_scheme(text) and len(a) > 1 and isinstance(a[1], IRI):
        text = resolve(text, a[1].value)
    if not is_absolute(text):
        raise ExpressionError(f"{text[:80]!r} is no absolute IRI")
    return IRI(text)


def _strlang(a: Sequence[Term], _: Surroundings) -> Term:
    text, tag = simple(a[0]), simple(a[1])
    if not LANGUAGE_TAG.fullmatch(tag):
        raise ExpressionError(f"{tag[:80]!r} is no language tag")
    return Literal.tagged(text, tag)


def _strdt(a: Sequence[Term], _: Surroundings) -> Term:
    text, datatype = simple(a[0]), a[1]
    if not isinstance(datatype, IRI) or datatype.value == LANG_STRING:
        raise ExpressionError(f"{brief(datatype)} is no datatype")
    return made_literal(text, datatype.value)


def _changed(change: Callable[[str], str]) -> Implementation:
    def apply_to(a: Sequence[Term], _: Surroundings) -> Term:
        string = string_of(a[0])
        return like(change(string.lexical), string)

    return apply_to


def _related(relation: Callable[[str, str], bool]) -> Implementation:
    def test(a: Sequence[Term], _: Surroundings) -> bool:
        string, sought = compatible(a[0], a[1])
        return relation(string.lexical, sought)

    return test


def _flags(a: Sequence[Term], at: int) -> str:
    return simple(a[at]) if len(a) > at else ""


def _regex(a: Sequence[Term], s: Surroundings) -> bool:
    regex = regexes.compile_regex(simple(a[1]), _flags(a, 2), s.max_regex)
    return regexes.matches(regex, string_of(a[0]).lexical, s.spend)


def _replace(a: Sequence[Term], s: Surroundings) -> Term:
    string, replacement, flags = string_of(a[0]), simple(a[2]), _flags(a, 3)
    regex = regexes.compile_regex(simple(a[1]), flags, s.max_regex)
    s.spend(len(replacement) // regexes.PIECES)
    pieces = regexes.pieces(replacement, regex.groups, literal="q" in flags)
    text = regexes.replace(regex, string.lexical, pieces, limit=s.max_text, spend=s.spend)
    return like(text, string)


def _now(_: Sequence[Term], s: Surroundings) -> Term:
    moment = Moment(DATE_TIME, *s.now.timetuple()[:6], f"{s.now.microsecond:06}".rstrip("0"), 0)
    return dates.moment_literal(moment, DATE_TIME)


def _seconds(a: Sequence[Term], _: Surroundings) -> Term:
    moment = _moment(a[0], "time")
    return number_literal(Number(DECIMAL, Decimal(f"{moment.second}.{moment.fraction or 0}")))


def _timezone(a: Sequence[Term], _: Surroundings) -> Term:
    zone = _moment(a[0], "").zone
    if zone is None:
        raise ExpressionError("a time without a zone")
    return dates.zone_duration(zone)


def _hash(algorithm: str) -> Implementation:
    def digest(a: Sequence[Term], _: Surroundings) -> Term:
        data = simple(a[0]).encode("utf-8", "replace")
        return Literal(hashlib.new(algorithm, data, usedforsecurity=False).hexdigest())

    return digest


def _of_number(change: Callable[[Number], Number]) -> Implementation:
    return lambda a, _: number_literal(change(_number(a[0])))


def _arithmetic(sign: str) -> Implementation:
    return lambda a, _: number_literal(numbers.arithmetic(sign, _number(a[0]), _number(a[1])))


def _cast(cast: Callable[[Term], Literal]) -> Implementation:
    return lambda a, _: cast(a[0])


FUNCTIONS: dict[str, Implementation] = {
    **{sign: _arithmetic(sign) for sign in "+-*/"},
    "NEGATE": _of_number(numbers.negative),
    "PLUS": _of_number(lambda number: number),
    "ABS": _of_number(numbers.absolute),
    "CEIL": _of_number(partial(numbers.rounded, up=True)),
    "FLOOR": _of_number(partial(numbers.rounded, up=False)),
    "ROUND": _of_number(numbers.round_half_up),
    "NUMBER": _lenient_number,
    "STR": _str,
    "LANG": lambda a, _: Literal(_literal(a[0]).language),
    "DATATYPE": lambda a, _: made_iri(_literal(a[0]).datatype),
    "IRI": _iri,
    "STRLANG": _strlang,
    "STRDT": _strdt,
    "SAMETERM": lambda a, _: a[0] == a[1],
    "ISIRI": lambda a, _: isinstance(a[0], IRI),
    "ISBLANK": lambda a, _: isinstance(a[0], BlankNode),
    "ISLITERAL": lambda a, _: isinstance(a[0], Literal),
    "ISNUMERIC": lambda a, _: isinstance(value_of(a[0]), Number),
    "STRLEN": lambda a, _: _integer(len(string_of(a[0]).lexical)),
    "SUBSTR": lambda a, _: substring(a[0], a[1], a[2] if len(a) > 2 else None),
    "UCASE": _changed(str.upper),
    "LCASE": _changed(str.lower),
    "STRSTARTS": _related(str.startswith),
    "STRENDS": _related(str.endswith),
    "CONTAINS": _related(str.__contains__),
    "STRBEFORE": lambda a, _: before_or_after(a[0], a[1], after=False),
    "STRAFTER": lambda a, _: before_or_after(a[0], a[1], after=True),
    "ENCODE_FOR_URI": lambda a, _: Literal(quote(string_of(a[0]).lexical, safe="-_.~", errors="replace")),  # RFC 3986
    "CONCAT": lambda a, s: concat(a, s.max_text),
    "LANGMATCHES": lambda a, _: language_matches(simple(a[0]), simple(a[1])),
    "REGEX": _regex,
    "REPLACE": _replace,
    "NOW": _now,
    "YEAR": lambda a, _: _integer(_moment(a[0], "year").year),
    "MONTH": lambda a, _: _integer(_moment(a[0], "month").month),
    "DAY": lambda a, _: _integer(_moment(a[0], "day").day),
    "HOURS": lambda a, _: _integer(_moment(a[0], "time").hour),
    "MINUTES": lambda a, _: _integer(_moment(a[0], "time").minute),
    "SECONDS": _seconds,
    "TIMEZONE": _timezone,
    "TZ": lambda a, _: Literal(dates.write_zone(_moment(a[0], "").zone)),
    **{name: _hash(name.lower()) for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")},
    **{datatype: _cast(cast) for datatype, cast in CASTS.items()},
}
"""By upper-case name, operator sign, or datatype IRI. Arguments are terms; a bool becomes an xsd:boolean."""

_TIMES = {"ENCODE_FOR_URI": regexes.ENCODED} | dict.fromkeys(
    [
        *("+", "-", "*", "/", "NEGATE", "PLUS", "ABS", "CEIL", "FLOOR", "ROUND", "NUMBER", "ISNUMERIC", *CASTS),
        *("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"),
    ],
    regexes.TYPED,
)
"""How many times as long as others a function takes to read its arguments."""

SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}
"""Other spellings (17.4.2.1, 17.4.2.8)."""

FUNCTIONS |= {name: FUNCTIONS[same] for name, same in SYNONYMS.items()}
