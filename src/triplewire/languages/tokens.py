"""Tokens and a cursor over them, shared by the four languages: one spelling of look-ahead, errors and depth.

A language gives one regular expression whose named groups are its token kinds; the group "skip" (white space,
comments) is dropped. Text that no group matches becomes an error with line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from triplewire.errors import LanguageError, UnsupportedQuery
from triplewire.languages.context import Context

END = "end of text"


class Token(NamedTuple):
    """A token: its kind (a group's name, or END), its text, and where it starts (characters from 0)."""

    kind: str
    text: str
    offset: int

    def __str__(self) -> str:
        return END if self.kind == END else repr(self.text[:40])


class Tokens:
    """A cursor. `peek` looks, `next` takes, `accept` takes if it fits, `expect` takes or refuses."""

    def __init__(self, text: str, pattern: re.Pattern[str], context: Context) -> None:
        self.text = text
        self.context = context
        limit = context.settings.max_query_bytes
        if len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit:
            what = f"the text is longer than {limit} bytes"
            raise LanguageError(what, source=context.source, line=1, column=1, remedy="raise max_query_bytes")
        self._tokens = list(self._scan(pattern))
        self._at = 0
        self._depth = 0

    def _scan(self, pattern: re.Pattern[str]) -> Iterator[Token]:
        at, text, length, match_at = 0, self.text, len(self.text), pattern.match
        while at < length:
            if text[at] == " ":  # the frequent case of "skip"
                at += 1
                continue
            match = match_at(text, at)
            if match is None or match.end() == at:
                self.fail(Token("?", text[at], at), f"{text[at]!r} starts no token")
            kind = match.lastgroup or "?"
            if kind != "skip":
                yield Token(kind, match[0], at)
            at = match.end()
        yield Token(END, "", length)

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
        return kind in ("symbol", "word") and (text in wanted or text.upper() in wanted)

    def accept(self, *wanted: str) -> Token | None:
        """Take the next token if it is one of these symbols or keywords."""
        return self.next() if self.at(*wanted) else None

    def accept_kind(self, *kinds: str) -> Token | None:
        """Take the next token if it is of one of these kinds."""
        return self.next() if self._tokens[self._at].kind in kinds else None

    def expect(self, *wanted: str) -> Token:
        """Take one of these symbols or keywords, or refuse."""
        token = self.accept(*wanted)
        if token is None:
            self.unexpected(" or ".join(repr(w) for w in wanted))
        return token

    def expect_kind(self, kind: str, called: str) -> Token:
        """Take a token of this kind, or refuse; `called` names it for the author."""
        token = self.accept_kind(kind)
        if token is None:
            self.unexpected(called)
        return token

    def rest_is_empty(self) -> None:
        """Refuse anything that is left."""
        if self.peek().kind != END:
            self.unexpected(END)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper; refuses past `max_query_depth`. Every recursive rule of a parser runs inside it."""
        self._depth += 1
        limit = self.context.settings.max_query_depth
        if self._depth > limit:
            self.fail(self.peek(), f"nested more than {limit} levels deep", "raise max_query_depth, or flatten it")
        yield
        self._depth -= 1

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def unexpected(self, expected: str) -> NoReturn:
        """Refuse the next token: what was found, what was expected."""
        token = self.peek()
        self.fail(token, f"found {token}, expected {expected}")

    def fail(self, token: Token, what: str, remedy: str = "") -> NoReturn:
        """Refuse the text at `token`."""
        line, column = self.place(token.offset)
        raise LanguageError(what, source=self.context.source, line=line, column=column, remedy=remedy)

    def unsupported(self, token: Token, construct: str, remedy: str = "") -> NoReturn:
        """Refuse a construct by name."""
        line, column = self.place(token.offset)
        what = f"{construct} is not supported in a standing query"
        raise UnsupportedQuery(what, source=self.context.source, line=line, column=column, remedy=remedy)
