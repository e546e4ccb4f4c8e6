"""The tests that no index answers: evaluated by `triplewire.ir.expressions`, once for each term that needs it.

Who asks: `triplewire.verify.solve`, in whose kernel a solution waits until its lazy tests have answers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from triplewire.errors import TriplewireError
from triplewire.ir.evaluate import World
from triplewire.ir.expressions import holds
from triplewire.ir.nodes import Exists, Expression, Function, Holds, InstanceOf, Label, Where
from triplewire.ir.patterns import fits
from triplewire.ir.state import Evaluation, Solution, UnknownCall
from triplewire.ir.walk import walk
from triplewire.kernels.solutions import ANSWER, ASKED, FAILED, FALSE, PER_PUBLICATION, TRUE
from triplewire.model.publication import Publication
from triplewire.model.terms import Term

MOST_KEPT = 1 << 16  # answers, and expressions, that are kept from one batch to the next
_NOWHERE = Publication("", ())
_EVERYWHERE = 1  # in `scope`: the answer is the same in every publication


class Answers:
    """The answers for one batch, as the kernel reads and asks for them: an open hash table.

    A row of `known` is (test << 32 | term, publication or -1, answer); it begins with -1 where it is free.
    """

    def __init__(self, scope: NDArray[np.int8]) -> None:
        self.scope = scope
        self.known = np.full((1024, 3), -1, np.int64)

    def grow(self) -> None:
        """Twice the room. The answers are forgotten: who needs one asks again, and `LazyTests` has kept it."""
        self.known = np.full((2 * len(self.known), 3), -1, np.int64)


class LazyTests:
    """The lazy tests of a segment. `expression` gives the one with a number. Safe with threads."""

    def __init__(self, tests: int, expression: Callable[[int], Expression], world: World) -> None:
        self.scope = np.zeros(tests, np.int8)
        self._expression = expression
        self._world = world
        self._expressions: dict[int, Expression] = {}
        self._kept: dict[tuple[int, Term], int] = {}

    def fill(self, answers: Answers, term: Callable[[int], Term], publications: Callable[[int], Publication]) -> None:
        """Find the answers that were asked for."""
        for at in np.flatnonzero(answers.known[:, ANSWER] == ASKED).tolist():
            key, place, _ = answers.known[at].tolist()
            test, node = key >> 32, term(key & 0xFFFFFFFF)
            expression = self._stated(test)
            if self.scope[test] != PER_PUBLICATION:
                answers.known[at, ANSWER] = self._answer(test, expression, node)
            elif place >= 0:
                answers.known[at, ANSWER] = self._evaluated(expression, node, publications(place))
            else:
                answers.known[at, ANSWER] = FALSE  # asked before its scope was known; nobody reads it

    def _stated(self, test: int) -> Expression:
        found = self._expressions.get(test)
        if found is None:
            found = self._expression(test)
            self.scope[test] = PER_PUBLICATION if _depends(found) else _EVERYWHERE
            if len(self._expressions) >= MOST_KEPT:
                self._expressions.clear()
            self._expressions[test] = found
        return found

    def _answer(self, test: int, expression: Expression, node: Term) -> int:
        found = self._kept.get((test, node))
        if found is None:
            found = self._evaluated(expression, node, _NOWHERE)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[test, node] = found
        return found

    def _evaluated(self, expression: Expression, node: Term, publication: Publication) -> int:
        if isinstance(expression, Label):
            return TRUE if fits(expression, node) else FALSE
        state = Evaluation(publication, self._world, frozenset(), no_groups)
        try:
            return TRUE if holds(expression, {"x": node}, state) else FALSE
        except TriplewireError:
            return FAILED


def _depends(expression: Expression) -> bool:
    """Is its value another one in another publication?"""
    return any(
        isinstance(node, InstanceOf | Exists | Holds) or (isinstance(node, Function) and node.name == "NOW")
        for node in walk(expression)
    )


def no_groups(where: Where, solution: Solution, state: Evaluation) -> bool:
    """For evaluations that never ask for one."""
    raise UnknownCall("a test on one node asks for no group")
