"""Full-text expressions (semantics, section 5): conditions on the words of one literal.

The words here have already passed through their analyzer, so they can be compared with the literal's words. How a
literal becomes words: `triplewire.ir.fulltext.analysis`. How an expression is written:
`triplewire.languages.grammar.fulltext`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Analyzer:
    """How text becomes words. `tokenizer` is "default" or "unicode"; `stemming` a Snowball language or ""."""

    tokenizer: str = "default"
    stemming: str = ""
    ignore_diacritics: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word, in the form that the analyzer gives it."""

    word: str
    analyzer: Analyzer = Analyzer()


@dataclass(frozen=True, slots=True)
class Prefix:
    """Any word with this prefix, which is never stemmed."""

    prefix: str
    analyzer: Analyzer = Analyzer()


@dataclass(frozen=True, slots=True)
class Phrase:
    """At least two consecutive words. Only the last may be a Prefix."""

    items: tuple[Word | Prefix, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """One occurrence of each operand, without overlap, with gaps[i] = (least, most) words between operands i and i + 1.

    If ordered[i] is true, operand i + 1 comes after operand i, else on either side. Operands are Word, Prefix, Phrase,
    or a TextOr of them.
    """

    operands: tuple[TextExpression, ...]
    gaps: tuple[tuple[int, int], ...]
    ordered: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class TextNot:
    """The text does not satisfy it."""

    operand: TextExpression


@dataclass(frozen=True, slots=True)
class TextAnd:
    """The text satisfies all."""

    operands: tuple[TextExpression, ...]


@dataclass(frozen=True, slots=True)
class TextOr:
    """The text satisfies at least one."""

    operands: tuple[TextExpression, ...]


TextExpression: TypeAlias = Word | Prefix | Phrase | Near | TextNot | TextAnd | TextOr
