"""The grammar of full-text expressions, shared by all languages (semantics, section 3).

    or      := and ("ftOR" and)*
    and     := not ("ftAND" not)*
    not     := "ftNOT"* near
    near    := primary ("ftNEAR" "[" least "," most "]" "UNORDERED"? primary "UNORDERED"?)*
    primary := (string | "(" or ")") option*
    option  := "USING" ("STEMMING" string | "DIACRITICS" "INSENSITIVE" | "ANALYZER" string)

Keywords in any case. UNORDERED may stand behind the gap or behind the operand that follows it. A string is a word, a
phrase, or, with a final `*`, a prefix. An option holds for all strings of its primary; an inner one wins. What an
expression means: `triplewire.ir.nodes` and `triplewire.ir.fulltext`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from triplewire.ir.fulltext import analyse, fold_prefix, stemming_language
from triplewire.ir.nodes import Analyzer, Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word
from triplewire.languages.grammar.tokens import Token, Tokens, string_value

TOKENIZERS = ("default", "unicode")
_MEANT = {
    **dict.fromkeys(("AND", "&&", "&"), "ftAND"),
    **dict.fromkeys(("OR", "||", "|"), "ftOR"),
    **dict.fromkeys(("NOT", "!"), "ftAND ftNOT"),
    **dict.fromkeys(("NEAR", "FTNEXT", "WITHIN"), "ftNEAR[0,3]"),
}
"""What may follow a full-text expression by mistake, and what was meant."""

_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">="))
MAX_GAP = 1_000_000  # words; no literal has as many


# --- an expression as written: options are known only behind what they hold for, so words are analysed afterwards ----


@dataclass(frozen=True, slots=True)
class _String:
    token: Token
    text: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Group:
    inner: _Written
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Chain:
    """Operands of one keyword: AND, OR, or NOT with a single one."""

    keyword: str
    operands: tuple[_Written, ...]


@dataclass(frozen=True, slots=True)
class _Near:
    operands: tuple[tuple[Token, _Written], ...]  # each with its first token
    gaps: tuple[tuple[int, int], ...] = field(default=())
    ordered: tuple[bool, ...] = field(default=())


_Written: TypeAlias = _String | _Group | _Chain | _Near


def parse_expression(tokens: Tokens) -> TextExpression:
    """The expression at the cursor, up to the first token that cannot go on.

    Raises `LanguageError`: a string without a word, `*` elsewhere than at the end of a string, an unknown stemmer or
    analyser, an operand that ftNEAR cannot take.
    """
    written = _read_or(tokens)
    _refuse_other_spelling(tokens)
    return _Compiler(tokens).compile(written, Analyzer())


def _refuse_other_spelling(tokens: Tokens) -> None:
    """Refuse what joins full-text expressions in other languages. In GQL a comparison that begins with a constant may
    follow."""
    token, ahead = tokens.peek(), 1
    meant = _MEANT.get(token.text.upper())
    while tokens.peek(ahead).text == "(":
        ahead += 1
    follows = tokens.peek(ahead).kind == "string" and tokens.peek(ahead + 1).text not in _COMPARISONS
    if meant is not None and follows:
        tokens.fail(token, f"found {token} in a full-text expression", f"did you mean {meant}?")


def _read_or(tokens: Tokens) -> _Written:
    with tokens.nested():
        operands = [_read_and(tokens)]
        while tokens.accept("FTOR"):
            operands.append(_read_and(tokens))
        return operands[0] if len(operands) == 1 else _Chain("OR", tuple(operands))


def _read_and(tokens: Tokens) -> _Written:
    operands = [_read_not(tokens)]
    while tokens.accept("FTAND"):
        operands.append(_read_not(tokens))
    return operands[0] if len(operands) == 1 else _Chain("AND", tuple(operands))


def _read_not(tokens: Tokens) -> _Written:
    negated = False
    while tokens.accept("FTNOT"):
        negated = not negated
    operand = _read_near(tokens)
    return _Chain("NOT", (operand,)) if negated else operand


def _read_near(tokens: Tokens) -> _Written:
    operands = [(tokens.peek(), _read_primary(tokens))]
    gaps: list[tuple[int, int]] = []
    ordered: list[bool] = []
    while tokens.accept("FTNEAR"):
        gaps.append(_read_gap(tokens))
        free = tokens.accept("UNORDERED")
        operands.append((tokens.peek(), _read_primary(tokens)))
        ordered.append(not (free or tokens.accept("UNORDERED")))
    return _Near(tuple(operands), tuple(gaps), tuple(ordered)) if gaps else operands[0][1]


def _read_gap(tokens: Tokens) -> tuple[int, int]:
    if not tokens.at("["):
        tokens.fail(tokens.peek(), f"found {tokens.peek()}, expected '['", "did you mean ftNEAR[0,3]?")
    start = tokens.expect("[")
    least = _read_count(tokens)
    tokens.expect(",")
    most = _read_count(tokens)
    tokens.expect("]")
    if least > most:
        tokens.fail(start, f"the gap [{least},{most}] holds no number", "the smaller number comes first")
    return least, most


def _read_count(tokens: Tokens) -> int:
    token = tokens.expect_kind("number", "a number of words")
    if not (token.text.isascii() and token.text.isdigit()):
        tokens.fail(token, f"found {token}, expected a whole number of words")
    digits = token.text.lstrip("0") or "0"
    return MAX_GAP if len(digits) > 7 else min(int(digits), MAX_GAP)


def _read_primary(tokens: Tokens) -> _Written:
    if tokens.at("NOT", "!"):
        tokens.fail(tokens.peek(), f"found {tokens.peek()} in a full-text expression", "did you mean ftNOT?")
    token = tokens.accept_kind("string")
    if token is not None:
        return _String(token, string_value(tokens, token), _read_options(tokens))
    if not tokens.accept("("):
        tokens.unexpected("a string, ftNOT or '(' of a full-text expression")
    inner = _read_or(tokens)
    _refuse_other_spelling(tokens)
    tokens.expect(")")
    options = _read_options(tokens)
    return _Group(inner, options)


def _read_options(tokens: Tokens) -> dict[str, Any]:
    options: dict[str, Any] = {}
    while tokens.accept("USING"):
        keyword = tokens.expect("STEMMING", "DIACRITICS", "ANALYZER").text.upper()
        if keyword == "DIACRITICS":
            tokens.expect("INSENSITIVE")
            options["ignore_diacritics"] = True
            continue
        token = tokens.expect_kind("string", "a name in quotation marks")
        name = string_value(tokens, token).strip().lower()
        if keyword == "STEMMING":
            try:
                options["stemming"] = stemming_language(name)
            except ValueError as error:
                tokens.fail(token, str(error))
        elif name in TOKENIZERS:
            options["tokenizer"] = name
        else:
            tokens.fail(token, f"there is no analyzer {token}", f"known: {', '.join(TOKENIZERS)}")
    return options


class _Compiler:
    """From what was written to the intermediate form."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def compile(self, written: _Written, analyzer: Analyzer) -> TextExpression:
        match written:
            case _String():
                return self._string(written, replace(analyzer, **written.options) if written.options else analyzer)
            case _Group(inner, options):
                return self.compile(inner, replace(analyzer, **options) if options else analyzer)
            case _Chain("NOT", operands):
                return TextNot(self.compile(operands[0], analyzer))
            case _Chain(keyword, operands):
                compiled = tuple(self.compile(operand, analyzer) for operand in operands)
                return TextAnd(compiled) if keyword == "AND" else TextOr(compiled)
            case _Near():
                return self._near(written, analyzer)

    def _string(self, written: _String, analyzer: Analyzer) -> TextExpression:
        text = written.text.rstrip()
        is_prefix = text.endswith("*")
        body = text[:-1] if is_prefix else text
        if "*" in body:
            self._tokens.fail(written.token, "'*' may only end the last word of a string")
        if is_prefix and (not body or unicodedata.category(body[-1])[0] not in "LNM"):
            self._tokens.fail(written.token, "'*' must directly follow the beginning of a word")
        words = analyse(body, analyzer)
        if not words:
            self._tokens.fail(written.token, f"the string {written.token} holds no word")
        items: list[Word | Prefix] = [Word(word, analyzer) for word in words]
        if is_prefix:
            items[-1] = Prefix(fold_prefix(body, analyzer), replace(analyzer, stemming=""))
        return items[0] if len(items) == 1 else Phrase(tuple(items))

    def _near(self, written: _Near, analyzer: Analyzer) -> TextExpression:
        operands: list[TextExpression] = []
        shared: tuple[str, bool] | None = None  # what cuts a text into words: gaps count those of one cut
        for token, operand in written.operands:
            compiled = self.compile(operand, analyzer)
            for leaf in _leaves(compiled):
                if leaf is None:
                    self._tokens.fail(token, "ftNEAR takes words, phrases, prefixes, or an ftOR of them in parentheses")
                shared = shared or (leaf.tokenizer, leaf.ignore_diacritics)
                if shared != (leaf.tokenizer, leaf.ignore_diacritics):
                    what = "the operands of one ftNEAR must share their analyzer and USING DIACRITICS"
                    self._tokens.fail(token, what, "put the option behind all")
            operands.append(_flat_or(compiled))
        return Near(tuple(operands), written.gaps, written.ordered)


def _leaves(expression: TextExpression) -> list[Analyzer | None]:
    """The analysers of the words of an operand of ftNEAR; None for what cannot be one."""
    if isinstance(expression, Word | Prefix):
        return [expression.analyzer]
    if isinstance(expression, Phrase):
        return [expression.items[0].analyzer]
    if isinstance(expression, TextOr):
        return [leaf for operand in expression.operands for leaf in _leaves(operand)]
    return [None]


def _flat_or(expression: TextExpression) -> TextExpression:
    """An ftOR of ftORs as one."""
    if not isinstance(expression, TextOr):
        return expression
    flat: list[TextExpression] = []
    for operand in map(_flat_or, expression.operands):
        flat.extend(operand.operands if isinstance(operand, TextOr) else (operand,))
    return TextOr(tuple(flat))
