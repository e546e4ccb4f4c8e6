"""An index beside the reference meaning, pair by pair. A difference is made small and shown.

Where the reference passes `max_steps`, the matcher may refuse the pair, or know the answer, as it may need fewer steps.
Then it is compared with what the reference says where it may take more, and what is missing must be said to be cut. How
many pairs are exempt from the comparison, and how many of them were checked in this way, is counted. Where no more than
`LOW_STEPS` are allowed the matcher may need more than the reference, and refuse the pair or cut its bindings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from agreement.standing import Standing
from solutions import is_solution
from triplewire import Engine
from triplewire.errors import LimitError, TriplewireError
from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.ir.nodes import Call
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.model.match import Match, first_bindings
from triplewire.model.publication import Publication
from triplewire.model.terms import Term

LOW_STEPS = 1_000
MORE_STEPS = 50  # times `max_steps` that the reference may take where it passes them
MOST_ASKED = 40  # pairs of an engine that it is asked for in this way


@dataclass(frozen=True)
class Way:
    """How publications are fed to which matcher. "segments": as objects, to an engine of several segments."""

    feed: str
    matcher: str = "trie"


WAYS = tuple(map(Way, ("publications", "one by one", "n-quads", "segments")))


@dataclass
class Tally:
    """What was compared: a test that compares nothing must not pass."""

    pairs: int = 0
    compiled: int = 0
    matches: int = 0
    truncated: int = 0
    limited: int = 0  # pairs for which the reference passes `max_steps`
    asked: int = 0  # of these, those that it was asked for with more steps
    known: int = 0  # of these, those for which it had the whole answer
    beyond: int = 0  # of these, those that the matcher said to match
    cut: int = 0  # matches of which the reference has all bindings and the matcher says that it has fewer
    refused: int = 0  # pairs that the matcher alone refuses, for `max_steps`
    failed: int = 0
    by_language: dict[str, int] = field(default_factory=dict)  # matches


def compiled(some: Sequence[Standing], world: World) -> dict[str, Subscription]:
    """By ids that sort as they stand; what is refused is left out."""
    found = {}
    for number, one in enumerate(some):
        with suppress(TriplewireError):
            id_ = f"s{number:04}"
            found[id_] = parse(one.text, one.language, id=id_, operators=world.operators, settings=world.settings)
    return found


def engine_with(subscriptions: Mapping[str, Subscription], world: World, way: Way) -> Engine:
    """An engine with all of them. Fed in "segments": in several, some subscriptions removed and put back."""
    engine = Engine(matcher=way.matcher, taxonomy=world.taxonomy, operators=world.operators, settings=world.settings)
    for number, one in enumerate(subscriptions.values()):
        engine.subscribe(one)
        if way.feed == "segments" and number % 7 == 3:
            engine.unsubscribe(one.id)
            engine.subscribe(one)
        if way.feed == "segments" and number % 40 == 20:
            engine.settle()
    if way.feed != "segments":
        engine.settle()
    return engine


def found_by(
    engine: Engine, publications: Sequence[Publication], way: Way
) -> tuple[list[Match], set[tuple[str, str]], set[tuple[str, str]], int]:
    """The matches in the order given, the refused pairs, those of them for `max_steps`, and how many matches were said
    to be truncated."""
    if way.feed == "n-quads":
        data = "".join(
            f"{t.subject} {t.predicate} {t.object} <{one.id}> .\n" for one in publications for t in one.triples
        )
        results = list(engine.match_files(data.encode()))
    elif way.feed == "one by one":
        results = [engine.match(one) for one in publications]
    else:
        results = [engine.match(publications)]
    refused, over = set(), set()
    for refusal in (refusal for result in results for refusal in result.refusals):
        publication, subscription = refusal.subject.split()
        refused.add((publication, subscription))
        if "steps" in refusal.reason:
            over.add((publication, subscription))
    matches = [match for result in results for match in result]
    for match in matches:  # listing its bindings may find that they are cut
        assert match.bindings is not None
    return matches, refused, over, sum(result.truncated for result in results)


def expected_of(
    subscriptions: Mapping[str, Subscription], publications: Sequence[Publication], world: World
) -> tuple[dict[tuple[str, str], Answer], set[tuple[str, str]], set[tuple[str, str]]]:
    """The matches, the pairs that failed calls leave undecided, and those past a limit."""
    answers, failed, limited = {}, set(), set()
    for publication in publications:
        for id_, subscription in subscriptions.items():
            try:
                answer = evaluate(subscription, publication, world)
            except LimitError:
                limited.add((publication.id, id_))
                continue
            if answer.bindings:
                kept = first_bindings(answer.bindings, world.settings.max_binding_bytes)
                cut = answer.truncated or len(kept) < len(answer.bindings)
                answers[publication.id, id_] = replace(answer, bindings=kept, truncated=cut)
            if answer.undecided:
                failed.add((publication.id, id_))
    return answers, failed, limited


def difference(
    some: Sequence[Standing], publications: Sequence[Publication], world: World, way: Way, tally: Tally
) -> str | None:
    """The first thing in which the matcher departs from the reference, in words."""
    subscriptions = compiled(some, world)
    if way.feed == "n-quads":
        publications = [one for one in publications if one.triples]
    engine = engine_with(subscriptions, world, way)
    answers, failed, limited = expected_of(subscriptions, publications, world)
    tally.pairs += len(publications) * len(subscriptions)
    tally.compiled += len(subscriptions)
    tally.matches += len(answers)
    tally.limited += len(limited)
    tally.failed += len(failed)
    for _, id_ in answers:
        language = subscriptions[id_].language
        tally.by_language[language] = tally.by_language.get(language, 0) + 1
    try:
        matches, refused, over, truncated = found_by(engine, publications, way)
    except Exception as error:  # whatever it is, it is wrong
        return f"{type(error).__name__}: {error}"
    tally.truncated += truncated
    if world.settings.max_steps <= LOW_STEPS:
        tally.refused += len(over - limited)
        limited |= over
        answers = {pair: answer for pair, answer in answers.items() if pair not in over}
    pairs = [(match.publication, match.subscription) for match in matches]
    order = {one.id: number for number, one in enumerate(publications)}
    if pairs != sorted(dict.fromkeys(pairs), key=lambda pair: (order[pair[0]], pair[1])):
        return f"the matches are not in order, or not once each: {pairs[:5]}"
    if truncated != sum(match.truncated for match in matches):
        return "the number of truncated matches is wrong"
    if said := _beyond(subscriptions, publications, world, sorted(limited - over), matches, tally):
        return said
    any_kept = {id_ for id_, one in subscriptions.items() if any(isinstance(part, Call) for part in walk(one.where))}
    if said := _first_difference(matches, answers, limited, world, any_kept, tally):
        return said
    if said := _no_solutions(matches, answers, subscriptions, publications, world):
        return said
    if wrong := (refused ^ failed) - limited:
        pair = min(wrong)
        return f"{pair}: {'refused' if pair in refused else 'a failed call is not reported'}"
    return None


def _beyond(
    subscriptions: Mapping[str, Subscription],
    publications: Sequence[Publication],
    world: World,
    limited: Sequence[tuple[str, str]],
    matches: Sequence[Match],
    tally: Tally,
) -> str | None:
    """What is wrong with pairs that the reference could not decide within `max_steps`, and the matcher did."""
    got = {(match.publication, match.subscription): match for match in matches}
    by_id = {one.id: one for one in publications}
    steps = MORE_STEPS * world.settings.max_steps
    generous = replace(world, settings=replace(world.settings, max_steps=steps, max_bindings=10_000))
    for pair in limited[:MOST_ASKED]:
        tally.asked += 1
        try:
            whole = evaluate(subscriptions[pair[1]], by_id[pair[0]], generous)
        except LimitError:
            continue
        if whole.truncated or whole.undecided:
            continue
        tally.known += 1
        match = got.get(pair)
        if (match is not None) != bool(whole.bindings):
            return f"{pair}: {'too many' if match else 'missing'}: {shown(whole.bindings)}"
        if match is not None:
            tally.beyond += 1
            if said := _wrong_part(match, whole.bindings):
                return f"{pair}: {said}"
    return None


def _wrong_part(match: Match, whole: Sequence[Mapping[str, Term]]) -> str | None:
    """What is wrong with a match that may have a part of all bindings, if it says so."""
    rows, every = list(map(frozen, match.bindings)), list(map(frozen, whole))
    if not match.truncated and rows != every:
        return f"bindings {shown(match.bindings)} without a word that they are cut, of {shown(whole)}"
    if rows != [row for row in every if row in set(rows)]:
        return f"bindings {shown(match.bindings)} are not in the order of {shown(whole)}"
    return None


def _first_difference(
    matches: Sequence[Match],
    answers: Mapping[tuple[str, str], Answer],
    limited: set[tuple[str, str]],
    world: World,
    any_kept: set[str],
    tally: Tally,
) -> str | None:
    """`any_kept`: their operators may answer in the order in which triples are stated, so any bindings may be cut."""
    got = {(match.publication, match.subscription): match for match in matches}
    if missing := [pair for pair in answers if pair not in got]:
        return f"missing: {missing[0]}, which has {shown(answers[missing[0]].bindings)}"
    for pair, match in got.items():
        if pair in limited:
            continue
        if pair not in answers:
            return f"too many: {pair} with {shown(match.bindings)}"
        answer = answers[pair]
        if world.settings.max_steps <= LOW_STEPS and match.truncated and not answer.truncated:
            tally.cut += 1  # finding all bindings may take more steps than finding one
            if said := _wrong_part(match, answer.bindings):
                return f"{pair}: {said}"
            continue
        if match.truncated != answer.truncated:
            return f"{pair}: truncated should be {answer.truncated}"
        mine, theirs = list(map(frozen, match.bindings)), list(map(frozen, answer.bindings))
        free = match.truncated and (pair[1] in any_kept or world.settings.max_steps <= LOW_STEPS)
        wrong = len(mine) != len(theirs) and len(theirs) == world.settings.most_bindings and not free
        if len(set(mine)) != len(mine) or wrong or (mine != theirs and not match.truncated):
            return f"{pair}: bindings {shown(match.bindings)}, should be {shown(answer.bindings)}"
    return None


def _no_solutions(
    matches: Sequence[Match],
    answers: Mapping[tuple[str, str], Answer],
    subscriptions: Mapping[str, Subscription],
    publications: Sequence[Publication],
    world: World,
) -> str | None:
    """A row of a truncated match that the reference does not keep, and that is none of its solutions either. Where
    operators are called or steps are few, the reference itself may not come to it."""
    by_id = {one.id: one for one in publications}
    for match in matches if world.settings.max_steps > LOW_STEPS else ():
        pair = match.publication, match.subscription
        kept = [dict(binding) for binding in answers[pair].bindings] if pair in answers else []
        others = [row for row in match.bindings if dict(row) not in kept] if match.truncated and kept else []
        subscription = subscriptions[match.subscription]
        if any(isinstance(part, Call) for part in walk(subscription.where)):
            continue
        for row in others:
            with suppress(LimitError):
                if not is_solution(row, subscription, by_id[match.publication], world):
                    return f"{pair}: {shown([row])} is no solution"
    return None


def frozen(binding: Mapping[str, Term]) -> frozenset[tuple[str, Term]]:
    return frozenset(binding.items())


def shown(bindings: Sequence[Mapping[str, Term]]) -> str:
    """Bindings in N-Triples notation."""
    rows = sorted(" ".join(f"?{name}={term}" for name, term in sorted(row.items())) for row in bindings)
    return f"{len(rows)} bindings ({'; '.join(rows[:6])})"


def compare(
    some: Sequence[Standing], publications: Sequence[Publication], world: World, way: Way, tally: Tally
) -> None:
    """Fails, with a small case, where the matcher differs from the reference."""
    if difference(some, publications, world, way, tally) is not None:
        pytest.fail(report(some, publications, world, way), pytrace=False)


def report(some: Sequence[Standing], publications: Sequence[Publication], world: World, way: Way) -> str:
    """The difference in as few subscriptions, elements and triples as plain deletion finds."""
    some, publications = smallest(some, publications, world, way)
    texts = "\n".join(f"[{one.language}] {one.text}" for one in some)
    data = "\n".join(f"{one.id}:\n" + "\n".join(map(str, one.triples)) for one in publications)
    limits = world.settings
    settings = f"max_bindings={limits.max_bindings}, max_branches={limits.max_branches}, max_steps={limits.max_steps}, "
    settings += f"max_binding_bytes={limits.max_binding_bytes}"
    return f"\n{texts}\n{data}\n{settings}, {way}\n{difference(some, publications, world, way, Tally())}"


def smallest(
    some: Sequence[Standing], publications: Sequence[Publication], world: World, way: Way, tries: int = 600
) -> tuple[Sequence[Standing], Sequence[Publication]]:
    """A case that still differs. First whole halves go, then single ones, then what is in them."""
    shrunk = True
    while shrunk and tries > 0:
        shrunk = False
        for less in _fewer(some, publications):
            tries -= 1
            with suppress(TriplewireError):
                if difference(*less, world, way, Tally()) is not None:
                    some, publications = less
                    shrunk = True
                    break
            if tries <= 0:
                break
    return some, publications


def _fewer(
    some: Sequence[Standing], publications: Sequence[Publication]
) -> Iterator[tuple[Sequence[Standing], Sequence[Publication]]]:
    for size in (len(some) // 2, len(some) // 4, 1):
        if 0 < size < len(some):
            for at in range(0, len(some), size):
                yield [*some[:at], *some[at + size :]], publications
    for size in (len(publications) // 2, len(publications) // 4, 1):
        if 0 < size < len(publications):
            for at in range(0, len(publications), size):
                yield some, [*publications[:at], *publications[at + size :]]
    for at, one in enumerate(some):
        for smaller in one.smaller():
            yield [*some[:at], smaller, *some[at + 1 :]], publications
    for at, whole in enumerate(publications):
        for place in range(len(whole.triples)):
            less = replace(whole, triples=whole.triples[:place] + whole.triples[place + 1 :])
            yield some, [*publications[:at], less, *publications[at + 1 :]]
