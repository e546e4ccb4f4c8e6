"""kill -9: nothing that was accepted is lost, and nothing is told twice.

`history.wrong` says what of the promises was not kept; it is tested on histories that are wrong, and on a broker that
writes without transactions.
"""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from pathlib import Path

from amounts import usually
from broker import history, killed
from broker.history import History
from broker.serving import on_sqlite_alone
from triplewire.broker.broker import Broker
from triplewire.store.database import Database

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src" / "triplewire" / "broker"
ROOMS = (file for file in SOURCE.rglob("*.py") if file.parent.name != "network")  # which `test_killed_network` kills
POINTS = sorted({name for file in ROOMS for name in re.findall(r'crash\.point\("(.+?)"\)', file.read_text())})
SEED = 61


def after_kills(url: str, folder: Path, seed: int, kills: int, *how: str) -> History:
    """The history of a broker that was killed so often."""
    with Broker.open(url, killed.SECRET) as broker:
        history.subscribe(broker)
    command = [sys.executable, "-m", "broker.killed", url, str(folder), str(seed), str(kills), *how]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "TRIPLEWIRE_TIER": "interpreted"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3_000, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    published = [
        publication
        for lane in range(killed.LANES)
        for number in range(int(done.stdout))
        for publication in history.unit(seed, lane, number)
    ]
    with Database.open(url) as database:
        return history.read(database, published)


def test_killed_at_random(database_url: str, tmp_path: Path) -> None:
    found = after_kills(database_url, tmp_path, SEED, usually(35, 2_000))
    assert history.wrong(found) == []
    last = {one.id: one.content_hash for one in found.published}
    assert found.refused.isdisjoint(last.values()), "only what a later content has replaced stays refused"


def test_killed_at_each_point(database_url: str, tmp_path: Path) -> None:
    found = after_kills(database_url, tmp_path, SEED, usually(2, 20), *POINTS)
    assert history.wrong(found) == []


def test_the_points_are_there() -> None:
    assert {"publish.received", "publish.written", "publish.committed", "matching.begun", "matching.found"} <= {*POINTS}
    assert {"events.inserted", "events.written", "events.committed"} <= {*POINTS}


# --- what would be found ---------------------------------------------------------------------------------------------


@on_sqlite_alone
def test_a_broker_that_writes_without_transactions_is_found_out(database_url: str, tmp_path: Path) -> None:
    assert history.wrong(after_kills(database_url, tmp_path, SEED, 3, "events.inserted", "--weak"))


def lost(found: History) -> None:
    """The last event was not told."""
    found.told["all"].pop()


def lost_with_its_delivery(found: History) -> None:
    """The last event was not told anywhere."""
    number = found.told["all"].pop()[0]
    del found.owed[number, "all"]


def twice(found: History) -> None:
    """An event was told again, as a new one."""
    number, sequence, *rest = found.told["value-0"][-1]
    found.told["value-0"].append((number + 10**6, sequence + 1, *rest))


def same_number(found: History) -> None:
    """Two subscriptions have an event of the same number."""
    number = found.told["value-0"][0][0]
    found.told["value-2"][0] = (number, *found.told["value-2"][0][1:])


def gap(found: History) -> None:
    """A sequence leaves out a number."""
    number, sequence, *rest = found.told["value-0"][-1]
    found.told["value-0"][-1] = (number, sequence + 1, *rest)


def disorder(found: History) -> None:
    """Two events change places."""
    (one, *first), (two, *second) = found.told["value-0"][:2]
    found.told["value-0"][:2] = [(two, *first), (one, *second)]


def other_type(found: History) -> None:
    """Something new is told as a change."""
    place = next(place for place, event in enumerate(found.told["all"]) if event[2] == "matched")
    found.told["all"][place] = (*found.told["all"][place][:2], "changed", *found.told["all"][place][3:])


def of_nobody(found: History) -> None:
    """A subscription is told of what it does not match."""
    found.told["none"].append((10**6, 1, "matched", *found.told["all"][0][3:]))


def not_delivered(found: History) -> None:
    """An event has no delivery."""
    del found.owed[next(key for key in found.owed if key[1] == "many")]


def delivered_twice(found: History) -> None:
    """An event has two deliveries."""
    found.owed[next(iter(found.owed))] += 1


def vanished(found: History) -> None:
    """A delivery is in no state that there is."""
    found.states.add("forgotten")


DAMAGES = (
    lost, lost_with_its_delivery, twice, same_number, gap, disorder, other_type, of_nobody, not_delivered,
    delivered_twice, vanished,
)  # fmt: skip


@on_sqlite_alone
def test_each_fault_is_found(database_url: str, tmp_path: Path) -> None:
    right = after_kills(database_url, tmp_path, SEED, 1)
    assert history.wrong(right) == []
    assert {kind for events in right.told.values() for _, _, kind, *_ in events} == {"matched", "changed", "unmatched"}
    for damage in DAMAGES:
        damaged = copy.deepcopy(right)
        damage(damaged)
        assert history.wrong(damaged), damage.__name__
