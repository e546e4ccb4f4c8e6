"""The tokens of SPARQL (SPARQL 1.1, 19.8, productions 139 to 173), codepoint escapes resolved (19.2), and its terms:
the prologue, IRIs, prefixed names, literals, variables (4.1).

Kinds: iri, name (prefixed), blank, variable, tag, string, number (without sign: the parser joins a sign that stands
directly before one), word (keywords), symbol. Every pattern is linear: no part of the text is looked at again and
again, however odd it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from triplewire.errors import LimitError
from triplewire.ir.nodes import Pattern, PatternTerm, Variable
from triplewire.languages.context import Context
from triplewire.languages.grammar.tokens import SURROGATE, Token, Tokens, line_and_column, number, string_literal
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.references import resolve
from triplewire.model.terms import IRI, RDF_TYPE, XSD, Literal, made_iri

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_VARIABLE = f"[{_BASE}_0-9][{_BASE}_0-9\u00b7\u0300-\u036f\u203f-\u2040]*+"
_CHARS = f"{_BASE}_0-9\u00b7\u0300-\u036f\u203f-\u2040-"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LABEL = f"[{_CHARS}]*+(?:\\.++[{_CHARS}]++)*"  # what may follow the first character: no dot at the end
_LOCAL = f"(?:[{_BASE}_:0-9]|{_ESCAPED})(?:[{_CHARS}:]++|{_ESCAPED}|\\.++(?=[{_CHARS}:%\\\\]))*"

TERMS = rf"""
      (?P<variable>[?$]{_VARIABLE})
    | (?P<iri><[^<>"{{}}|^`\\\x00-\x20]*>)
    | (?P<broken><[A-Za-z][A-Za-z0-9+.-]*+://[^<>\n\r]*+>?+)   # no comparison: `//` is nowhere in an expression
    | (?P<blank>_:[{_BASE}_0-9]{_LABEL})
    | (?P<name>(?:[{_BASE}]{_LABEL})?:(?:{_LOCAL})?)
    | (?P<stray>[A-Za-z_]\w*+(?:[-.]++\w++){{16,}})   # no name, as the colon is missing; never part of a query
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<string>\"\"\"(?:[^"\\]++|\\.|(?!\"\"\")")*\"\"\"|'''(?:[^'\\]++|\\.|(?!''')')*'''
               |(?!\"\"\")"(?:[^"\\\n\r]++|\\.)*+"|(?!''')'(?:[^'\\\n\r]++|\\.)*+')
    | (?P<unclosed>["'])
    | (?P<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<number>[0-9]++\.[0-9]*+[eE][+-]?[0-9]+|\.?[0-9]++[eE][+-]?[0-9]+|[0-9]*+\.[0-9]+|[0-9]+)
"""
"""Names, constants and keywords, which RDQL writes in the same way."""

PATTERN = re.compile(
    rf"""
      (?P<skip>[ \t\r\n]+|\#[^\n\r]*)
    | {TERMS}
    | (?P<symbol>\^\^|&&|\|\||!=|<=|>=|[{{}}()\[\];,.|/^*+?!=<>-])
    """,
    re.VERBOSE | re.DOTALL,
)

_CODEPOINT = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)", re.DOTALL)
_IRI_START = re.compile(r"""<[^<>"{}|^`\\\x00-\x20]*+([^<>\n\r])""")
_BROKEN_IRI = re.compile(_IRI_START.pattern + r"[^<>\n\r]*+>")
_LOCAL_ESCAPE = re.compile(r"\\(.)")
_UPDATES = ["INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"]


class QueryTokens(Tokens):
    """The tokens of a SPARQL text. Positions in errors are those of the text as it was written."""

    wrong = frozenset(["unclosed", "broken", "stray"])

    def __init__(self, text: str, context: Context, pattern: re.Pattern[str] = PATTERN) -> None:
        self._written = text
        self._ends: list[int] = []  # where, in the resolved text, each escape's character ends ...
        self._shifts: list[int] = []  # ... and how many characters shorter the text is up to there
        super().__init__(text, pattern, context)

    def _scan(self, pattern: re.Pattern[str]) -> list[Token]:
        if "\\u" in self.text or "\\U" in self.text:
            self._resolve_codepoints()
        if surrogate := SURROGATE.search(self.text):
            self.fail(Token("?", surrogate[0], surrogate.start()), "a lone surrogate is no character")
        return super()._scan(pattern)

    def _refuse(self, token: Token) -> NoReturn:
        """Say what is wrong with a token that is none."""
        if token.kind == "unclosed":
            if self.text.startswith(token.text * 3, token.offset):
                self.fail(token, "this string is never closed")
            self.fail(token, "this string is not closed on its line", "three quotation marks enclose several lines")
        if token.kind == "broken":
            wrong = _IRI_START.match(token.text)
            if wrong is None:
                self.fail(token, "this IRI is not closed on its line")
            self.fail(Token("?", wrong[1], token.offset + wrong.start(1)), f"an IRI cannot hold {wrong[1]!r}")
        self.fail(token, f"{token} is no name", "a prefixed name needs a colon")

    def _resolve_codepoints(self) -> None:
        out: list[str] = []
        done = length = 0
        for match in _CODEPOINT.finditer(self._written):
            code = match[1] or match[2]
            if code is None:  # another escape: its second character starts none
                continue
            out.append(self._written[done : match.start()])
            length += match.start() - done
            done = match.end()
            if int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF:
                self.text, self._ends = self._written, []
                self.fail(Token("?", match[0], match.start()), f"{match[0]} names no character")
            out.append(chr(int(code, 16)))
            length += 1
            self._ends.append(length)
            self._shifts.append(done - length)
        self.text = "".join(out) + self._written[done:]

    def unexpected(self, expected: str) -> NoReturn:
        """As `Tokens.unexpected`; of a `<` that was to open an IRI it says why it does not."""
        token = self.peek()
        wrong = _BROKEN_IRI.match(self.text, token.offset)
        remedy = f"an IRI cannot hold {wrong[1]!r}" if wrong else ""
        self.fail(token, f"found {token}, expected {expected}", remedy)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column in the text as written."""
        escapes_before = bisect_right(self._ends, offset)
        shift = self._shifts[escapes_before - 1] if escapes_before else 0
        return line_and_column(self._written, offset + shift)


class TermReader:
    """Reads terms at the cursor of `tokens`."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.base = tokens.context.base
        self._prefixes = {**PREDECLARED, **tokens.context.prefixes}
        self._hidden = 0
        self._patterns = 0

    def prologue(self) -> None:
        """BASE and PREFIX declarations, in any number and order."""
        while keyword := self.tokens.accept("BASE", "PREFIX"):
            if keyword.text.upper() == "BASE":
                self.base = self._reference(self.tokens.expect_kind("iri", "an IRI in angle brackets"))
                continue
            name = self.tokens.peek()
            if name.kind != "name" or name.text.find(":") != len(name.text) - 1:
                self.tokens.unexpected("a prefix that ends with a colon")
            self.tokens.next()
            iri = self.tokens.expect_kind("iri", "an IRI in angle brackets")
            self._prefixes[name.text[:-1]] = self._reference(iri)
        if self.tokens.at(*_UPDATES):
            self.tokens.unsupported(self.tokens.peek(), f"{self.tokens.peek().text.upper()} (an update)")

    def hidden(self) -> Variable:
        """A new variable that no author can name."""
        self._hidden += 1
        return Variable(f".{self._hidden}")

    def pattern(self, subject: PatternTerm, predicate: PatternTerm, object_: PatternTerm) -> Pattern:
        """A new pattern. A path before many objects is written out for each: refuses where that outgrows the text."""
        self._patterns += 1
        if self._patterns > max(len(self.tokens.text), self.tokens.context.settings.max_patterns):
            what, remedy = "the paths make too many triple patterns", "use shorter paths, or raise max_patterns"
            self.tokens.fail(self.tokens.peek(), what, remedy, LimitError)
        return Pattern(subject, predicate, object_)

    def variable(self) -> Variable:
        """`?name` or `$name`."""
        return Variable(self.tokens.expect_kind("variable", "a variable").text[1:])

    def accept_variable(self) -> Variable | None:
        """A variable, if one is next."""
        token = self.tokens.accept_kind("variable")
        return Variable(token.text[1:]) if token else None

    def accept_iri(self) -> IRI | None:
        """`<iri>` or `prefix:name`, if one is next."""
        token = self.tokens.accept_kind("iri", "name")
        return self.iri_of(token) if token else None

    def iri_of(self, token: Token) -> IRI:
        """The IRI that an iri or name token stands for."""
        if token.kind == "iri":
            return made_iri(self._reference(token))
        prefix, _, local = token.text.partition(":")
        namespace = self._prefixes.get(prefix)
        if namespace is None:
            what = f"the prefix '{prefix}:' is not declared"
            self.tokens.fail(token, what, f"add PREFIX {prefix}: <...> at the start")
        return made_iri(namespace + (_LOCAL_ESCAPE.sub(r"\1", local) if "\\" in local else local))

    def _reference(self, token: Token) -> str:
        return resolve(token.text[1:-1], self.base)

    def accept_predicate(self) -> IRI | None:
        """An IRI or `a`, if one is next."""
        return RDF_TYPE if self.tokens.accept("a") else self.accept_iri()

    def accept_constant(self) -> IRI | Literal | None:
        """An IRI or a literal, if one is next; a sign must stand directly before its number."""
        return self.accept_iri() or self.accept_literal()

    def accept_literal(self) -> Literal | None:
        """A string, number or boolean, if one is next."""
        tokens = self.tokens
        token = tokens.peek()
        if token.kind == "string":
            return string_literal(tokens, tokens.next(), self.iri_of)
        if token.kind == "number":
            return number(tokens.next().text)
        if token.kind == "word" and token.text.lower() in ("true", "false"):
            return Literal(tokens.next().text.lower(), XSD + "boolean")
        if token.kind == "symbol" and token.text in "+-" and self.sign_touches():
            return number(tokens.next().text + tokens.next().text)
        return None

    def sign_touches(self) -> bool:
        """Does a number follow the next token without space between? Then both are one number (19.8, 149 to 154)."""
        sign, behind = self.tokens.peek(), self.tokens.peek(1)
        return behind.kind == "number" and behind.offset == sign.offset + 1
