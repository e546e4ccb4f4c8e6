"""A broker that is killed again and again: `python -m broker.killed URL FOLDER SEED KILLS [POINT...] [--weak]`.

A process that has loaded everything forks one broker after the other. Each publishes from where the one before had its
last answer, as clients do that repeat what was not answered, and is killed at a random moment, or at each point of
`triplewire.crash`, so often, that is reached for a random time. One more is left alive until all is matched; how many
units each lane has published is printed. `--weak`: brokers write without transactions.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from broker.history import subscribe, unit
from triplewire import crash
from triplewire.broker.broker import Broker
from triplewire.broker.subscriptions.quarantine import Limits
from triplewire.store import database as store
from triplewire.store.database import Database
from triplewire.store.tables import publications

SECRET = b"s" * 32
TRUSTED = Limits(trusted=frozenset({"ann"}))  # one of her subscriptions matches everything
LANES = 2
LONGEST = 0.12  # seconds that a broker lives
ENOUGH = 300.0  # seconds within which a point is reached
MORE = 10  # units of a lane after the last kill


def answered(folder: Path, lane: int) -> int:
    """How many units of a lane were answered."""
    file = folder / f"lane-{lane}"
    return file.stat().st_size if file.exists() else 0


def publish(broker: Broker, folder: Path, seed: int, lane: int, until: int | None) -> None:
    """Publish the units of a lane that were not answered yet, up to a number or for ever."""
    number = answered(folder, lane)
    with (folder / f"lane-{lane}").open("ab", buffering=0) as answers:
        while until is None or number < until:
            broker.publish(unit(seed, lane, number))
            answers.write(b".")
            number += 1
            time.sleep(0.001)


def without_transactions(database: Database) -> None:
    """Have each statement committed by itself."""
    store.MOST_AT_ONCE = 1
    if database.is_sqlite:
        commit = lambda connection, *_: connection.connection.driver_connection.commit()  # noqa: E731
        sa.event.listen(database.engine, "after_cursor_execute", commit)
    else:
        database.engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")


def live(url: str, folder: Path, seed: int, until: int | None, is_weak: bool) -> None:
    """Be a broker: for ever, or until all units up to this number are matched."""
    with Broker.open(url, SECRET, limits=TRUSTED) as broker:
        if is_weak:
            without_transactions(broker.database)
        lanes = [
            threading.Thread(target=publish, args=(broker, folder, seed, lane, until), daemon=True)
            for lane in range(LANES)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        # a publication during which two brokers were killed is refused; somebody looks at it, and has it matched again,
        # unless a later content of the same id is there
        later = publications.alias()
        is_old = sa.exists().where(later.c.id == publications.c.id, later.c.number > publications.c.number)
        again = publications.update().where(publications.c.state == "refused", ~is_old)
        again = again.values(state="accepted", tries=0)
        waiting = sa.select(publications.c.number).where(publications.c.state == "accepted").limit(1)
        for attempt in range(2):
            left: object = True
            while left:
                with broker.database.reading() as connection:
                    left = connection.execute(waiting).first()
                time.sleep(0.01)
            if attempt == 0:
                broker.database.write(lambda connection: connection.execute(again))


def forked(work: Callable[[], None], point: str) -> int:
    """The process id of a child that does this, and is killed where it comes to a point, if one is given."""
    child = os.fork()
    if child:
        return child
    try:
        os.environ["TRIPLEWIRE_CRASH_AT"] = point
        importlib.reload(crash)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def ended(child: int, seconds: float) -> int:
    """How a broker ended: -9 where it was killed. One that has not after so many seconds is killed."""
    until = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return 0
        time.sleep(0.002)


def main(url: str, folder: Path, seed: int, kills: int, points: Sequence[str], is_weak: bool) -> None:
    """Kill so many brokers, at each of the points if there are any, and leave one alive."""
    chance = random.Random(seed)
    with Broker.open(f"sqlite:///{folder / 'loads-everything.db'}", SECRET) as broker:
        subscribe(broker)
        taken = broker.publish(unit(seed, 0, 0))
        broker.wait([one.number for one in taken], ENOUGH)
    for _ in range(kills):
        for point in points or [""]:
            at = point and f"{point}:{chance.randint(1, 5)}"
            child = forked(partial(live, url, folder, seed, None, is_weak), at)
            if not point:
                time.sleep(chance.uniform(0, LONGEST) * (10 if chance.random() < 0.02 else 1))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            how = ended(child, ENOUGH)
            assert how == -signal.SIGKILL, f"a broker was not killed {at}: {how}"
    until = max(answered(folder, lane) for lane in range(LANES)) + MORE
    last = forked(partial(live, url, folder, seed, until, False), "")
    assert os.waitstatus_to_exitcode(os.waitpid(last, 0)[1]) == 0
    print(until)


if __name__ == "__main__":
    given, weak = [each for each in sys.argv[1:] if each != "--weak"], "--weak" in sys.argv
    main(given[0], Path(given[1]), int(given[2]), int(given[3]), given[4:], weak)
