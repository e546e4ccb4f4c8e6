"""Keyword queries: words and phrases that a publication's literals hold, as people type them into a search box.

    query   := ("PREFIX" name ":" iri)* or
    or      := and ("OR" and)*
    and     := not ("AND"? not)*
    not     := ("NOT" | "-" | "+")* primary
    primary := (field ":")? (word | string | "(" or ")")
    field   := "title" | "description" | "summary" | "content" | "author" | "category" | "link" | prefix? ":" name

The syntax is that of Lucene's classic query parser, less its wildcards inside of words, fuzzy words, distances, ranges
and weights; words side by side all have to be there. AND, OR and NOT count in capitals only.
(https://lucene.apache.org/core/9_12_0/queryparser/org/apache/lucene/queryparser/classic/package-summary.html)

A word or phrase holds where some literal of the publication has it, under a field one of that field's properties;
each may be found in another literal. It becomes a triple pattern and a FullText, NOT becomes NOT EXISTS.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeAlias

from triplewire.ir import nodes as ir
from triplewire.languages.context import Context, Parsed
from triplewire.languages.grammar.bare import IRIS, BareTokens, NamesInForce, bounded
from triplewire.languages.grammar.full_text import words_of
from triplewire.languages.grammar.tokens import END, Token, scanned, string_value
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.terms import IRI, Literal

LINK = "link"
_NAMES = {
    "title": "rss:title dc:title schema:headline schemas:headline",
    "description": "rss:description dc:description dcterms:description dcterms:abstract schema:description "
    "schemas:description",
    "content": "content:encoded schema:articleBody schemas:articleBody",
    "author": "dc:creator dcterms:creator schema:author schemas:author",
    "category": "dc:subject dcterms:subject dcat:keyword schema:keywords schemas:keywords",
    LINK: "rss:link schema:url schemas:url dcat:landingPage",
}


def _iri(name: str) -> IRI:
    prefix, _, local = name.partition(":")
    return IRI(PREDECLARED[prefix] + local)


FIELDS: dict[str, tuple[IRI, ...]] = {field: tuple(map(_iri, names.split())) for field, names in _NAMES.items()}
"""The properties that a field stands for. A channel's title, `dcterms:title` beside its items, is no item's title."""
FIELDS["summary"] = FIELDS["description"]

_LETTERS = r"[^\W\d][\w-]*+"
PATTERN = re.compile(
    rf"""
      (?P<skip>\s++)
    | {IRIS}
    | (?P<string>"(?:[^"\\\n\r]++|\\.)*+") | (?P<unclosed>")
    | (?P<symbol>[()]|(?:AND|OR|NOT)(?=[\s()"]|\Z)|[+-](?=[^\s+-]))
    | (?P<word>(?i:PREFIX)(?=\s+[\w.-]*+\s*:\s*<))
    | (?P<field>(?:(?:{_LETTERS})?:)?{_LETTERS}:(?!//))
    | (?P<text>[^\s()"~^?*\[\]{{}}\\<>]++(?:\*(?=[\s()]|\Z))?+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""The tokens; an apostrophe is part of a word."""

OPERATORS = ("AND", "OR", "NOT")
_SIGNS = {"&&": "AND", "&": "AND", "||": "OR", "|": "OR", "!": "NOT"}
_DISTANCE = re.compile(r"(?:NEAR|AROUND|ADJ)(?:/[0-9]+)?")  # operators elsewhere
_OTHER_NAMES = {
    "category": "keyword keywords subject tag tags topic",
    "author": "by creator from",
    "content": "body text",
    "title": "allintitle headline intitle",
    LINK: "allinurl domain host inurl site url",
}
_NAMED_ELSEWHERE = {name: field for field, names in _OTHER_NAMES.items() for name in names.split()}
_REFUSED = {
    "~": ("a fuzzy word or a distance", "write the word as it is, or ftNEAR in SPARQL"),
    "^": ("a weight", "leave it out: a query matches or does not"),
    "?": ("a wildcard for one character", "a word may end in *; or quote the text"),
    "*": ("a wildcard elsewhere than behind the beginning of a word", "a word may end in *"),
    "\\": ("a character that is escaped", "quote the text"),
    **dict.fromkeys("[{<>", ("a range or comparison", "write it in SPARQL or GQL")),
}
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|[“„«](?P<typographic>[^“”„«»"]*)[”“»]""", re.DOTALL)
_PROLOGUE = re.compile(r"\s*PREFIX\s+[\w.-]*\s*:\s*<", re.IGNORECASE)


def parse(text: str, context: Context) -> Parsed:
    """Compile a keyword query. Raises `LanguageError`, and `UnsupportedQuery` for what only Lucene knows."""
    with bounded(context):
        return _Query(_straight(text), context).read()


def _straight(text: str) -> str:
    """The query, as long as it is, with `"` for the quotation marks that phones and word processors write."""
    return _QUOTED.sub(lambda match: match[0] if match[0][0] == '"' else f'"{match["typographic"]}"', text)


def quoted(text: str) -> str:
    """The same query with its plain words in quotation marks, as those of other languages are."""
    text = _straight(text)
    if _PROLOGUE.match(text):
        return text
    parts = [
        f'"{token[0]}"' if token.lastgroup == "text" and _is_plain(token[0]) else token[0]
        for token in scanned(PATTERN, text, 0)
    ]
    return "".join(parts)


def _is_plain(word: str) -> bool:
    return not (word.upper() in OPERATORS or word[0] == "!" or _DISTANCE.fullmatch(word))


@dataclass(frozen=True, slots=True)
class _Field:
    """Where words are looked for: under these predicates, or under any where there are none. A link is looked into
    character by character."""

    predicates: tuple[IRI, ...] = ()
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class _Term:
    """One of the `words` is in a literal of `field`; `negated`: none of them is. `token`: where that begins."""

    field: _Field
    words: tuple[ir.TextExpression | str, ...]
    negated: bool
    token: Token


@dataclass(frozen=True, slots=True)
class _Joined:
    """All parts hold (AND), or at least one (OR)."""

    operator: str
    parts: tuple[_Part, ...]


_Part: TypeAlias = "_Term | _Joined"


class _Query:
    def __init__(self, text: str, context: Context) -> None:
        self._tokens = BareTokens(text, context, PATTERN, lambda previous: False)
        self._names = NamesInForce(self._tokens)
        self._count = 0  # variables made
        self._warnings: dict[str, None] = {}

    def read(self) -> Parsed:
        if _PROLOGUE.match(self._tokens.text):
            self._names.prologue()
        part = self._or(_Field(), False)
        self._tokens.rest_is_empty()
        if (token := _only_negated(part)) is not None:
            what = "this only says what must not be there"
            self._tokens.fail(token, what, "add a word that has to be there")
        where = self._where(part)
        return Parsed(
            (), where if isinstance(where, ir.And) else ir.And((where,)), ask=True, warnings=tuple(self._warnings)
        )

    # --- from a text to parts, with NOT at the words alone (De Morgan) ---------------------------------------------

    def _or(self, field: _Field, negated: bool) -> _Part:
        with self._tokens.nested():
            parts = self._tokens.separated(lambda: self._and(field, negated), "OR")
            return _joined("AND" if negated else "OR", parts)

    def _and(self, field: _Field, negated: bool) -> _Part:
        tokens = self._tokens
        begin = tokens.peek().offset
        parts = [self._not(field, negated)]
        tokens.note(begin)
        while not (tokens.at(")", "OR") or tokens.peek().kind == END):
            following = tokens.peek().offset
            if tokens.accept("AND"):
                tokens.note(begin)
            parts.append(self._not(field, negated))
            tokens.note(following)
            begin = following
        return _joined("OR" if negated else "AND", parts)

    def _not(self, field: _Field, negated: bool) -> _Part:
        while (sign := self._tokens.accept("NOT", "-", "+")) is not None:
            negated ^= sign.text != "+"
        return self._primary(field, negated)

    def _primary(self, field: _Field, negated: bool) -> _Part:
        tokens, named = self._tokens, self._tokens.accept_kind("field")
        if named is not None:
            if field != _Field():
                tokens.fail(named, f"{named} stands within another field", "name one field before the parentheses")
            field = self._field(named)
        if tokens.accept("("):
            part = self._or(field, negated)
            tokens.expect(")")
            return part
        token = tokens.peek()
        if tokens.accept_kind("string"):
            tokens.note(token.offset, "words")
            return _Term(field, (self._words(token, string_value(tokens, token), field),), negated, token)
        if tokens.accept_kind("text"):
            if token.text.upper() in OPERATORS:
                self._warnings[f"{token} is a word to look for; an operator is written {token.text.upper()}"] = None
            if _DISTANCE.fullmatch(token.text):
                self._warnings[f"{token} is a word to look for; a distance is ftNEAR in SPARQL"] = None
            if sign := _SIGNS.get("!" if token.text[0] == "!" else token.text):
                tokens.fail(token, f"found {token}, expected a word", f"write {sign}, or quote the text")
            return _Term(field, (self._words(token, token.text, field),), negated, token)
        if token.text in _REFUSED:
            tokens.unsupported(token, *_REFUSED[token.text])
        tokens.unexpected("a word, a phrase in quotation marks or '('")

    def _field(self, token: Token) -> _Field:
        """The field that is named at `token`."""
        name = token.text[:-1]
        if ":" in name:
            return _Field((self._names.expand(token, name),))
        if name.lower() in FIELDS:
            return _Field(FIELDS[name.lower()], name.lower() == LINK)
        near = _NAMED_ELSEWHERE.get(name.lower()) or "".join(get_close_matches(name.lower(), FIELDS, 1))
        if name in self._names.prefixes:
            remedy = f"to look under one property, write {name}:name:word"
        else:
            remedy = f"did you mean {near}?" if near else f"known: {', '.join(FIELDS)}, and prefix:name"
        self._tokens.fail(token, f"there is no field {name!r}", f"{remedy}; or quote the text")

    def _words(self, token: Token, text: str, field: _Field) -> ir.TextExpression | str:
        if not field.is_link:
            return words_of(self._tokens, token, text, ir.Analyzer())
        text = text.strip().removesuffix("*").lower()
        return text or self._tokens.fail(token, f"the text {token} is empty")

    # --- from parts to the tree ------------------------------------------------------------------------------------

    def _where(self, part: _Part) -> ir.Where:
        if isinstance(part, _Joined):
            wheres = [self._where(inner) for inner in part.parts]
            if part.operator == "OR":
                return ir.Or(tuple([where if isinstance(where, ir.And) else ir.And((where,)) for where in wheres]))
            return ir.And(
                tuple([p for where in wheres for p in (where.parts if isinstance(where, ir.And) else (where,))])
            )
        self._count += 1
        literal, predicate = ir.Variable(f".{self._count}"), ir.Variable(f".{self._count}p")
        parts: list[ir.Where] = []
        match part.field.predicates:
            case ():
                parts.append(ir.Pattern(ir.ANY, ir.ANY, literal))
            case (only,):
                parts.append(ir.Pattern(ir.ANY, only, literal))
            case several:
                parts += (ir.Pattern(ir.ANY, predicate, literal), ir.Filter(ir.In(predicate, several)))
        texts = [words for words in part.words if not isinstance(words, str)]
        conditions: list[ir.Expression] = [
            _link_holds(literal, words) for words in part.words if isinstance(words, str)
        ]
        if texts:
            conditions.append(ir.FullText(literal, texts[0] if len(texts) == 1 else ir.TextOr(tuple(texts))))
        parts.append(ir.Filter(conditions[0] if len(conditions) == 1 else ir.AnyOf(tuple(conditions))))
        return ir.Not(ir.And(tuple(parts))) if part.negated else ir.And(tuple(parts))


def _link_holds(link: ir.Variable, text: str) -> ir.Function:
    return ir.Function("CONTAINS", (ir.Function("LCASE", (ir.Function("STR", (link,)),)), Literal(text)))


def _joined(operator: str, parts: Sequence[_Part]) -> _Part:
    """The parts as one. Alternatives that are looked for at the same place become one term."""
    flat: list[_Part] = []
    terms: dict[_Field, int] = {}  # where in `flat` the alternatives of a field are
    for part in parts:
        for inner in part.parts if isinstance(part, _Joined) and part.operator == operator else (part,):
            if isinstance(inner, _Term) and inner.negated == (operator == "AND"):
                at = terms.setdefault(inner.field, len(flat))
                if at < len(flat):
                    first = flat[at]
                    assert isinstance(first, _Term)
                    flat[at] = replace(first, words=tuple(dict.fromkeys(first.words + inner.words)))
                    continue
            flat.append(inner)
    return flat[0] if len(flat) == 1 else _Joined(operator, tuple(flat))


def _only_negated(part: _Part) -> Token | None:
    """Where a part begins that holds of publications of which it asks for nothing; None where it is none."""
    if isinstance(part, _Term):
        return part.token if part.negated else None
    begins = [_only_negated(inner) for inner in part.parts]
    tokens = [token for token in begins if token is not None]
    return tokens[0] if tokens and (part.operator == "OR" or len(tokens) == len(begins)) else None
