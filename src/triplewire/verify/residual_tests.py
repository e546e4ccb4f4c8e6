"""The tests that no index answers: evaluated once for each term that needs it.

That is by `triplewire.ir.evaluation.expressions`. Of full-text tests there may be hundreds for each text: here each
becomes a function once, and a text is read once. Who asks: `triplewire.verify.solve`, in whose kernel a solution waits
until its residual predicates have answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import BoundedCache
from triplewire.errors import TriplewireError
from triplewire.ir import nodes
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.patterns import fits
from triplewire.ir.evaluation.state import Evaluation, Solution
from triplewire.ir.fulltext import COMPARED_AT_ONCE, TextWords, any_between, satisfies, words_of
from triplewire.ir.values.numbers import ExpressionError
from triplewire.ir.values.regexes import of_words
from triplewire.ir.walk import walk
from triplewire.model.packed import suffix_of
from triplewire.model.publication import Publication
from triplewire.model.terms import Literal, Term, text_of
from triplewire.verify.kernels.search import ANSWER, ASKED, FAILED, FALSE, KEY, PER_PUBLICATION, PLACE, TRUE

# --- full-text tests -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """An analyzer, as a key that is known by what it is: to hash what it says takes ten times as long."""

    analyzer: nodes.Analyzer


@cache
def _reader(analyzer: nodes.Analyzer) -> _Reader:
    """The one reader with this analyzer."""
    return _Reader(analyzer)


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

    def __init__(self, expression: nodes.TextExpression) -> None:
        self._test = _test(expression)
        self._steps = _steps(expression)
        analyzers = {node.analyzer for node in walk(expression) if isinstance(node, nodes.Word | nodes.Prefix)}
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


def _steps(expression: nodes.TextExpression, in_near: bool = False) -> int:
    """For each word of a text, how many steps `satisfies` counts at the most."""
    match expression:
        case nodes.Word() | nodes.Prefix():
            return in_near
        case nodes.Phrase(items):
            return 1 + len(items) // COMPARED_AT_ONCE + in_near
        case nodes.Near(operands):
            return sum(_steps(operand, True) for operand in operands)
        case nodes.TextAnd(operands) | nodes.TextOr(operands):
            return sum(_steps(operand, in_near) for operand in operands)
        case nodes.TextNot(operand):
            return _steps(operand, in_near)


def _test(expression: nodes.TextExpression) -> _Test:
    """The expression as a function; whatever is rare is left to `satisfies`."""
    match expression:
        case nodes.TextNot(operand):
            test = _test(operand)
            return lambda text: not test(text)
        case nodes.TextAnd(operands):
            return _decided_by(False, [_test(operand) for operand in operands])
        case nodes.TextOr(operands):
            return _decided_by(True, [_test(operand) for operand in operands])
        case nodes.Word(word, analyzer):
            reader = _reader(analyzer)
            return lambda text: word in text[reader].positions
        case nodes.Phrase((*_, nodes.Word()) as items):
            reader, words = _phrase(items)
            return lambda text: next(text[reader].phrase(words), None) is not None
        case nodes.Near(operands) if all(map(_length, operands)):
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


def _near(near: nodes.Near) -> _Test:
    """As `triplewire.ir.fulltext` goes about it, but an occurrence is a number, since all of an operand are as
    long."""
    first, *others = map(_starts, near.operands)
    lengths = list(map(_length, near.operands))
    links = list(zip(others, lengths, lengths[1:], near.gaps, near.ordered, strict=False))

    def test(text: LiteralText) -> bool:
        places = first(text)
        for starts, before, length, (least, most), ordered in links:
            if not places:
                return False
            places = [
                place
                for place in starts(text)
                if any_between(places, place - before - most, place - before - least)
                or (not ordered and any_between(places, place + length + least, place + length + most))
            ]
        return bool(places)

    return test


def _length(operand: nodes.TextExpression) -> int:
    """How many words every occurrence has; 0 where they differ, or where `_starts` does not find them."""
    match operand:
        case nodes.Word() | nodes.Prefix():
            return 1
        case nodes.Phrase((*_, nodes.Word()) as items):
            return len(items)
        case nodes.TextOr(operands):
            lengths = set(map(_length, operands))
            return lengths.pop() if len(lengths) == 1 else 0
    return 0


def _starts(operand: nodes.TextExpression) -> _Starts:
    """Where an operand that has a length stands."""
    match operand:
        case nodes.Word(word, analyzer):
            reader = _reader(analyzer)
            return lambda text: text[reader].positions.get(word, [])
        case nodes.Prefix(prefix, analyzer):
            reader = _reader(analyzer)
            return lambda text: _together(map(text[reader].positions.__getitem__, text[reader].with_prefix(prefix)))
        case nodes.Phrase((*_, nodes.Word()) as items):
            reader, words = _phrase(items)
            return lambda text: list(text[reader].phrase(words))
        case nodes.TextOr(operands):
            choices = [_starts(choice) for choice in operands]
            return lambda text: _together(starts(text) for starts in choices)
    raise ValueError(f"{operand} has no length")


def _phrase(items: Sequence[nodes.Word | nodes.Prefix]) -> tuple[_Reader, tuple[str, ...]]:
    """Who reads the text for a phrase without a prefix, and the words that it has to find."""
    return _reader(items[0].analyzer), tuple(item.word for item in items if isinstance(item, nodes.Word))


def _together(places: Iterable[list[int]]) -> list[int]:
    """Some lists of positions as one, ascending."""
    return sorted(set(chain.from_iterable(places)))


# --- answers ---------------------------------------------------------------------------------------------------------


MOST_KEPT, MOST_NODES = 1 << 16, 1 << 20  # answers, and nodes of expressions, that are kept from batch to batch
LONGEST_KEPT = 256  # characters of a term whose answers are kept: there is no limit to those of all terms together
_ROOM = 1 << 12  # rows at first: room for one answer for each of the pairs that are solved at once, half of it free
_NOWHERE = Publication("urn:none", ())
_EVERYWHERE = 1  # in `scope`: the answer is the same in every publication


class Answers:
    """The answers for one batch, as the kernel reads and asks for them: an open hash table.

    A row of `known` is (test << 32 | term, publication or -1, answer); it begins with -1 where it is free. `spent` has
    the steps that the tests of each subscription took.
    """

    def __init__(self, scope: NDArray[np.int8]) -> None:
        self.scope = scope
        self.known = np.full((_ROOM, 3), -1, np.int64)
        self.spent: dict[int, int] = {}

    def grow(self) -> None:
        """Double the room. Answers are forgotten and asked for again; `ResidualTests` remembers what it evaluated."""
        self.known = np.full((2 * len(self.known), 3), -1, np.int64)


class _Stated(NamedTuple):
    expression: nodes.Expression | None  # None where the text that states it is not taken any more
    depends: bool  # on the publication
    search: Search | None  # where it is a full-text test and no more
    owner: int  # a subscription that has it, which the steps are counted for


class ResidualTests:
    """The residual predicates of a segment. `expression` gives the one with a number, `owner` a subscription that has
    it. Safe with threads."""

    def __init__(
        self, tests: int, expression: Callable[[int], nodes.Expression], owner: Callable[[int], int], world: World
    ) -> None:
        self.scope = np.zeros(tests, np.int8)
        self._expression, self._owner, self._world = expression, owner, world
        self._stated: BoundedCache[int, _Stated] = BoundedCache()
        self._outcomes: BoundedCache[tuple[int, Term], tuple[int, int]] = BoundedCache()  # -> answer, steps

    def prepare(self, tests: Iterable[int]) -> None:
        """Find out what some tests state, which is else done for each when it is first asked for."""
        for test in tests:
            if self._stated.get(test) is None:
                self._state(test)

    def fill(self, answers: Answers, term: Callable[[int], Term], publications: Callable[[int], Publication]) -> bool:
        """Find the answers that were asked for. False where the tests of a subscription take more than `max_steps`
        together: from there on theirs are FAILED."""
        asked = np.flatnonzero(answers.known[:, ANSWER] == ASKED)
        texts, most, spent = LiteralTexts(term), self._world.settings.max_steps, answers.spent
        outcomes: list[int] = []
        keys, places = answers.known[asked, KEY].tolist(), answers.known[asked, PLACE].tolist()
        for key, place in zip(keys, places, strict=True):
            test, number = key >> 32, key & 0xFFFFFFFF
            stated = self._stated.get(test) or self._state(test)
            if stated.expression is None:
                outcomes.append(FAILED)  # the evaluation of the pair says why
                continue
            left = most - spent.get(stated.owner, 0)
            answer, steps = FAILED, 0
            if left >= 0 and stated.search is not None and (steps := stated.search.steps(texts[number], left)) <= left:
                answer = TRUE if stated.search(texts[number]) else FALSE
            elif left >= 0 and stated.depends:  # asked before that was known, it has no place: nobody reads the answer
                publication = publications(place) if place >= 0 else _NOWHERE
                answer, steps = self._evaluated(stated.expression, term(number), publication)
            elif left >= 0:
                answer, steps = self._answer(test, stated.expression, term(number))
            spent[stated.owner] = most - left + steps
            outcomes.append(answer)
        answers.known[asked, ANSWER] = outcomes
        return max(spent.values(), default=0) <= most

    def _state(self, test: int) -> _Stated:
        try:
            expression = self._expression(test)
        except TriplewireError:
            expression = None
        search = Search(expression.expression) if isinstance(expression, nodes.FullText) else None
        depends = any(
            isinstance(node, nodes.InstanceOf | nodes.Exists | nodes.Holds)
            or (isinstance(node, nodes.Function) and node.name == "NOW")
            for node in walk(expression)
        )
        stated = _Stated(expression, depends, search, self._owner(test))
        self.scope[test] = PER_PUBLICATION if stated.depends else _EVERYWHERE
        self._stated.put(test, stated, 1 + sum(1 for _ in walk(expression)), MOST_NODES)
        return stated

    def _answer(self, test: int, expression: nodes.Expression, node: Term) -> tuple[int, int]:
        if len(text_of(node)) + len(suffix_of(node)) > LONGEST_KEPT:
            return self._evaluated(expression, node, _NOWHERE)
        outcome = self._outcomes.get((test, node))
        if outcome is None:
            outcome = self._evaluated(expression, node, _NOWHERE)
            self._outcomes.put((test, node), outcome, 1, MOST_KEPT)
        return outcome

    def _evaluated(self, expression: nodes.Expression, node: Term, publication: Publication) -> tuple[int, int]:
        """The answer, and the steps that it took."""
        if isinstance(expression, nodes.Label):
            return TRUE if fits(expression, node) else FALSE, 1
        state = Evaluation(publication, self._world, frozenset(), no_groups)
        most = state.steps_left
        try:
            answer = TRUE if holds(expression, {"x": node}, state) else FALSE
        except TriplewireError:
            answer = FAILED
        return answer, 1 + most - state.steps_left


def no_groups(where: nodes.Where, solution: Solution, state: Evaluation) -> bool:
    """For evaluations that never ask for one."""
    raise ExpressionError("a test on one node asks for no group")
