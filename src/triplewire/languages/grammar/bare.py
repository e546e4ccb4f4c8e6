"""What GQL, MDV rules and operator predicates share below their grammars: tokens, names, bare text.

Bare text (a label such as `Home Page #325`, an absolute IRI without angle brackets) follows no lexer: it is what stands
between two delimiters. So the tokens here cover every character, and bare text is cut out by their offsets. Prefixed
names and labels become IRIs in `NamesInForce`. SPARQL has its own stricter lexer: `triplewire.languages.sparql.lexer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from triplewire.errors import LimitError
from triplewire.ir.nodes import Label
from triplewire.languages.context import Context
from triplewire.languages.grammar.strings import string_literal
from triplewire.languages.grammar.tokens import END, Token, Tokens, scanned
from triplewire.model.namespaces import PREDECLARED, RSS, label_iri
from triplewire.model.references import has_scheme, resolve
from triplewire.model.terms import IRI, Literal, unescape

STRINGS = r"""
      (?P<string>\"\"\"(?:[^"\\]++|\\.|(?!\"\"\")")*\"\"\"|(?!\"\"\")"(?:[^"\\\n\r]++|\\.)*+"
                |(?<!\w)(?:'''(?:[^'\\]++|\\.|(?!''')')*'''|(?!''')'(?:[^'\\\n\r]++|\\.)*+'))
    | (?P<unclosed>"|(?<!\w)')"""
"""Quoted strings as in Turtle. An apostrophe directly behind a letter belongs to the word (`Prof's page`)."""

IRIS = r"""(?P<iri><(?!=)(?:[^<>"{}|^`\\\x00-\x20]++|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*+>)"""
WORD = r"[^\W\d]\w*+(?:-\w++)*+"
NUMBER = r"(?P<number>[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)"

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

_SURROGATE = re.compile("[\ud800-\udfff]")


def behind_an_operand(previous: Token) -> bool:
    """Can `<` only be a comparison here? Then `?x<5` holds no IRI, whatever follows."""
    return previous.kind in ("variable", "number", "string", "date")


class BareTokens(Tokens):
    """Tokens of which `<` is a comparison behind an operand and may open an IRI elsewhere."""

    def __init__(
        self,
        text: str,
        context: Context,
        pattern: re.Pattern[str] = PATTERN,
        compares: Callable[[Token], bool] = behind_an_operand,
    ) -> None:
        self._compares = compares
        super().__init__(text, pattern, context)

    def _scan(self, pattern: re.Pattern[str]) -> list[Token]:
        surrogate = _SURROGATE.search(self.text)
        if surrogate:
            self.fail(Token("?", surrogate[0], surrogate.start()), "a lone surrogate is no character")
        tokens: list[Token] = []
        at, previous = 0, Token("", "", 0)
        while at < len(self.text):
            start = at
            for match in scanned(pattern, self.text, at):
                kind, text = match.lastgroup or "?", match[0]
                at = match.end()
                if kind == "skip":
                    continue
                compares = kind == "iri" and self._compares(previous)
                if compares:
                    kind, text = "symbol", text[: 1 + text.startswith("<=")]
                    at = match.start() + len(text)
                elif kind == "unclosed":
                    self.fail(Token(kind, text, match.start()), "this string is not closed on its line")
                previous = Token(kind, text, match.start())
                tokens.append(previous)
                if compares:
                    break  # what the IRI would have taken is read again
            if at == start:
                break
        self._scanned(at, tokens)
        return tokens


class Raw(NamedTuple):
    """Bare text: its first token, its characters with runs of white space made one blank."""

    first: Token
    text: str


COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


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
    return Raw(first, " ".join(tokens.text[first.offset : end].split()))


_BARE_IRI = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|(?:urn|mailto|tag|doi|info|file):)", re.IGNORECASE)
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
        self._prefixes = {**PREDECLARED, **tokens.context.prefixes}

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
            self._prefixes[written[1]] = self.reference(token).value

    @property
    def default(self) -> str:
        """The namespace that `PREFIX :` declares, or ""."""
        return self._prefixes.get("", "")

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
        if _SURROGATE.search(text) or _UNSAFE.search(text):
            self.tokens.fail(token, "an escape in the IRI names a character that no IRI holds")
        if has_scheme(text):
            return IRI(text)
        if self.base:
            return IRI(resolve(text, self.base))
        if not namespace:
            self.tokens.fail(token, f"{_RELATIVE}: {token}", "write the whole IRI, or give the subscription a base")
        return IRI(namespace + text)

    def iri_of(self, token: Token) -> IRI:
        """The IRI of an iri or name token."""
        return self.reference(token) if token.kind == "iri" else self.expand(token, token.text)

    def expand(self, token: Token, text: str) -> IRI:
        """The IRI of the prefixed name `text`, which stands at `token`."""
        prefix, _, local = text.partition(":")
        namespace = self._prefixes.get(prefix)
        if namespace is None:
            remedy = f"add PREFIX {prefix}: <...> at the start, or quote the text"
            self.tokens.fail(token, f"the prefix '{prefix}:' is not declared", remedy)
        return self._checked(token, namespace + _LOCAL_ESCAPE.sub(r"\1", local))

    def bare(self, raw: Raw) -> IRI | str:
        """What bare text stands for: the IRI of a prefixed name or of an absolute IRI; else its label, as it is."""
        written = _PREFIXED.fullmatch(raw.text)
        if written is None:
            self._label_only(raw)
            return raw.text
        if written[1] not in self._prefixes and _BARE_IRI.match(raw.text):
            return self._checked(raw.first, raw.text)
        return self.expand(raw.first, raw.text)

    def label(self, text: str) -> Label:
        """A label in node position, with the IRI that it resolves to against the base."""
        return Label(text, namespaced(text, self.base))

    def _label_only(self, raw: Raw) -> None:
        if any(character in raw.text for character in '<>"'):
            self.tokens.fail(
                raw.first, f"{raw.text[:40]!r} is no label, as it holds <, > or a quotation mark", "quote it"
            )

    def _checked(self, token: Token, iri: str) -> IRI:
        unsafe = _UNSAFE.search(iri)
        if unsafe:
            self.tokens.fail(token, f"an IRI cannot hold {unsafe[0]!r}", "quote the text if it is a literal")
        return IRI(iri)


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
