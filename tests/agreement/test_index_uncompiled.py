"""The kernels as plain Python, in a process of its own: same answers, and no array is read out of bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agreement.standing import LANGUAGES

PAIRS = 1_000  # of each language
SCRIPT = """
import random, sys
from agreement.compared import WAYS, Tally, difference, report
from agreement.publications import TAXONOMY, Scene, operators
from agreement.standing import LANGUAGES, standing
from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World
import numba

assert numba.config.DISABLE_JIT
seed, pairs = sys.argv[1], int(sys.argv[2])
chance = random.Random(f"{seed} uncompiled")
for language in LANGUAGES:
    tally, number = Tally(), 0
    while tally.pairs < pairs:
        scene = Scene(chance)
        world = World(TAXONOMY, operators(), Settings(max_bindings=chance.choice((2, 20)), max_steps=20_000))
        some = [standing(chance, language, scene.vocabulary) for _ in range(16)]
        publications = [scene.publication(place, 7) for place in range(10)]
        way = WAYS[number % len(WAYS)]
        if difference(some, publications, world, way, tally) is not None:
            sys.exit(report(some, publications, world, way))
        number += 1
    print(language, tally.pairs, tally.matches)
"""


def uncompiled(*arguments: str, **environment: str) -> str:
    """What Python prints with these arguments, and kernels that are not compiled."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout


def test_uncompiled() -> None:
    """Warnings are errors, so that an overflow that compiled code would hide is seen."""
    tests = Path(__file__).resolve().parents[1]
    seed = os.environ.get("TRIPLEWIRE_TEST_SEED") or "1"
    told = uncompiled("-W", "error::RuntimeWarning", "-c", SCRIPT, seed, str(PAIRS), PYTHONPATH=str(tests))
    counts = [line.split() for line in told.splitlines()]
    assert {language for language, *_ in counts} == {*LANGUAGES}
    assert all(int(pairs) >= PAIRS and int(matches) > 0 for _, pairs, matches in counts), told


COUNTS = """
import json, sys
from triplewire import Engine, read
engine = Engine()
engine.subscribe('SELECT * { ?item rss:title ?title ; dc:subject ?topic FILTER (?title != ?topic) }', id="joined")
publications = list(read(sys.argv[1]))
for given in (publications, publications[:1]):  # one is read by a kernel of its own
    stats = engine.match(given).stats
    assert stats.verified
    print(json.dumps(stats.to_json(stats.seconds)))
"""


def test_counts_are_plain_numbers() -> None:
    """Those of kernels that run as plain Python, too: they are written as JSON."""
    examples = Path(__file__).resolve().parents[2] / "examples/publications/feeds"
    uncompiled("-c", COUNTS, str(examples), TRIPLEWIRE_TIER="compiled")


VERTICES = """
from triplewire import IRI, Engine, Publication, Triple
names = [f"?{end}{number}" for end in "ab" for number in range(17)]
patterns = [f"{a} <urn:p> {b}" for a, b in zip(names[:17], names[17:])]
names += names[:1] * 11
patterns += [" ".join(names[at : at + 3]) for at in range(0, 45, 3)]
assert len(patterns) == 32
engine = Engine()
engine.subscribe(f"SELECT * {{ {' . '.join(patterns)} }}", id="a")
(match,) = engine.match(Publication("p", (Triple(IRI("urn:p"), IRI("urn:p"), IRI("urn:p")),)))
assert [set(binding) for binding in match.bindings] == [{name[1:] for name in names}]
"""


def test_more_variables_than_a_tree_has() -> None:
    """A component that is seen to be no tree when more of its variables have been numbered than a tree of 32 patterns
    has, as they are predicates as well."""
    uncompiled("-c", VERTICES, TRIPLEWIRE_TIER="compiled")
