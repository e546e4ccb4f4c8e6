"""Why a subscription matches a publication, part by part; for a miss, the first part that fails.

The parts are asked in the order of the text; one that acts on the whole group (a FILTER, NOT EXISTS, a call) where all
its variables are decided. A part fails when solutions reached it and none is left after it; it is unknown where that
depends on calls that failed. Of a miss, what calls operators comes last. The sentences: `reasons`.
"""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

from triplewire.engine.compiler import Compiler
from triplewire.engine.explain import reasons
from triplewire.engine.explain.nearest import Nearest, nearest
from triplewire.engine.explain.reasons import ExplainedPair
from triplewire.errors import LimitError, OperatorError
from triplewire.ir.evaluation.evaluate import Answer, CallKey, CallResults, Result, World, decide
from triplewire.ir.nodes import And, Bind, Call, Filter, Minus, Not, Optional, Or, Pattern, Values, Variable, Where
from triplewire.ir.show import show, show_term
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.model.match import Binding, bindings_to_json, lines_of_text
from triplewire.model.publication import Publication
from triplewire.model.terms import shortened
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.verify.operators import OperatorStage

MATCH, CACHE = "the match before", "the cache of operators"
_CHARACTERS = 120  # of a call, and of what it answers


@dataclass(frozen=True, slots=True)
class CallMade:
    """A call and its outcome ("true", "false", "3 rows", or why it failed). `cost` is what the operator states for a
    call, 0 where it states nothing. `reused`: where the outcome was known from; then it took and cost nothing."""

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
    """Decides one pair as a match does, and records its calls. `results`: those of all calls made, for reuse. Raises
    `LimitError`.

    `known`: outcomes by where they are known from. `learned`: what the order of the calls goes by.
    """

    def __init__(
        self,
        subscription: Subscription,
        publication: Publication,
        world: World,
        known: Mapping[str, CallResults] | None = None,
        learned: LearnedCalls | None = None,
    ) -> None:
        self._subscription = subscription
        self._publication = publication
        self._known = known or {}
        self._stage = OperatorStage(world, learned)
        self.results: CallResults = {}
        self._made: dict[CallKey, CallMade] = {}
        cached = self._known.get(CACHE, {})
        choice = self._stage.choice((subscription,), cached, is_drawn=False)
        while not isinstance(outcome := decide(subscription, publication, world, self.results), Answer):
            waiting = dict.fromkeys(outcome.calls)
            for _ in range(outcome.at_once(len(self.results))):
                choice.waits(0, waiting)
                key = choice.next()
                self.results[key] = self._outcome(key)
                del waiting[key]
            choice.waits(0, ())
        self.answer = outcome

    def _outcome(self, key: CallKey) -> Result:
        for origin, results in self._known.items():
            if (known := results.get(key)) is not None and not isinstance(known, OperatorError):
                self._made[key] = CallMade(text_of(key), _said(known), reused=origin)
                return known
        begun = time.perf_counter()
        (result,) = self._stage.made([key], self._publication)
        seconds = time.perf_counter() - begun
        cost = self._stage.cost(key.operator)
        self._made[key] = CallMade(text_of(key), _said(result), seconds, cost or 0.0)
        return result

    def told(self) -> ExplainedCalls:
        """All calls, those that were made after the decision by whoever uses `results` among them."""
        extra = tuple(f"{text_of(key)}: {_said(self.results[key])}" for key in self.results if key not in self._made)
        return ExplainedCalls(tuple(self._made.values()), tuple(self._skipped()), extra)

    def _skipped(self) -> Iterator[CallSkipped]:
        if not self._made:
            why = "what is cheap decides the pair" + ("" if self.answer.bindings else ": it does not match")
        elif self.answer.bindings:
            why = "the pair matches without it"
        elif self.answer.undecided:
            why = "its outcome would decide nothing"
        else:
            last = list(self._made.values())[-1]
            why = f"{last.call} is {last.outcome}, and the pair is decided"
        calls = dict.fromkeys(calls_in(self._subscription.where))
        called = {key.operator for key in self._made}
        for call in calls:
            constants = tuple([None if isinstance(a, Variable) else a for a in call.arguments])
            # with values, a call of variables would be among those made
            was_made = call.operator in called if None in constants else CallKey(call.operator, constants) in self._made
            if not was_made:
                text = f"{call.operator}({', '.join(map(show, call.arguments))})"
                yield CallSkipped(shortened(text, _CHARACTERS), why)


