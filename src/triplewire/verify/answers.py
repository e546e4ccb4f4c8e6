"""The tests that no index answers: evaluated by `triplewire.ir.evaluation.expressions`, once for each term that needs
it.

Of full-text tests there may be hundreds for each text: `triplewire.verify.searches` answers them in less time than it
takes to keep the answer.

Who asks: `triplewire.verify.solve`, in whose kernel a solution waits until its residual predicates have answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import BoundedCache
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.evaluation.expressions import holds
from triplewire.ir.evaluation.patterns import fits
from triplewire.ir.evaluation.state import Evaluation, Solution
from triplewire.ir.nodes import Exists, Expression, FullText, Function, Holds, InstanceOf, Label, Where
from triplewire.ir.values.numbers import ExpressionError
from triplewire.ir.walk import walk
from triplewire.kernels.joins.solutions import ANSWER, ASKED, FAILED, FALSE, KEY, PER_PUBLICATION, PLACE, TRUE
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Term
from triplewire.verify.searches import LiteralTexts, Search

MOST_KEPT, MOST_NODES = 1 << 16, 1 << 20  # answers, and nodes of expressions, that are kept from batch to batch
LONGEST_KEPT = 256  # characters of a term whose answers are kept: there is no limit to those of all terms together
_ROOM = 1 << 12  # rows at first: room for one answer for each of the pairs that are solved at once, half of it free
_NOWHERE = Publication("", ())
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
    expression: Expression | None  # None where the text that states it is not taken any more
    depends: bool  # on the publication
    search: Search | None  # where it is a full-text test and no more
    owner: int  # a subscription that has it, which the steps are counted for


class ResidualTests:
    """The residual predicates of a segment. `expression` gives the one with a number, `owner` a subscription that has
    it. Safe with threads."""

    def __init__(
        self, tests: int, expression: Callable[[int], Expression], owner: Callable[[int], int], world: World
    ) -> None:
        self.scope = np.zeros(tests, np.int8)
        self._expression = expression
        self._owner = owner
        self._world = world
        self._stated: BoundedCache[int, _Stated] = BoundedCache()
        # (test, term) -> answer, steps
        self._outcomes: BoundedCache[tuple[int, Term], tuple[int, int]] = BoundedCache()

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
        search = Search(expression.expression) if isinstance(expression, FullText) else None
        stated = _Stated(expression, expression is not None and _depends(expression), search, self._owner(test))
        self.scope[test] = PER_PUBLICATION if stated.depends else _EVERYWHERE
        self._stated.put(test, stated, 1 + sum(1 for _ in walk(expression)), MOST_NODES)
        return stated

    def _answer(self, test: int, expression: Expression, node: Term) -> tuple[int, int]:
        if _characters(node) > LONGEST_KEPT:
            return self._evaluated(expression, node, _NOWHERE)
        outcome = self._outcomes.get((test, node))
        if outcome is None:
            outcome = self._evaluated(expression, node, _NOWHERE)
            self._outcomes.put((test, node), outcome, 1, MOST_KEPT)
        return outcome

    def _evaluated(self, expression: Expression, node: Term, publication: Publication) -> tuple[int, int]:
        """The answer, and the steps that it took."""
        if isinstance(expression, Label):
            return TRUE if fits(expression, node) else FALSE, 1
        state = Evaluation(publication, self._world, frozenset(), no_groups)
        most = state.steps_left
        try:
            answer = TRUE if holds(expression, {"x": node}, state) else FALSE
        except TriplewireError:
            answer = FAILED
        return answer, 1 + most - state.steps_left


def _characters(node: Term) -> int:
    """How long a term is."""
    if isinstance(node, Literal):
        return len(node.lexical) + len(node.datatype) + len(node.language)
    return len(node.value if isinstance(node, IRI) else node.label)


def _depends(expression: Expression) -> bool:
    """Is its value another one in another publication?"""
    return any(
        isinstance(node, InstanceOf | Exists | Holds) or (isinstance(node, Function) and node.name == "NOW")
        for node in walk(expression)
    )


def no_groups(where: Where, solution: Solution, state: Evaluation) -> bool:
    """For evaluations that never ask for one."""
    raise ExpressionError("a test on one node asks for no group")
