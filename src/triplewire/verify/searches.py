"""Full-text tests that many texts are asked: an expression becomes a function once, a text is read once.

The meaning is that of `triplewire.ir.fulltext.search`, whose answers these functions give where no step has to be
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from triplewire.ir.fulltext.analysis import TextWords, words_of
from triplewire.ir.fulltext.nodes import Analyzer, Near, Phrase, Prefix, TextAnd, TextExpression, TextNot, TextOr, Word
from triplewire.ir.fulltext.search import COMPARED_AT_ONCE, any_between, satisfies
from triplewire.ir.values.costs import of_words
from triplewire.ir.walk import walk
from triplewire.model.terms import Literal, Term


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """An analyzer, as a key that is known by what it is: to hash what it says takes ten times as long."""

    analyzer: Analyzer


_READERS: dict[Analyzer, _Reader] = {}


class LiteralText(dict[_Reader, TextWords]):
    """The text of one literal, with its words as each reader sees them."""

    def __init__(self, lexical: str) -> None:
        super().__init__()
        self.lexical = lexical

    def __missing__(self, reader: _Reader) -> TextWords:
        words = self[reader] = words_of(self.lexical, reader.analyzer)
        return words


class LiteralTexts(dict[int, LiteralText | None]):
    """The texts of terms by their numbers; None for those that have no words, which no full-text test holds of."""

    def __init__(self, term: Callable[[int], Term]) -> None:
        super().__init__()
        self._term = term

    def __missing__(self, number: int) -> LiteralText | None:
        term = self._term(number)
        text = self[number] = LiteralText(term.lexical) if isinstance(term, Literal) and term.has_text else None
        return text


_Test: TypeAlias = Callable[[LiteralText], bool]
_Starts: TypeAlias = Callable[[LiteralText], list[int]]
"""Where an operand of NEAR stands: the positions of its first words, ascending."""


class Search:
    """A full-text expression that is asked of many texts."""

    __slots__ = ("_readers", "_steps", "_test")

    def __init__(self, expression: TextExpression) -> None:
        self._test = _test(expression)
        self._steps = _steps(expression)
        analyzers = {node.analyzer for node in walk(expression) if isinstance(node, Word | Prefix)}
        self._readers = [_reader(analyzer) for analyzer in analyzers]

    def __call__(self, text: LiteralText | None) -> bool:
        """Does the text satisfy it?"""
        return text is not None and self._test(text)

    def steps(self, text: LiteralText | None, most: int) -> int:
        """How many steps the plain evaluation takes for that at the most; more than `most` where that is not known."""
        if text is None:
            return 0
        steps = sum(of_words(text.lexical, reader.analyzer) for reader in self._readers)
        if self._steps and steps <= most:
            steps += max(len(text[reader].words) for reader in self._readers) * self._steps
        return steps


def _reader(analyzer: Analyzer) -> _Reader:
    """The one reader with this analyzer."""
    return _READERS.setdefault(analyzer, _Reader(analyzer))


def _steps(expression: TextExpression, in_near: bool = False) -> int:
    """For each word of a text, how many steps `satisfies` counts at the most."""
    match expression:
        case Word() | Prefix():
            return in_near
        case Phrase(items):
            return 1 + len(items) // COMPARED_AT_ONCE + in_near
        case Near(operands):
            return sum(_steps(operand, True) for operand in operands)
        case TextAnd(operands) | TextOr(operands):
            return sum(_steps(operand, in_near) for operand in operands)
        case TextNot(operand):
            return _steps(operand, in_near)


# --- what becomes a function; whatever is rare is left to `satisfies` ------------------------------------------------


def _test(expression: TextExpression) -> _Test:
    match expression:
        case TextNot(operand):
            test = _test(operand)
            return lambda text: not test(text)
        case TextAnd(operands):
            return _decided_by(False, [_test(operand) for operand in operands])
        case TextOr(operands):
            return _decided_by(True, [_test(operand) for operand in operands])
        case Word(word, analyzer):
            reader = _reader(analyzer)
            return lambda text: word in text[reader].positions
        case Phrase((*_, Word()) as items):
            reader, words = _phrase(items)
            return lambda text: next(text[reader].phrase(words), None) is not None
        case Near(operands) if all(map(_length, operands)):
            return _near(expression)
    return lambda text: satisfies(expression, text.lexical)


def _decided_by(answer: bool, tests: list[_Test]) -> _Test:
    """Has one of the tests this answer? Then it is that of the whole."""

    def decided(text: LiteralText) -> bool:
        for test in tests:
            if test(text) is answer:
                return answer
        return not answer

    return decided


def _near(near: Near) -> _Test:
    """As `triplewire.ir.fulltext.search` goes about it, but an occurrence is a number, since all of an operand are as
    long."""
    first, *others = map(_starts, near.operands)
    lengths = list(map(_length, near.operands))
    links = list(zip(others, lengths, lengths[1:], near.gaps, near.ordered, strict=False))

    def test(text: LiteralText) -> bool:
        places = first(text)
        for starts, before, own, (least, most), ordered in links:
            if not places:
                return False
            places = [
                at
                for at in starts(text)
                if any_between(places, at - before - most, at - before - least)
                or (not ordered and any_between(places, at + own + least, at + own + most))
            ]
        return bool(places)

    return test


def _length(operand: TextExpression) -> int:
    """How many words every occurrence has; 0 where they differ, or where `_starts` does not find them."""
    match operand:
        case Word() | Prefix():
            return 1
        case Phrase((*_, Word()) as items):
            return len(items)
        case TextOr(operands):
            lengths = set(map(_length, operands))
            return lengths.pop() if len(lengths) == 1 else 0
    return 0


def _starts(operand: TextExpression) -> _Starts:
    """Where an operand that has a length stands."""
    match operand:
        case Word(word, analyzer):
            reader = _reader(analyzer)
            return lambda text: text[reader].positions.get(word, [])
        case Prefix(prefix, analyzer):
            reader = _reader(analyzer)
            return lambda text: _together(map(text[reader].positions.__getitem__, text[reader].with_prefix(prefix)))
        case Phrase((*_, Word()) as items):
            reader, words = _phrase(items)
            return lambda text: list(text[reader].phrase(words))
        case TextOr(operands):
            choices = [_starts(choice) for choice in operands]
            return lambda text: _together(starts(text) for starts in choices)
    raise ValueError(f"{operand} has no length")


def _phrase(items: Sequence[Word | Prefix]) -> tuple[_Reader, tuple[str, ...]]:
    """Who reads the text for a phrase without a prefix, and the words that it has to find."""
    return _reader(items[0].analyzer), tuple(item.word for item in items if isinstance(item, Word))


def _together(places: Iterable[list[int]]) -> list[int]:
    """Some lists of positions as one, ascending."""
    return sorted({at for listed in places for at in listed})