def _spent(seconds: float, cost: float) -> str:
    """Seconds, and the cost where one is stated."""
    return f"{seconds * 1e3:.1f} ms" + (f", cost {cost:.4g}" if cost else "")


def text_of(key: CallKey) -> str:
    """A call with its values; an output is `_`."""
    arguments = ", ".join("_" if term is None else show_term(term) for term in key.arguments)
    return shortened(f"{key.operator}({arguments})", _CHARACTERS)


def _said(result: Result) -> str:
    if isinstance(result, OperatorError):
        return shortened(f"unknown: {result.what}", _CHARACTERS)
    if isinstance(result, bool):
        return str(result).lower()
    return f"{len(result)} row{'s' * (len(result) != 1)}" if result else "false"


Within: TypeAlias = Callable[[Where], Where]
"""Puts a group at its place in the whole subscription, after the parts before it."""


class Verdict(enum.StrEnum):
    """What became of a part."""

    HOLDS = "holds"
    FAILS = "fails"
    ABSENT = "absent"  # an OPTIONAL that found nothing
    UNKNOWN = "unknown"  # it depends on operator calls that failed
    NOT_REACHED = "not reached"  # an earlier part failed, or another branch decided


_MARKS = {Verdict.HOLDS: "+", Verdict.FAILS: "-", Verdict.ABSENT: "o", Verdict.UNKNOWN: "?", Verdict.NOT_REACHED: " "}


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of the subscription (as `triplewire.ir.show` writes it), its verdict, why, and its own parts."""

    part: str
    verdict: Verdict
    because: tuple[str, ...] = ()
    parts: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the command line writes it; empty lists are left out."""
        out: dict[str, Any] = {"part": self.part, "verdict": self.verdict.value}
        if self.because:
            out["because"] = list(self.because)
        if self.parts:
            out["parts"] = [part.to_json() for part in self.parts]
        return out

    def reasons(self) -> Iterator[str]:
        """Why it holds, and why its parts do; nothing where it does not."""
        if self.verdict is Verdict.HOLDS:
            yield from self.because
            for part in self.parts:
                yield from part.reasons()

    def lines(self, indent: str = "  ") -> Iterator[str]:
        """Lines of text: a mark and the part, and indented below it the reasons and its own parts."""
        yield f"{indent}{_MARKS[self.verdict]} {self.part}"
        for line in self.because:
            yield f"{indent}    {line}"
        for part in self.parts:
            yield from part.lines(indent + "    ")


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Why `subscription` matches `publication`, or why not. `str()` is for people, `to_json()` for programs.

    `findings` has the parts in the order in which they were asked. For a match it follows `solution`, the first of
    `solutions` (a count; `truncated` says that there are, or may be, more). `unknown` names the operator calls that
    failed and on which the answer depends; `calls` has all calls of operators, and what they cost. `nearest`: of a
    miss, the query nearest to the subscription that does match, where it was asked for and is there.
    """

    subscription: str
    publication: str
    matched: bool
    findings: tuple[Finding, ...]
    solution: Binding
    solutions: int = 0
    truncated: bool = False
    unknown: tuple[str, ...] = ()
    calls: ExplainedCalls = field(default_factory=ExplainedCalls)
    nearest: Nearest | None = None

    @property
    def failing(self) -> Finding | None:
        """The first part that fails; None for a match, and where failed calls leave it undecided."""
        return next((finding for finding in self.findings if finding.verdict is Verdict.FAILS), None)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it matches, as sentences, each once: which triples its patterns match, and what satisfies its conditions.
        None for a miss."""
        if not self.matched:
            return ()
        return tuple(dict.fromkeys(line for finding in self.findings for line in finding.reasons()))

    def to_json(self) -> str:
        """The text of a JSON object, in one line."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes, as an object; terms as in SPARQL 1.1 JSON results."""
        return {
            "publication": self.publication,
            "subscription": self.subscription,
            "matched": self.matched,
            "solution": bindings_to_json((self.solution,))[0] if self.matched else None,
            "solutions": self.solutions,
            "truncated": self.truncated,
            "parts": [finding.to_json() for finding in self.findings],
            "unknown": list(self.unknown),
            "calls": self.calls.to_json(),
            **({"nearest": self.nearest.to_json()} if self.nearest is not None else {}),
        }

    @property
    def undecided(self) -> bool:
        """Is it open whether the pair matches? `unknown` says on which calls that depends."""
        return not self.matched and bool(self.unknown)

    @property
    def _said(self) -> str:
        if self.undecided:
            return "is undecided for"
        return "matches" if self.matched else "does not match"

    def __repr__(self) -> str:
        pair = f"{shortened(self.subscription, 60)!r} {self._said} {shortened(self.publication, 80)!r}"
        because = f": {shortened(self.failing.part, 160)}" if self.failing is not None else ""
        return f"<Explanation {pair}{because}>"

    def _repr_html_(self) -> str:
        """The text of `str()`, in notebooks."""
        return lines_of_text(str(self))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The lines of `str()`. Ids stand in them as they are, with control characters."""
        lines = [f"{self.subscription} {self._said} {self.publication}"]
        if self.solutions > 1:
            lines[0] += f" ({self.solutions}{' or more' if self.truncated else ''} solutions; the first:)"
        for finding in self.findings:
            lines += finding.lines()
        lines += [f"  ? unknown: {line}" for line in self.unknown]
        lines += self.calls.lines()
        return lines if self.nearest is None else [*lines, *self.nearest.lines()]


def explained(
    subscription: Subscription,
    publication: Publication,
    compiler: Compiler,
    made: CallResults,
    *,
    with_nearest: bool = False,
) -> Explanation:
    """The explanation of a pair as an engine means it. `made`: calls of the match before. Those that all have to
    hold come in the engine's order of operators. `with_nearest`: of a miss, look for the nearest query that matches.
    Raises `LimitError`."""
    world, learned = compiler.world, compiler.learned
    known = {MATCH: made, CACHE: world.known(compiler.entailed(publication))}
    try:
        explanation = explain(compiler.meant(subscription), compiler.entailed(publication), world, known, learned)
        if not with_nearest or explanation.matched or explanation.undecided:
            return explanation
        return replace(explanation, nearest=nearest(subscription, publication, compiler, dict(made)))
    except RecursionError:
        what = "the query is nested too deep to be explained"
        raise LimitError(what, source=subscription.id, remedy="lower max_query_depth") from None


def explain(
    subscription: Subscription,
    publication: Publication,
    world: World,
    known: Mapping[str, CallResults] | None = None,
    learned: LearnedCalls | None = None,
) -> Explanation:
    """The explanation of a pair. `known` and `learned`: see `TracedCalls`. Raises `LimitError`."""
    traced = TracedCalls(subscription, publication, world, known, learned)
    answer = traced.answer
    pair = ExplainedPair(subscription, publication, world, traced.results)
    unknown = tuple(dict.fromkeys(map(str, answer.failures)))
    if not answer.bindings:
        findings = _missed(pair, subscription.where, lambda group: group)
        return Explanation(subscription.id, publication.id, False, findings, {}, unknown=unknown, calls=traced.told())
    solution = pair.solutions(subscription.where, 1)[0]
    held = tuple(_held(pair, part, solution) for part in reasons.parts_of(subscription.where))
    shown = {name: term for name, term in solution.items() if not name.startswith(".")}
    ids, count = (subscription.id, publication.id), len(answer.bindings)
    return Explanation(*ids, True, held, shown, count, answer.truncated, unknown, traced.told())


def _held(pair: ExplainedPair, part: Where, solution: Binding) -> Finding:
    """How the part holds under a solution of the whole."""
    because: list[str] = []
    match part:
        case Pattern():
            triple = next(reasons.matching(part, solution, pair.publication.graph), None)
            because = [reasons.triple_text(triple)] if triple else []
        case Filter(condition):
            because = reasons.condition_lines(pair, condition, solution, True)
        case And():
            return Finding(show(part), Verdict.HOLDS, (), _group(pair, part, solution))
        case Or(branches):
            return _held_branch(pair, part, branches, solution)
        case Optional(group):
            if not _contributes(pair, reasons.parts_of(group), solution):
                return Finding(show(part), Verdict.ABSENT)
            return Finding(show(part), Verdict.HOLDS, (), _group(pair, group, solution))
        case Not():
            because = ["there is none"]
        case Minus():
            because = ["no solution of it agrees"]
        case Bind(variable, _):
            value = solution.get(variable.name)
            because = [f"?{variable.name}" + (f" = {reasons.term_text(value)}" if value else " (an error, unbound)")]
        case Values(variables, _):
            terms = {v.name: solution[v.name] for v in variables if v.name in solution}
            because = [f"?{name} = {reasons.term_text(term)}" for name, term in terms.items()]
        case Call():
            because = [reasons.call_line(part, solution, True)]
    return Finding(show(part), Verdict.HOLDS, tuple(because))


def _group(pair: ExplainedPair, group: Where, solution: Binding) -> tuple[Finding, ...]:
    return tuple(_held(pair, part, solution) for part in reasons.parts_of(group))


def _contributes(pair: ExplainedPair, parts: tuple[Where, ...], solution: Binding) -> bool:
    """Do these parts have a solution that the whole solution contains?"""
    return any(extension.items() <= solution.items() for extension in pair.extensions(solution, parts))


def _held_branch(pair: ExplainedPair, part: Or, branches: tuple[Where, ...], solution: Binding) -> Finding:
    """The first branch that gives the solution; those after it need not be asked."""
    findings: list[Finding] = []
    for branch in branches:
        if any(finding.verdict is Verdict.HOLDS for finding in findings):
            findings.append(Finding(show(branch), Verdict.NOT_REACHED))
        elif _contributes(pair, (branch,), solution):
            findings.append(_held(pair, branch, solution))
        else:
            findings.append(Finding(show(branch), Verdict.FAILS))
    return Finding(show(part), Verdict.HOLDS, (), tuple(findings))


def _missed(pair: ExplainedPair, group: Where, within: Within) -> tuple[Finding, ...]:
    """The parts of a group that leaves no solution, up to the one at which the last is lost, and those after it."""
    parts = reasons.cheap_first(reasons.in_order(reasons.parts_of(group)), pair.results)
    partials = pair.solutions(within(And(())))
    findings: list[Finding] = []
    unknown: set[str] = set()  # the failed calls that what was asked so far depends on
    for number, part in enumerate(parts):
        if any(finding.verdict is Verdict.FAILS for finding in findings):
            findings.append(Finding(show(part), Verdict.NOT_REACHED))
            continue
        behind = zip(parts[:number], findings, strict=True)
        before = tuple(earlier for earlier, finding in behind if finding.verdict is Verdict.HOLDS)
        answer = pair.answer(within(And(parts[: number + 1])))
        failures = {failure.what for failure in answer.failures} if answer.undecided else set()
        if answer.bindings or (failures and failures <= unknown):
            findings.append(Finding(show(part), Verdict.HOLDS))
            partials = answer.bindings or pair.solutions(within(And((*before, part)))) or partials
            continue
        failing = _failed(pair, part, partials, _behind(before, within))
        findings.append(replace(failing, verdict=Verdict.UNKNOWN) if failures else failing)
        unknown |= failures
    if all(finding.verdict is Verdict.HOLDS for finding in findings):
        because = ("each part holds with those before it, but not all at once",)
        findings.append(Finding(show(group), Verdict.FAILS, because))
    return tuple(findings)


def _behind(before: tuple[Where, ...], within: Within) -> Within:
    return lambda part: within(And((*before, part)))


def _failed(pair: ExplainedPair, part: Where, partials: tuple[Binding, ...], within: Within) -> Finding:
    """Why the part leaves no solution; `within` puts another part in its place."""
    match part:
        case And():
            return Finding(show(part), Verdict.FAILS, (), _missed(pair, part, within))
        case Or(branches):
            findings = (_failed(pair, branch, partials, within) for branch in branches)
            return Finding(show(part), Verdict.FAILS, (), tuple(findings))
    return Finding(show(part), Verdict.FAILS, tuple(reasons.why_not(pair, part, partials)))
