"""Tokens, a cursor over them, and the literals among them, shared by the languages.

There is one spelling of look-ahead, errors and depth. A language gives one regular expression whose named groups are
its token kinds; the group "skip" (white space, comments) is dropped. Text that no group matches becomes an error with
line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn, Self, TypeVar

from triplewire.errors import LanguageError, TriplewireError, UnsupportedQuery
from triplewire.languages.context import Context
from triplewire.model.terms import IRI, XSD, Literal, made_literal, unescape

END = "end of text"
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
SURROGATE = re.compile("[\ud800-\udfff]")

T = TypeVar("T")


class Token(NamedTuple):
    """A token: its kind (a group's name, or END), its text, and where it starts (characters from 0)."""

    kind: str
    text: str
    offset: int

    def __str__(self) -> str:
        return END if self.kind == END else repr(self.text[:40])


_token = tuple.__new__  # a Token without the call of its own `__new__`, which takes longer than to find it


def scanned(pattern: re.Pattern[str], text: str, start: int) -> Iterator[re.Match[str]]:
    """What the pattern matches from `start` on, match behind match without a gap; ends where it matches no more."""
    return iter(pattern.scanner(text, start).match, None)  # type: ignore[attr-defined]  # `re.Scanner` uses it, too


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a character of a text, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


class Tokens:
    """A cursor. `peek` looks, `next` takes, `accept` takes if it fits, `expect` takes or refuses."""

    wrong: frozenset[str] = frozenset()
    """The kinds of tokens that stand for an error."""

    def __init__(self, text: str, pattern: re.Pattern[str], context: Context) -> None:
        self.text = text
        self.context = context
        limit = context.settings.max_query_bytes
        if len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit:
            what = f"the text is longer than {limit} bytes"
            raise LanguageError(what, source=context.source, line=1, column=1, remedy="raise max_query_bytes")
        self._tokens = self._scan(pattern)
        self._at = 0
        self.depth = 0
        self._noted = context.written
        if self._noted is not None:
            self._noted.text, self._noted.tokens = self.text, list(self._tokens)

    def _scan(self, pattern: re.Pattern[str]) -> list[Token]:
        tokens: list[Token] = []
        end, wrong = 0, self.wrong
        for match in scanned(pattern, self.text, 0):
            kind = match.lastgroup or "?"
            if kind != "skip":
                token = _token(Token, (kind, match[0], end))
                if kind in wrong:
                    self._refuse(token)
                tokens.append(token)
            end = match.end()
        self._scanned(end, tokens)
        return tokens

    def _scanned(self, end: int, tokens: list[Token]) -> None:
        """The end of the tokens; refuses a text of which the rest, from `end` on, starts none."""
        if end < len(self.text):
            self.fail(Token("?", self.text[end], end), f"{self.text[end]!r} starts no token")
        tokens.append(Token(END, "", end))

    def _refuse(self, token: Token) -> NoReturn:
        """Say what is wrong with a token of a kind that is `wrong`."""
        self.fail(token, f"{token} is no token")

    def peek(self, ahead: int = 0) -> Token:
        """The token `ahead` places further on, without taking it; END past the last."""
        return self._tokens[self._at + ahead if self._at + ahead < len(self._tokens) else -1]

    def next(self) -> Token:
        """Take the next token."""
        token = self._tokens[self._at]  # the last one is END, and not passed
        if token.kind != END:
            self._at += 1
        return token

    def at(self, *wanted: str) -> bool:
        """Is the next token one of these symbols or keywords (upper case, any case in the text)?"""
        kind, text, _ = self._tokens[self._at]
        if kind == "word":
            return text in wanted or text.upper() in wanted
        return kind == "symbol" and text in wanted

    def accept(self, *wanted: str) -> Token | None:
        """Take the next token if it is one of these symbols or keywords."""
        token = self._tokens[self._at]  # as `at` and `next`; every rule of every language asks this
        kind, text, _ = token
        if kind == "word":
            if text not in wanted and text.upper() not in wanted:
                return None
        elif kind != "symbol" or text not in wanted:
            return None
        self._at += 1
        return token

    def accept_kind(self, *kinds: str) -> Token | None:
        """Take the next token if it is of one of these kinds."""
        return self.next() if self._tokens[self._at].kind in kinds else None

    def expect(self, *wanted: str) -> Token:
        """Take one of these symbols or keywords, or refuse."""
        return self.accept(*wanted) or self.unexpected(" or ".join(repr(w) for w in wanted))

    def expect_kind(self, kind: str, called: str) -> Token:
        """Take a token of this kind, or refuse; `called` names it for the author."""
        return self.accept_kind(kind) or self.unexpected(called)

    def separated(self, read: Callable[[], T], *separators: str) -> list[T]:
        """What `read` reads, once at least, and again behind each of these symbols or keywords."""
        items = [read()]
        while self.accept(*separators):
            items.append(read())
        return items

    def conjuncts(self, read: Callable[[], T], *separators: str) -> list[T]:
        """As `separated`, of what must all hold: their places are noted."""
        begins = [self.peek().offset]
        items = [read()]
        while self.accept(*separators):
            begins.append(self.peek().offset)
            items.append(read())
        self.note_conjuncts(begins)
        return items

    def note_conjuncts(self, begins: list[int]) -> None:
        """Note where parts begin that must all hold; the last one was just read."""
        if self._noted is not None:
            self._noted.conjuncts.append((begins, self._end))

    def note(self, begin: int, kind: str = "parts") -> None:
        """Note the place of what was read since `begin`; `kind`: a list of `Written`."""
        if self._noted is not None and self._end > begin:
            getattr(self._noted, kind).append((begin, self._end))

    @property
    def _end(self) -> int:
        """Where the token taken last ends."""
        token = self._tokens[self._at - 1]
        return token.offset + len(token.text)

    def rest_is_empty(self) -> None:
        """Refuse anything that is left."""
        if self.peek().kind != END:
            self.unexpected(END)

    def nested(self) -> Self:
        """One level deeper, in a `with`; refuses past `max_query_depth`. Every recursive rule of a parser runs inside
        it."""
        self.depth += 1
        limit = self.context.settings.max_query_depth
        if self.depth > limit:
            self.fail(self.peek(), f"nested more than {limit} levels deep", "raise max_query_depth, or flatten it")
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:  # a refusal ends the parse
            self.depth -= 1

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        return line_and_column(self.text, offset)

    def unexpected(self, expected: str) -> NoReturn:
        """Refuse the next token: what was found, what was expected."""
        token = self.peek()
        self.fail(token, f"found {token}, expected {expected}")

    def fail(self, token: Token, what: str, remedy: str = "", error: type[TriplewireError] = LanguageError) -> NoReturn:
        """Refuse the text at `token`."""
        line, column = self.place(token.offset)
        raise error(what, source=self.context.source, line=line, column=column, remedy=remedy)

    def unsupported(self, token: Token, construct: str, remedy: str = "") -> NoReturn:
        """Refuse a construct by name."""
        self.fail(token, f"{construct} is not supported in a standing query", remedy, UnsupportedQuery)


# --- literals --------------------------------------------------------------------------------------------------------


def string_value(tokens: Tokens, token: Token) -> str:
    """The characters that the string token stands for. Refuses an escape that is none, and lone surrogates."""
    width = 3 if len(token.text) >= 6 and token.text[:3] in ('"""', "'''") else 1
    try:
        text = unescape(token.text[width:-width])
    except ValueError as error:
        what = str(error) if str(error).startswith("\\") else "an escape names no character"
        tokens.fail(
            token, f"in the string: {what}", "escapes are \\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX \\UXXXXXXXX"
        )
    if SURROGATE.search(text):
        tokens.fail(token, "in the string: a lone surrogate is no character")
    return text


def string_literal(tokens: Tokens, token: Token, iri_of: Callable[[Token], IRI]) -> Literal:
    """The exact RDF term of a string token, just taken, with the language tag or datatype behind it."""
    text = string_value(tokens, token)
    if tag := tokens.accept_kind("tag"):
        return Literal.tagged(text, tag.text[1:])
    if not tokens.accept("^^"):
        return Literal(text)
    return made_literal(text, iri_of(tokens.accept_kind("iri", "name") or tokens.unexpected("a datatype IRI")).value)


def number(text: str) -> Literal:
    """A number as written, with the datatype that SPARQL gives it."""
    if "e" in text or "E" in text:
        return Literal(text, XSD + "double")
    return Literal(text, XSD + ("decimal" if "." in text else "integer"))
