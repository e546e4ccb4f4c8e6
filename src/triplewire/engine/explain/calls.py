"""The operator calls of an explained pair: which are made, in which order, which are reused or skipped, what they cost.

Only the calls that a match of this pair alone would make are made. Those of a whole match are shared with all other
subscriptions: `triplewire match --stats`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from triplewire.errors import OperatorError
from triplewire.ir.evaluation.evaluate import Answer, CallKey, CallResults, Result, World, decide
from triplewire.ir.nodes import Call, Variable
from triplewire.ir.normal_form.calls import split
from triplewire.ir.show import show, show_term
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.model.publication import Publication
from triplewire.model.terms import shortened
from triplewire.verify.operators import OperatorStage

Ranked = Callable[[Sequence[CallKey]], Sequence[CallKey]]
"""Puts calls that all have to hold into the order in which an engine makes them."""

MATCH, CACHE = "the match before", "the cache of operators"
_CHARACTERS = 120  # of a call, and of what it answers


@dataclass(frozen=True, slots=True)
class CallMade:
    """A call and its outcome ("true", "false", "3 rows", or why it failed). `cost` is in the unit that the operator
    states, else in seconds. `reused`: where the outcome was known from; then it took and cost nothing."""

    call: str
    outcome: str
    seconds: float = 0.0
    cost: float = 0.0
    reused: str = ""


@dataclass(frozen=True, slots=True)
class CallSkipped:
    """A call of the subscription that was not made, and why not."""

    call: str
    why: str


@dataclass(frozen=True, slots=True)
class ExplainedCalls:
    """The calls of a pair: `made` in their order, and those `skipped`. `for_explanation` were made only to say why."""

    made: tuple[CallMade, ...] = ()
    skipped: tuple[CallSkipped, ...] = ()
    for_explanation: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.made or self.skipped)

    @property
    def cost(self) -> float:
        """That of all calls that were made for the pair."""
        return sum(call.cost for call in self.made)

    @property
    def seconds(self) -> float:
        """What those took."""
        return sum(call.seconds for call in self.made)

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "made": [asdict(call) for call in self.made],
            "skipped": [asdict(call) for call in self.skipped],
            "for_explanation": list(self.for_explanation),
            "seconds": self.seconds,
            "cost": self.cost,
        }

    def lines(self) -> Iterator[str]:
        """Lines of text: the calls with numbers, what was skipped, and the sum."""
        if not self:
            return
        yield "  operator calls, in their order:"
        for number, call in enumerate(self.made, 1):
            spent = f"reused from {call.reused}" if call.reused else _spent(call.seconds, call.cost)
            yield f"    {number}. {call.call}: {call.outcome} ({spent})"
        for skipped in self.skipped:
            yield f"    skipped {skipped.call}: {skipped.why}"
        for text in self.for_explanation:
            yield f"    for this explanation only: {text}"
        reused = sum(bool(call.reused) for call in self.made)
        counts = f"{len(self.made) - reused} made, {reused} reused, {len(self.skipped)} skipped"
        yield f"    {counts}" + (f"; {_spent(self.seconds, self.cost)}" if self.made else "")


class TracedCalls:
    """Decides one pair as a match does, and records its calls. `results`: the results of all calls made, for reuse.

    `known`: outcomes by where they are known from. `ranked`: see `Ranked`; without it, calls come as the text has them.
    """

    def __init__(
        self,
        subscription: Subscription,
        publication: Publication,
        world: World,
        known: Mapping[str, CallResults] | None = None,
        ranked: Ranked | None = None,
    ) -> None:
        self._subscription = subscription
        self._publication = publication
        self._known = known or {}
        self._stage = OperatorStage(world)
        self._first = list(ranked(split(subscription.where)[0])) if ranked is not None else []
        self.results: CallResults = {}
        self._made: dict[CallKey, CallMade] = {}
        self.answer = self._decided(world)

    def _decided(self, world: World) -> Answer:
        """Make calls until the pair is decided. Raises `LimitError`."""
        while True:
            outcome = decide(self._subscription, self._publication, world, self.results)
            if isinstance(outcome, Answer):
                return outcome
            open_ = dict.fromkeys(outcome.calls)
            following = dict.fromkeys([*(key for key in self._first if key in open_), *open_])
            for key in list(following)[: outcome.at_once(len(self.results))]:
                self.results[key] = self._outcome(key)

    def _outcome(self, key: CallKey) -> Result:
        for origin, results in self._known.items():
            if (known := results.get(key)) is not None and not isinstance(known, OperatorError):
                self._made[key] = CallMade(text_of(key), _said(known), reused=origin)
                return known
        begun = time.perf_counter()
        (result,) = self._stage.made([key], self._publication)
        seconds = time.perf_counter() - begun
        cost = self._stage.cost(key.operator)
        self._made[key] = CallMade(text_of(key), _said(result), seconds, seconds if cost is None else cost)
        return result

    def told(self) -> ExplainedCalls:
        """All calls, those that were made after the decision by whoever uses `results` among them."""
        extra = tuple(f"{text_of(key)}: {_said(self.results[key])}" for key in self.results if key not in self._made)
        return ExplainedCalls(tuple(self._made.values()), tuple(self._skipped()), extra)

    def _skipped(self) -> Iterator[CallSkipped]:
        why = self._why()
        calls = dict.fromkeys(calls_in(self._subscription.where))
        asked = {key.operator for key in self._made}
        for call in calls:
            constants = tuple([None if isinstance(a, Variable) else a for a in call.arguments])
            if None not in constants:
                if CallKey(call.operator, constants) not in self._made:
                    yield CallSkipped(shortened(_plain(call), _CHARACTERS), why)
            elif call.operator not in asked:  # with values, it would be among those made
                yield CallSkipped(shortened(_plain(call), _CHARACTERS), why)

    def _why(self) -> str:
        """Why no more calls were made."""
        if not self._made:
            return "what is cheap decides the pair" + ("" if self.answer.bindings else ": it does not match")
        last = list(self._made.values())[-1]
        if self.answer.bindings:
            return "the pair matches without it"
        if self.answer.undecided:
            return "its outcome would decide nothing"
        return f"{last.call} is {last.outcome}, and the pair is decided"


def _spent(seconds: float, cost: float) -> str:
    """Seconds, and the cost where it is something else."""
    return f"{seconds * 1e3:.1f} ms" + (f", cost {cost:.4g}" if cost != seconds else "")


def text_of(key: CallKey) -> str:
    """A call with its values; an output is `_`."""
    arguments = ", ".join("_" if term is None else show_term(term) for term in key.arguments)
    return shortened(f"{key.operator}({arguments})", _CHARACTERS)


def _plain(call: Call) -> str:
    return f"{call.operator}({', '.join(map(show, call.arguments))})"


def _said(result: Result) -> str:
    if isinstance(result, OperatorError):
        return shortened(f"unknown: {result.what}", _CHARACTERS)
    if isinstance(result, bool):
        return str(result).lower()
    return f"{len(result)} row{'s' * (len(result) != 1)}" if result else "false"
