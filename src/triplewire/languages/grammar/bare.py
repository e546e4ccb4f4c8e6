"""What GQL, MDV rules and operator predicates share below their grammars: tokens, bare text, names, quantities, calls.

Bare text (a label such as `Home Page #325`, an absolute IRI without angle brackets) follows no lexer: it is what stands
between two delimiters. So the tokens here cover every character, and bare text is cut out by their offsets. Prefixed
names and labels become IRIs in `NamesInForce`. SPARQL has its own stricter lexer: `triplewire.languages.sparql.terms`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Context as DecimalContext
from decimal import Decimal, Inexact
from fractions import Fraction
from typing import NamedTuple

from triplewire.errors import LimitError
from triplewire.ir.nodes import Call, Label, Variable
from triplewire.languages.context import Context
from triplewire.languages.grammar.tokens import END, SURROGATE, Token, Tokens, scanned, string_literal
from triplewire.model.namespaces import PREDECLARED, RSS, label_iri
from triplewire.model.operator import forms_of, parameters_of, takes, warnings_of_call
from triplewire.model.references import has_scheme, resolve
from triplewire.model.terms import IRI, Literal, made_iri, unescape
from triplewire.operators import remedy_for_unknown

STRINGS = r"""
      (?P<string>\"\"\"(?:[^"\\]++|\\.|(?!\"\"\")")*\"\"\"|(?!\"\"\")"(?:[^"\\\n\r]++|\\.)*+"
                |(?<!\w)(?:'''(?:[^'\\]++|\\.|(?!''')')*'''|(?!''')'(?:[^'\\\n\r]++|\\.)*+'))
    | (?P<unclosed>"|(?<!\w)')"""
"""Quoted strings as in Turtle. An apostrophe directly behind a letter belongs to the word (`Prof's page`)."""

IRIS = r"""(?P<iri><(?!=)(?:[^<>"{}|^`\\\x00-\x20]++|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*+>)"""
WORD = r"[^\W\d]\w*+(?:-\w++)*+"
NUMBER = r"(?P<number>(?:[0-9]++(?:\.[0-9]++)?+|(?<!\w)\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)"

PATTERN = re.compile(
    rf"""
      (?P<skip>\s++)
    | (?P<variable>[?$]\w++)
    | {IRIS}
    | {STRINGS}
    | (?P<tag>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+)
    | (?P<name>(?:{WORD})?+:[^\W\d]\w*+(?:-\w++)*+)
    | (?P<word>{WORD})
    | (?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:T[0-9:.]++(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?+)?+(?![\w-]))
    | {NUMBER}
    | (?P<symbol>\^\^|!=|<=|>=|[{{}}()\[\],*=<>+/-])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""The tokens of GQL and of operator predicates; numbers are without sign."""


class BareTokens(Tokens):
    """Tokens of which `<` is a comparison behind an operand, so that `?x<5` holds no IRI whatever follows, and may open
    an IRI elsewhere. `compares`: is the token before it such an operand?"""

    def __init__(
        self,
        text: str,
        context: Context,
        pattern: re.Pattern[str] = PATTERN,
        compares: Callable[[Token], bool] = lambda previous: previous.kind in ("variable", "number", "string", "date"),
    ) -> None:
        self._compares = compares
        super().__init__(text, pattern, context)

    def _scan(self, pattern: re.Pattern[str]) -> list[Token]:
        if surrogate := SURROGATE.search(self.text):
            self.fail(Token("?", surrogate[0], surrogate.start()), "a lone surrogate is no character")
        tokens: list[Token] = []
        end, previous = 0, Token("", "", 0)
        while end < len(self.text):
            start = end
            for match in scanned(pattern, self.text, start):
                kind, text = match.lastgroup or "?", match[0]
                end = match.end()
                if kind == "skip":
                    continue
                compares = kind == "iri" and self._compares(previous)
                if compares:
                    kind, text = "symbol", text[: 1 + text.startswith("<=")]
                    end = match.start() + len(text)
                elif kind == "unclosed":
                    self.fail(Token(kind, text, match.start()), "this string is not closed on its line")
                previous = Token(kind, text, match.start())
                tokens.append(previous)
                if compares:
                    break  # what the IRI would have taken is read again
            if end == start:
                break
        self._scanned(end, tokens)
        return tokens


class Raw(NamedTuple):
    """Bare text: its first token, its characters with runs of white space made one blank."""

    first: Token
    text: str


def read_raw(tokens: Tokens, ends: tuple[str, ...], expected: str, closes: str) -> Raw:
    """The bare text at the cursor, up to one of `ends` (symbols, upper-case keywords) outside of parentheses.

    `expected` names what should have stood there; `closes` is what may follow. Refuses no text at all, and a variable,
    string or IRI in angle brackets that begins a word of it: a delimiter is missing before that.
    """
    first = tokens.peek()
    end, depth = first.offset, 0
    while (token := tokens.peek()).kind != END:
        if depth == 0 and tokens.at(*ends):
            break
        if token.kind in ("variable", "string", "iri") and (token is first or token.offset > end):
            tokens.unexpected(expected if token is first else closes)
        depth += token.text == "("
        if token.text == ")":
            if depth == 0:
                break
            depth -= 1
        end = token.offset + len(token.text)
        tokens.next()
    if end == first.offset:
        tokens.unexpected(expected)
    if depth:
        tokens.unexpected("')'")
    tokens.note(first.offset, "bare")
    return Raw(first, " ".join(tokens.text[first.offset : end].split()))


_BARE_IRI = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|(?:urn|mailto|tag|doi|info|file|did|acct|tel):)", re.IGNORECASE)
_PREFIXED = re.compile(r"((?:[^\W\d][\w.+-]*)?):(\S*)")
_UNSAFE = re.compile(r'[<>"{}|^`\\\x00-\x20]')
_LOCAL_ESCAPE = re.compile(r"\\([_~.\-!$&'()*+,;=/?#@%])")
_DECLARED = re.compile(r"((?:[^\W\d][\w.-]*)?)\s*:")
_RELATIVE = "a relative IRI needs a base"


class NamesInForce:
    """The names in force in one text: predeclared prefixes, the context's, the text's own; the base."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.base = tokens.context.base
        self.prefixes = {**PREDECLARED, **tokens.context.prefixes}

    def prologue(self) -> None:
        """PREFIX declarations, in any number."""
        tokens = self.tokens
        while tokens.accept("PREFIX"):
            first = tokens.peek()
            while tokens.peek().kind not in ("iri", END):
                tokens.next()
            written = _DECLARED.fullmatch(tokens.text[first.offset : tokens.peek().offset].strip())
            if written is None:
                tokens.fail(first, f"found {first}, expected a prefix and its IRI", "write PREFIX name: <...>")
            token = tokens.expect_kind("iri", "an IRI in angle brackets")
            self.prefixes[written[1]] = self.reference(token).value

    @property
    def default(self) -> str:
        """The namespace that `PREFIX :` declares, or ""."""
        return self.prefixes.get("", "")

    @property
    def vocabulary(self) -> str:
        """Where bare predicates live: the declared default vocabulary, else RSS 1.0."""
        return self.default or RSS

    def reference(self, token: Token, namespace: str = "") -> IRI:
        """The IRI of an `<...>` token: against the base or, without one, in `namespace`."""
        try:
            text = unescape(token.text[1:-1])
        except ValueError:
            self.tokens.fail(token, "an escape in the IRI names no character")
        if SURROGATE.search(text) or _UNSAFE.search(text):
            self.tokens.fail(token, "an escape in the IRI names a character that no IRI holds")
        if has_scheme(text):
            return made_iri(text)
        if self.base:
            return made_iri(resolve(text, self.base))
        if not namespace:
            self.tokens.fail(token, f"{_RELATIVE}: {token}", "write the whole IRI, or give the subscription a base")
        return made_iri(namespace + text)

    def iri_of(self, token: Token) -> IRI:
        """The IRI of an iri or name token."""
        return self.reference(token) if token.kind == "iri" else self.expand(token, token.text)

    def expand(self, token: Token, text: str) -> IRI:
        """The IRI of the prefixed name `text`, which stands at `token`."""
        prefix, _, local = text.partition(":")
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            remedy = f"add PREFIX {prefix}: <...> at the start, or quote the text"
            self.tokens.fail(token, f"the prefix '{prefix}:' is not declared", remedy)
        return self._checked(token, namespace + _LOCAL_ESCAPE.sub(r"\1", local))

    def bare(self, raw: Raw) -> IRI | str:
        """What bare text stands for: the IRI of a prefixed name or of an absolute IRI; else its label, as it is."""
        written = _PREFIXED.fullmatch(raw.text)
        if written is None:
            if any(character in raw.text for character in '<>"'):
                what = f"{raw.text[:40]!r} is no label, as it holds <, > or a quotation mark"
                self.tokens.fail(raw.first, what, "quote it")
            return raw.text
        if written[1] not in self.prefixes and _BARE_IRI.match(raw.text):
            return self._checked(raw.first, raw.text)
        return self.expand(raw.first, raw.text)

    def label(self, text: str) -> Label:
        """A label in node position, with the IRI that it resolves to against the base."""
        return Label(text, namespaced(text, self.base))

    def _checked(self, token: Token, iri: str) -> IRI:
        if unsafe := _UNSAFE.search(iri):
            self.tokens.fail(token, f"an IRI cannot hold {unsafe[0]!r}", "quote the text if it is a literal")
        return made_iri(iri)


def namespaced(text: str, base: str) -> str:
    """The IRI of a label against a base: appended to one that ends in `/` or `#`, else resolved; "" without a base."""
    if not base or base.endswith(("/", "#")):
        return label_iri(text, base)
    reference = label_iri(text, "./")
    return resolve(reference if ":" in reference else reference[2:], base)


def literal(names: NamesInForce, token: Token) -> Literal:
    """The exact RDF term of a string token, just taken, with what is behind it."""
    return string_literal(names.tokens, token, names.iri_of)


@contextmanager
def bounded(context: Context) -> Iterator[None]:
    """Refuses a text so deep that Python cannot hold it: possible only where `max_query_depth` was raised."""
    try:
        yield
    except RecursionError:
        raise LimitError(
            "the text is nested too deeply", source=context.source, remedy="lower max_query_depth, or flatten it"
        ) from None


# --- quantities: `1000m`, `5 km` -------------------------------------------------------------------------------------

MAX_DIGITS = 60
MAX_EXPONENT = 60
_EXACT = DecimalContext(prec=1_000, traps=[Inexact])
_ROUNDING = DecimalContext(prec=34)  # where a result has no end, such as 1 km/h in m/s


class Unit(NamedTuple):
    """A unit: what it measures; a value v of it is (v + offset) * factor in the dimension's first unit."""

    dimension: str
    factor: Fraction
    offset: Fraction = Fraction(0)


def _table(dimension: str, units: str) -> dict[str, Unit]:
    pairs = (entry.split("=") for entry in units.split())
    return {name: Unit(dimension, Fraction(factor)) for names, factor in pairs for name in names.split("|")}


UNITS: dict[str, Unit] = {
    **_table("length", "m=1 km=1000 dm=0.1 cm=0.01 mm=0.001 µm|μm|um=0.000001 nm=0.000000001"),
    **_table("length", "in=0.0254 ft=0.3048 yd=0.9144 mi=1609.344 nmi=1852"),
    **_table("mass", "kg=1 g=0.001 mg=0.000001 µg|μg|ug=0.000000001 t=1000 lb=0.45359237 oz=0.028349523125"),
    **_table("time", "s=1 ms=0.001 µs|μs|us=0.000001 ns=0.000000001 min=60 h=3600 d=86400 wk=604800"),
    **_table("speed", "m/s=1 km/h|kmh=5/18 km/s=1000 mph|mi/h=0.44704 kn=463/900 ft/s=0.3048"),
    **_table("area", "m2|m²=1 km2|km²=1000000 cm2|cm²=0.0001 mm2|mm²=0.000001 ha=10000 a=100"),
    **_table("area", "ft2|ft²=0.09290304 mi2|mi²=2589988.110336 acre=4046.8564224"),
    **_table("data", "B=1 kB=1000 MB=1000000 GB=1000000000 TB=1000000000000 PB=1000000000000000"),
    **_table("data", "KiB=1024 MiB=1048576 GiB=1073741824 TiB=1099511627776 PiB=1125899906842624 bit=1/8"),
    "K": Unit("temperature", Fraction(1)),
    "°C": Unit("temperature", Fraction(1), Fraction("273.15")),
    "°F": Unit("temperature", Fraction(5, 9), Fraction("459.67")),
    "%": Unit("ratio", Fraction(1, 100)),
}
"""Units by their symbols, in which case counts (`mB` is none)."""


def units_like(symbol: str) -> str:
    """The symbols of what a unit measures, as one text; the unit alone where it is not in the table."""
    unit = UNITS.get(symbol)
    return ", ".join(name for name in UNITS if unit and UNITS[name].dimension == unit.dimension) or symbol


def convert(number: str, unit: str, wanted: str) -> str:
    """`number` of `unit` as a plain decimal number of the unit `wanted`, exact unless it has no end (34 digits then).
    A unit that is not in the table converts to itself.

    Raises `ValueError`, which says why: an unknown unit, one of another dimension, a number too long to convert.
    """
    if wanted not in UNITS:
        if unit == wanted:
            return number
        raise ValueError(f"the operator counts in {wanted!r}, found {unit!r}")
    if unit not in UNITS:
        raise ValueError(f"there is no unit {unit!r}")
    source, target = UNITS[unit], UNITS[wanted]
    if source.dimension != target.dimension:
        raise ValueError(f"{unit!r} measures {source.dimension}, not {target.dimension} as {wanted!r} does")
    if len(number) > MAX_DIGITS:
        raise ValueError(f"a quantity has at most {MAX_DIGITS} digits")
    value = Decimal(number)
    if value and abs(value.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"a quantity lies between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    exact = (Fraction(value) + source.offset) * source.factor / target.factor - target.offset
    parts = Decimal(exact.numerator), Decimal(exact.denominator)
    try:
        text = f"{_EXACT.divide(*parts):f}"
    except Inexact:  # the decimal has no end
        text = f"{_ROUNDING.divide(*parts):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# --- calls: `locIn(Bronx, ?where, 5 km)` -----------------------------------------------------------------------------

NAMESPACE = PREDECLARED["op"]
QUANTITY = re.compile(r"([+-]?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+) ?([^\W\d_]\S*|°\S+|%)")


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
    return call_of(tokens, token, name, lambda unit: _argument(names, unit)), token


def call_of(tokens: Tokens, token: Token, name: str, read_argument: Callable[[str], Variable | IRI | Literal]) -> Call:
    """The call of the operator `name`, written at `token`, whose arguments follow; `read_argument` takes the unit of a
    parameter. Refuses an unknown operator, another number of arguments than it takes, and constants that it could only
    fail on."""
    operators = tokens.context.operators
    operator = operators.get(name)
    if operator is None:
        tokens.fail(token, f"there is no operator {name!r}", remedy_for_unknown(operators, name))
    arguments: list[Variable | IRI | Literal] = []
    tokens.expect("(")
    form = parameters_of(operator, _arguments_ahead(tokens))
    units = [parameter.unit for parameter in form or operator.parameters]
    while not tokens.accept(")"):
        if arguments and not tokens.accept(","):
            tokens.unexpected("',' or ')'")
        arguments.append(read_argument(units[len(arguments)] if len(arguments) < len(units) else ""))
    written = (f"{name}({', '.join(parameter.name for parameter in form)})" for form in forms_of(operator))
    remedy = f"write {' or '.join(written)}"
    if form is None or len(form) != len(arguments):
        tokens.fail(token, f"the operator {name!r} takes {takes(operator)}, not {len(arguments)}", remedy)
    try:
        warnings_of_call(operator, arguments)
    except ValueError as error:
        # with one argument its form says nothing about what is wrong with the value
        tokens.fail(token, f"{name}: {error}", remedy if len(arguments) > 1 or " or " in remedy else "")
    return Call(name, tuple(arguments))


def _arguments_ahead(tokens: Tokens) -> int:
    """How many arguments stand before the parenthesis that ends them."""
    ahead, depth, commas = 0, 0, 0
    while (token := tokens.peek(ahead)).kind != END:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            break
        commas += token.text == "," and depth == 0
        ahead += 1
    return commas + 1 if ahead else 0


def _argument(names: NamesInForce, unit: str) -> Variable | IRI | Literal:
    tokens = names.tokens
    token = tokens.accept_kind("variable", "string", "iri")
    if token is None:
        raw = read_raw(tokens, (",",), "an argument", "',' or ')'")
        if quantity := QUANTITY.fullmatch(raw.text):
            return Literal(converted(names, raw.first, quantity[1], quantity[2], unit))
        value = names.bare(raw)
        return Literal(value) if isinstance(value, str) else value
    if token.kind == "variable":
        return Variable(token.text[1:])
    return literal(names, token) if token.kind == "string" else names.reference(token)


def converted(names: NamesInForce, token: Token, number: str, unit: str, wanted: str) -> str:
    """A quantity, written at `token`, as a plain number of the unit `wanted`; "" takes none."""
    if not wanted:
        what = f"the operator takes no unit here, found {unit!r}"
        names.tokens.fail(token, what, "leave the unit out, or quote the text")
    try:
        return convert(number, unit, wanted)
    except ValueError as error:
        names.tokens.fail(token, str(error), f"known: {units_like(wanted)}; or quote the text")
