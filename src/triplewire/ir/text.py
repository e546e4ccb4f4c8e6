"""Full-text expressions (semantics, section 5): what is asked of the words of one literal.

The words here have already passed through the analyser that they name, so that they compare with the literal's words
as they are. How a literal is cut into words: `triplewire.ir.analysis`. How an expression is written:
`triplewire.languages.fulltext`.
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
    """A word, in the form that the analyser gives it."""

    word: str
    analyzer: Analyzer = Analyzer()


@dataclass(frozen=True, slots=True)
class Prefix:
    """Any word that starts so; never stemmed."""

    prefix: str
    analyzer: Analyzer = Analyzer()


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words next to each other, in order; at least two; only the last may be a Prefix."""

    items: tuple[Word | Prefix, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """Occurrences of all operands, one each: between operand i and i + 1 stand gaps[i] = (least, most) words, without
    overlap; where ordered[i] holds, i + 1 comes later, else on either side. Operands are Word, Prefix, Phrase, or a
    TextOr of them."""

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
