"""A provider and a repository that are killed again and again:

    python -m metadata.killed_metadata STORE CACHE SEED KILLS

A process that has loaded everything forks them. It applies the batches of a generated history to the provider, each
until it is answered; meanwhile both are killed at points of `triplewire.crash`, that are reached for a random time, and
at random moments, and started again. In the end the repository has to cache what plain evaluation says, and the
provider to have applied each batch once: what is wrong is printed.
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
from collections.abc import Callable, Iterator, Sequence

import uvicorn

from metadata.metadata_serving import SETTINGS, TOKEN
from metadata.provider_histories import RULES, SCHEMA, Expected, changes
from pipeline.connect.servers import free_port
from triplewire import crash
from triplewire.errors import TriplewireError
from triplewire.metadata.backbone import Writing
from triplewire.metadata.follow import Follower
from triplewire.metadata.provider import Provider
from triplewire.metadata.remote import RemoteProvider
from triplewire.metadata.repository import Repository
from triplewire.service.metadata_doors import metadata_service

POINTS = {
    "provider": ("provider.applied", "provider.written", "provider.committed"),
    "repository": ("repository.received", "repository.committed", "repository.restored"),
}
OWN = [RULES[id] for id in ("all", "fast", "path", "both", "either", "absent")]
LONGEST = 0.5  # seconds that a process lives, where no point ends it
ENOUGH = 120.0  # seconds for a batch to be answered, and for the repository to come up


def provide(store: str, port: int) -> None:
    """Be a provider until a signal."""
    with Provider.open(store) as provider:
        uvicorn.run(metadata_service(Writing(provider), SETTINGS), port=port, log_level="critical")


def follow(cache: str, port: int) -> None:
    """Be a repository until a signal."""
    with Repository.open(cache, "north") as repository, RemoteProvider(f"http://127.0.0.1:{port}", TOKEN) as provider:
        Follower(repository, provider, OWN).run(threading.Event())


class Process:
    """A process that is killed and forked again."""

    def __init__(self, kind: str, live: Callable[[], None], chance: random.Random) -> None:
        self.kind, self.child, self.kills = kind, 0, 0
        self._live, self._chance, self._until = live, chance, 0.0

    def start(self, *, may_die: bool = True) -> None:
        """Fork it; in half of the cases a point of its code will end it, else a moment."""
        point, chance = "", self._chance
        if may_die and chance.random() < 0.5:
            point = f"{chance.choice(POINTS[self.kind])}:{chance.randint(1, 3)}"
        life = 4 * LONGEST if point else chance.uniform(0.05, LONGEST)
        self._until = time.monotonic() + (life if may_die else 1e9)
        self.child = os.fork()
        if self.child:
            return
        try:
            os.environ["TRIPLEWIRE_CRASH_AT"] = point
            importlib.reload(crash)
            self._live()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def look(self, *, may_die: bool) -> None:
        """Kill it where its time has come; start it again where it has ended."""
        if may_die and time.monotonic() > self._until:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        done, status = os.waitpid(self.child, 0 if may_die and time.monotonic() > self._until else os.WNOHANG)
        if done:
            how = os.waitstatus_to_exitcode(status)
            assert how == -signal.SIGKILL, f"a {self.kind} has ended by itself: {how}"
            self.kills += 1
            self.start(may_die=may_die)

    def end(self) -> None:
        """Kill it for good."""
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


@contextlib.contextmanager
def running(processes: Sequence[Process]) -> Iterator[None]:
    """Start them, and end them in the end."""
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.end()


def main(store: str, cache: str, seed: int, kills: int) -> None:
    """Run a history until so many processes were killed, then let both live until the repository has all."""
    chance, expected, port, number = random.Random(seed), Expected(), free_port(), 0
    with Provider.open(store) as provider, Repository.open(cache, "north"):
        provider.use_schema(SCHEMA.encode())
    provider_process = Process("provider", lambda: provide(store, port), chance)
    repository_process = Process("repository", lambda: follow(cache, port), chance)
    both = [provider_process, repository_process]
    with running(both), RemoteProvider(f"http://127.0.0.1:{port}", TOKEN) as remote:
        while True:
            may_die = sum(process.kills for process in both) < kills
            number += 1
            batch = changes(chance)
            expected.apply(batch)
            until = time.monotonic() + ENOUGH
            while True:
                assert time.monotonic() < until, "a batch is not answered"
                for process in both:
                    process.look(may_die=may_die)
                with contextlib.suppress(TriplewireError):
                    remote.change(batch, "events", number)
                    break
                time.sleep(0.005)
            if not may_die and all(process.kills for process in both):
                break
        for process in both:  # both live on from now
            process.end()
            process.start(may_die=False)
        until = time.monotonic() + ENOUGH
        expected.rules["north"] = {rule.id: rule for rule in OWN}
        cache_now: object = None
        while time.monotonic() < until:
            with Repository.open(cache, alone=False) as repository:
                cache_now = repository.cached()
            if cache_now == expected.cache("north"):
                break
            time.sleep(0.05)
        version, results = remote.health()["version"], {row["rule"]: row["resources"] for row in remote.results()}
    assert version == number + 1, f"{number} batches and a schema are {version} versions of the log"
    assert results == expected.results("north")
    assert cache_now == expected.cache("north")
    print(number, *(f"{process.kind} {process.kills}" for process in both))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
