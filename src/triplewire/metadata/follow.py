"""Keeps a repository up to date with its provider, over HTTP (MDV paper, section 2.2).

    with Repository.open(url, "passau") as repository, RemoteProvider(address) as provider:
        Follower(repository, provider).run(stop)

The repository takes a snapshot, then batch by batch; each is acknowledged once it is on the repository's disk. It does
not matter where either side is killed: a batch that comes twice changes nothing, and where one is missing, or the
provider has forgotten the stream, a new snapshot is taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from triplewire.errors import BusyError, GapError, Refusal, ServiceError, StoreError, TriplewireError, UnavailableError
from triplewire.metadata.batches import Batch
from triplewire.metadata.messages import RuleText
from triplewire.metadata.remote import RemoteProvider, portions
from triplewire.metadata.repository import Repository

WAIT = 20.0  # seconds that a question for new batches stays open
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 5.0  # seconds until a provider that does not answer is asked again
_RULES_AT_ONCE = 1_000


class Follower:
    """Follows a provider for a repository. `rules` are made known to it first; what it refuses of them is told to
    `refuse`. Raises `StoreError` where the repository follows another provider: it has to be moved."""

    def __init__(
        self,
        repository: Repository,
        provider: RemoteProvider,
        rules: Iterable[RuleText] = (),
        refuse: Callable[[Refusal], None] = lambda refusal: None,
    ) -> None:
        if (known := repository.provider or provider.address) != provider.address:
            remedy = "move it: triplewire repository move"
            raise StoreError(f"the repository follows {known}, not {provider.address}", remedy=remedy)
        self.repository, self.provider, self.name = repository, provider, repository.name
        self._rules = list(rules)
        self._refuse = refuse

    def step(self, wait: float = WAIT) -> int:
        """Take what the provider has, and wait for it so long where there is nothing. Returns how many batches came; a
        snapshot counts as one. Raises `UnavailableError` where the provider does not answer."""
        if self._rules:
            for refusal in subscribe(self.provider, self.name, self._rules):
                self._refuse(refusal)
            self._rules = []
        position = self.repository.position
        batches: list[Batch] | None = None
        if position.stream:
            batches = self.provider.batches(self.name, position.stream, position.number, wait)
        try:
            for batch in batches or ():
                self.repository.receive(position.stream, batch)
        except GapError:
            batches = None
        if batches is None:
            self.repository.restore(self.provider.snapshot(self.name), self.provider.address)
            return 1
        if batches:
            self.provider.acknowledge(self.name, position.stream, batches[-1].number)
        return len(batches)

    def run(self, stop: threading.Event, warn: Callable[[str], None] = lambda text: None) -> None:
        """Follow until `stop` is set. `warn` is told when the provider does not answer."""
        patiently(self.step, stop, warn)


def subscribe(provider: RemoteProvider, repository: str, rules: Iterable[RuleText]) -> list[Refusal]:
    """Have a repository subscribe to rules; returns those that the provider refuses, with the place in their texts."""
    refusals: list[Refusal] = []
    for portion in portions(rules, _RULES_AT_ONCE):
        for rule, answer in zip(portion, provider.subscribe(repository, portion), strict=True):
            if "status" in answer:
                where, what, remedy = (str(answer.get(part, "")) for part in ("where", "title", "remedy"))
                refusals.append(Refusal("subscription", rule.id, where, what, remedy))
    return refusals


def move(
    repository: Repository, old: RemoteProvider | None, new: RemoteProvider, seconds: float = 60.0
) -> list[Refusal]:
    """Have a repository follow another provider of the same backbone: with its rules, and from documents that are not
    older than what it has. Returns rules that the new provider refuses. Raises what `RemoteProvider` raises; then the
    repository follows the old one still. That one is told, if it answers."""
    name, version = repository.name, repository.position.version
    refusals = subscribe(new, name, repository.rules())
    until = time.monotonic() + seconds
    while True:
        try:
            snapshot = new.snapshot(name, version)
            break
        except BusyError:  # it has not come so far yet
            if time.monotonic() > until:
                raise
            time.sleep(_FIRST_PAUSE)
    repository.restore(snapshot, new.address)
    if old is not None:
        try:
            if old.health()["provider"] != new.health()["provider"]:  # else it has only another address
                old.forget(name)
        except (UnavailableError, ServiceError):
            refusals.append(Refusal("warning", old.address, "", "it does not answer, and goes on keeping batches"))
    return refusals


_PASSING = UnavailableError, BusyError


def patiently(
    step: Callable[[], object],
    stop: threading.Event,
    warn: Callable[[str], None],
    passing: type[TriplewireError] | tuple[type[TriplewireError], ...] = _PASSING,
) -> None:
    """Do a step again and again until `stop` is set. After an error that may pass, it is tried less and less often."""
    pause, told = _FIRST_PAUSE, ""
    while not stop.is_set():
        try:
            step()
            pause, told = _FIRST_PAUSE, ""
        except passing as error:
            if stop.is_set():
                return
            if str(error) != told:
                told = str(error)
                warn(f"{told}; it is tried again")
            stop.wait(pause)
            pause = min(2 * pause, _LAST_PAUSE)
