"""Containment is sound: in generated cases of all languages, what is contained never matches alone.

The look-up of containers comes upon those that a comparison of all pairs has.
"""

from __future__ import annotations

import os
import random

import pytest

from agreement.publications import TAXONOMY, Scene, operators
from agreement.standing import LANGUAGES, standing
from amounts import COMPARED
from triplewire.config import Settings
from triplewire.errors import LimitError, SubscriptionError, TriplewireError
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.partition.containment import Containers, contains, form_of

SEED = int(os.environ.get("TRIPLEWIRE_TEST_SEED") or 1)
SCALE = COMPARED / 20_000
WORLD = World(TAXONOMY, operators(), Settings(max_steps=2_000))


def generated(chance: random.Random, scene: Scene, count: int) -> list[Subscription]:
    """Subscriptions that are texts of their language."""
    out: list[Subscription] = []
    while len(out) < count:
        one = standing(chance, chance.choice(LANGUAGES[:3]), scene.vocabulary, rich=0.1)
        try:
            out.append(parse(one.text, one.language, id=str(len(out)), operators=WORLD.operators))
        except (SubscriptionError, TriplewireError):
            continue
    return out


def matches(subscription: Subscription, publication: object) -> bool | None:
    """Does it match? None where a limit is passed."""
    try:
        return bool(evaluate(subscription, publication, WORLD).bindings)  # type: ignore[arg-type]
    except LimitError:
        return None


@pytest.mark.slow
def test_what_is_contained_never_matches_alone() -> None:
    chance = random.Random(f"{SEED} containment")
    contained = told = inside = looked_up = 0
    for _ in range(max(1, round(4 * SCALE))):
        scene = Scene(chance)
        subscriptions = generated(chance, scene, 100)
        forms = [form_of(one, WORLD) for one in subscriptions]
        pairs = [
            (a, b)
            for a, wide in enumerate(forms)
            for b, narrow in enumerate(forms)
            if a != b and contains(wide, narrow, TAXONOMY)
        ]
        contained += len(pairs)
        containers = Containers(TAXONOMY)
        for form in forms:
            containers.add(form)
        for number, form in enumerate(forms):
            below = {str(b) for a, b in pairs if a == number}
            assert set(containers.contained_in(form)) == below
            above, root = {str(a) for a, b in pairs if b == number}, containers.container_of(form)
            assert root is None or root in above
            inside, looked_up = inside + bool(above), looked_up + (root is not None)
        publications = [scene.publication(place) for place in range(25)]
        involved = {number for pair in pairs for number in pair}
        answers = {number: [matches(subscriptions[number], one) for one in publications] for number in involved}
        for a, b in pairs:
            for number, (wide, narrow) in enumerate(zip(answers[a], answers[b], strict=True)):
                told += bool(narrow)
                assert not (narrow and wide is False), (
                    f"{subscriptions[a].text}\n does not contain\n{subscriptions[b].text}\n{publications[number]}"
                )
    assert contained > 50 * SCALE
    assert looked_up >= 0.95 * inside, "what contains a subscription is come upon by the look-up"
    assert told > 100 * SCALE
