"""Several threads match on one engine while another one subscribes and unsubscribes.

Each answer is right for what was registered when its call began.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from agreement.compared import compiled, expected_of, frozen
from agreement.publications import TAXONOMY, Scene, operators
from agreement.standing import LANGUAGES, standing
from amounts import usually
from triplewire import Engine
from triplewire.config import Settings
from triplewire.engine import MatchResult
from triplewire.ir.evaluation.evaluate import Answer, World
from triplewire.ir.subscription import Subscription

SEED = int(os.environ.get("TRIPLEWIRE_TEST_SEED") or 1)
THREADS, ROUNDS = 4, 3
STANDING, PASSING, PUBLICATIONS = 80, 80, 40


def check(result: MatchResult, standing_ids: set[str], answers: Mapping[tuple[str, str], Answer]) -> int:
    """Matches of the subscriptions that stay are all there, those of others are right; returns how many there are."""
    found = set()
    for match in result:
        pair = match.publication, match.subscription
        answer = answers[pair]
        assert match.truncated == answer.truncated
        assert len(match.bindings) == len(answer.bindings)
        if not match.truncated:
            assert set(map(frozen, match.bindings)) == set(map(frozen, answer.bindings))
        found.add(pair)
    assert len(found) == len(result)
    assert {pair for pair in answers if pair[1] in standing_ids} <= found
    return len(found)


def change(
    engine: Engine, some: list[Subscription], chance: random.Random, calls: threading.Semaphore, stop: threading.Event
) -> int:
    """Subscribe or unsubscribe once for each call of the other threads as it begins, until told to stop; returns how
    often. Without that bound, the work of the test would be a matter of how threads happen to be scheduled."""
    registered: list[Subscription] = []
    changes = 0
    while not stop.is_set():
        if not calls.acquire(timeout=0.1):
            continue
        waiting = [one for one in some if one not in registered]
        if waiting and (not registered or chance.random() < 0.55):
            one = chance.choice(waiting)
            engine.subscribe(one)
            registered.append(one)
        else:
            assert engine.unsubscribe(registered.pop(chance.randrange(len(registered))).id)
        changes += 1
    assert {one.id for one in registered} < {one.id for one in engine.subscriptions}
    return changes


@pytest.mark.parametrize(("matcher", "part"), [("trie", 0), ("everything", 0), ("trie", 1)][: usually(2, 3)])
def test_threads(matcher: str, part: int) -> None:
    chance = random.Random(f"{SEED} threads {part}")
    scene = Scene(chance)
    world = World(TAXONOMY, operators(), Settings(max_bindings=20, max_steps=20_000, merge_subscriptions=16))
    texts = [standing(chance, chance.choice(LANGUAGES[:3]), scene.vocabulary) for _ in range(STANDING + PASSING)]
    subscriptions = list(compiled(texts, world).values())
    publications = [scene.publication(number) for number in range(PUBLICATIONS)]
    answers, failed, limited = expected_of({one.id: one for one in subscriptions}, publications, world)
    over = {id_ for _, id_ in failed | limited}
    subscriptions = [one for one in subscriptions if one.id not in over]
    answers = {pair: answer for pair, answer in answers.items() if pair[1] not in over}
    stay, pass_ = subscriptions[:STANDING], subscriptions[STANDING:]
    engine = Engine(matcher=matcher, taxonomy=TAXONOMY, operators=operators(), settings=world.settings)
    for one in stay:
        engine.subscribe(one)
    ids = {one.id for one in stay}

    def match(number: int) -> int:
        count = 0
        for _ in range(ROUNDS):
            chunks = [publications] if number % 2 == 0 else [[one] for one in publications]
            for chunk in chunks:
                calls.release()
                result = engine.match(chunk)
                assert not result.refusals
                asked = {one.id for one in chunk}
                count += check(result, ids, {pair: answer for pair, answer in answers.items() if pair[0] in asked})
        return count

    calls, stop = threading.Semaphore(0), threading.Event()
    with ThreadPoolExecutor(THREADS + 1) as pool:
        changing = pool.submit(change, engine, pass_, chance, calls, stop)
        try:
            counts = list(pool.map(match, range(THREADS)))
        finally:
            stop.set()
        changes = changing.result()
    least = sum(pair[1] in ids for pair in answers)
    assert min(counts) >= ROUNDS * least > 0
    assert changes > 20
    engine.settle()
    left = {one.id for one in engine.subscriptions}
    assert check(engine.match(publications), left, answers) == sum(pair[1] in left for pair in answers)
