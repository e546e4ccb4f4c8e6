"""Answers of the evaluation, kept until the bindings of a match are asked for; and what verification needs of
publications beside their columns."""

from __future__ import annotations

from typing import Protocol

from triplewire.bounded_cache import BoundedCache
from triplewire.ir.evaluation.evaluate import Answer
from triplewire.model.publication import Publication
from triplewire.verify.operators import CallTable

_MOST_ROWS = 1 << 16  # of bindings, together with one for each answer


class AnswerTable:
    """The answers of matches of one chunk, which needed an evaluation, by verifier, publication and subscription.

    Past `_MOST_ROWS`, random answers are dropped, and evaluated again when their bindings are asked for. Parts of a
    chunk share the answers of the whole. Any thread may use it.
    """

    def __init__(self, answers: BoundedCache[tuple[object, int, int], Answer] | None = None, first: int = 0) -> None:
        self._answers: BoundedCache[tuple[object, int, int], Answer] = BoundedCache() if answers is None else answers
        self._first = first

    def get(self, verifier: object, publication: int, subscription: int) -> Answer | None:
        """The answer, if it is kept."""
        return self._answers.get((verifier, self._first + publication, subscription))

    def put(self, verifier: object, publication: int, subscription: int, answer: Answer) -> None:
        """Keep the answer of a match."""
        key = verifier, self._first + publication, subscription
        self._answers.put(key, answer, 1 + len(answer.bindings), _MOST_ROWS)

    def part(self, first: int) -> AnswerTable:
        """The answers of matches of the publications from `first` on, which are numbered from 0 there."""
        return AnswerTable(self._answers, self._first + first)


class Content(Protocol):
    """The publications of a batch, by their numbers there, with all that is known of them."""

    @property
    def calls(self) -> CallTable:
        """The calls of operators that have been made about them."""

    @property
    def answers(self) -> AnswerTable:
        """The answers of matches that had to be evaluated."""

    def publication(self, number: int) -> Publication:
        """One of the publications."""
