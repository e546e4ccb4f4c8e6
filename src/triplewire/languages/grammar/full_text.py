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
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from triplewire.ir.fulltext import analyse, fold_prefix, stemming_language
from triplewire.ir.nodes import Analyzer, Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word
from triplewire.languages.grammar.tokens import COMPARISONS, Token, Tokens, string_value

TOKENIZERS = ("default", "unicode")
_MEANT = {
    **dict.fromkeys(("AND", "&&", "&"), "ftAND"),
    **dict.fromkeys(("OR", "||", "|"), "ftOR"),
    **dict.fromkeys(("NOT", "!"), "ftAND ftNOT"),
    **dict.fromkeys(("NEAR", "FTNEXT", "WITHIN"), "ftNEAR[0,3]"),
}
"""What may follow a full-text expression by mistake, and what was meant."""

MAX_GAP = 1_000_000  # words; no literal has as many

_Written: TypeAlias = Callable[[Analyzer], TextExpression]
"""An expression as written. Options are known only behind what they hold for, so words are analysed afterwards, by the
analyser that it is called with."""


def parse_expression(tokens: Tokens) -> TextExpression:
    """The expression at the cursor, up to the first token that cannot go on.

    Raises `LanguageError`: a string without a word, `*` elsewhere than at the end of a string, an unknown stemmer or
    analyser, an operand that ftNEAR cannot take.
    """
    written = _read_or(tokens)
    _refuse_other_spelling(tokens)
    return written(Analyzer())


def _refuse_other_spelling(tokens: Tokens) -> None:
    """Refuse what joins full-text expressions in other languages. In GQL a comparison that begins with a constant may
    follow."""
    token, ahead = tokens.peek(), 1
    meant = _MEANT.get(token.text.upper())
    while tokens.peek(ahead).text == "(":
        ahead += 1
    follows = tokens.peek(ahead).kind == "string" and tokens.peek(ahead + 1).text not in COMPARISONS
    if meant is not None and follows:
        tokens.fail(token, f"found {token} in a full-text expression", f"did you mean {meant}?")


def _read_or(tokens: Tokens) -> _Written:
    with tokens.nested():
        operands = tokens.separated(lambda: _read_and(tokens), "FTOR")
    if len(operands) == 1:
        return operands[0]
    return lambda analyzer: TextOr(tuple([operand(analyzer) for operand in operands]))


def _read_and(tokens: Tokens) -> _Written:
    operands = tokens.conjuncts(lambda: _read_not(tokens), "FTAND")
    if len(operands) == 1:
        return operands[0]
    return lambda analyzer: TextAnd(tuple([operand(analyzer) for operand in operands]))


def _read_not(tokens: Tokens) -> _Written:
    negated = False
    while tokens.accept("FTNOT"):
        negated = not negated
    operand = _read_near(tokens)
    return (lambda analyzer: TextNot(operand(analyzer))) if negated else operand


def _read_near(tokens: Tokens) -> _Written:
    operands = [(tokens.peek(), _read_primary(tokens))]
    gaps: list[tuple[int, int]] = []
    ordered: list[bool] = []
    while tokens.accept("FTNEAR"):
        gaps.append(_read_gap(tokens))
        free = tokens.accept("UNORDERED")
        operands.append((tokens.peek(), _read_primary(tokens)))
        ordered.append(not (free or tokens.accept("UNORDERED")))
    if not gaps:
        return operands[0][1]

    def near(analyzer: Analyzer) -> TextExpression:
        cuts: set[tuple[str, bool]] = set()  # what cuts a text into words: gaps count those of one cut
        flat_operands: list[TextExpression] = []
        for token, written in operands:
            operand = written(analyzer)
            for leaf in _leaves(operand):
                if leaf is None:
                    tokens.fail(token, "ftNEAR takes words, phrases, prefixes, or an ftOR of them in parentheses")
                cuts.add((leaf.tokenizer, leaf.ignore_diacritics))
                if len(cuts) > 1:
                    what = "the operands of one ftNEAR must share their analyzer and USING DIACRITICS"
                    tokens.fail(token, what, "put the option behind all")
            flat_operands.append(_flat_or(operand))
        return Near(tuple(flat_operands), tuple(gaps), tuple(ordered))

    return near


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
        tokens.note(token.offset, "words")
        text, options = string_value(tokens, token), _read_options(tokens)
        return lambda analyzer: words_of(tokens, token, text, replace(analyzer, **options) if options else analyzer)
    if not tokens.accept("("):
        tokens.unexpected("a string, ftNOT or '(' of a full-text expression")
    inner = _read_or(tokens)
    _refuse_other_spelling(tokens)
    tokens.expect(")")
    of_group = _read_options(tokens)
    return (lambda analyzer: inner(replace(analyzer, **of_group))) if of_group else inner


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


def words_of(tokens: Tokens, token: Token, text: str, analyzer: Analyzer) -> Word | Prefix | Phrase:
    """The word, phrase or prefix that `text` says, written at `token`. Refuses a text without a word, and `*` elsewhere
    than at its end."""
    text = text.rstrip()
    is_prefix = text.endswith("*")
    body = text[:-1] if is_prefix else text
    if "*" in body:
        tokens.fail(token, "'*' may only end the last word of a string")
    if is_prefix and (not body or unicodedata.category(body[-1])[0] not in "LNM"):
        tokens.fail(token, "'*' must directly follow the beginning of a word")
    words = analyse(body, analyzer)
    if not words:
        tokens.fail(token, f"the string {token} holds no word")
    items: list[Word | Prefix] = [Word(word, analyzer) for word in words]
    if is_prefix:
        items[-1] = Prefix(fold_prefix(body, analyzer), replace(analyzer, stemming=""))
    return items[0] if len(items) == 1 else Phrase(tuple(items))


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
