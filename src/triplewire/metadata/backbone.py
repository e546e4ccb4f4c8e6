"""Several providers with the same documents (MDV paper, section 2.2): a flat backbone, fully replicated.

All follow one ordered log, which the first of them, the one without a peer, writes; each applies its batches in their
order, and tells its own repositories. A provider with a peer hands on what is to be written, and answers once it has
come back through the log: who asks the same provider sees it. While the peer is away, the provider answers and tells
its repositories as before, and takes nothing. The log keeps the newest entry of each document, so a provider that comes
later, or was away for long, ends with the same documents. Where the first one is lost, another is told to write the log
(`Provider.state`), and becomes the peer of the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Self

from triplewire.errors import BusyError, TriplewireError, UnavailableError
from triplewire.metadata.follow import WAIT, patiently
from triplewire.metadata.messages import Applied, Change, Put
from triplewire.metadata.provider import SCHEMA, Provider
from triplewire.metadata.remote import RemoteProvider

_SECONDS = 30.0  # until what was handed on has come back


class Writing:
    """Where documents of a provider are written: with it, as it has no peer."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def change(self, changes: Sequence[Change], source: str = "", seq: int = 0) -> Applied:
        """See `Provider.apply`."""
        return self.provider.apply(changes, source, seq)

    def applied(self, source: str) -> tuple[int, str]:
        """See `RemoteProvider.applied`."""
        return self.provider.applied_of(source), self.provider.base


class Peer(Writing):
    """The same, with a peer: its log is followed while the block lasts."""

    def __init__(
        self, provider: Provider, peer: RemoteProvider, warn: Callable[[str], None] = lambda text: None
    ) -> None:
        super().__init__(provider)
        provider.state("peer", peer.address)
        self._peer = peer
        self._asking = RemoteProvider(peer.address, peer.token)  # a connection that no question for the log keeps busy
        self._stop = threading.Event()
        self._come = threading.Condition()
        self._thread = threading.Thread(
            target=patiently, args=(self.step, self._stop, warn, TriplewireError), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._peer.close()  # a question that is under way ends
        self._asking.close()
        self._thread.join()

    def step(self, wait: float = WAIT) -> int:
        """Apply what the log of the peer has, and wait for it so long where there is nothing; returns how many batches
        there were. Raises `UnavailableError` where it does not answer."""
        batches = 0
        for version, entries in groupby(self._peer.log(self.provider.version, wait), key=itemgetter(0)):
            changes = [change for _, change in entries]
            if isinstance(changes[0], Put) and changes[0].document == SCHEMA:  # which is a batch of its own
                self.provider.use_schema(changes[0].content, self._peer.address, version)
            else:
                self.provider.apply(changes, version=version)
            batches += 1
            with self._come:
                self._come.notify_all()
        return batches

    def change(self, changes: Sequence[Change], source: str = "", seq: int = 0) -> Applied:
        """Hand changes on, and wait until they have come back. Raises `UnavailableError` where the peer does not
        answer, and `BusyError` where they take too long; they may have been taken then."""
        with self._naming_peer():
            applied = self._asking.change(changes, source, seq)
        until = time.monotonic() + _SECONDS
        with self._come:
            while self.provider.version < applied.version:
                if not self._come.wait(until - time.monotonic()):
                    raise BusyError("the peer has taken it, and it has not come back yet", remedy="look again soon")
        return applied

    def applied(self, source: str) -> tuple[int, str]:
        """See `RemoteProvider.applied`."""
        with self._naming_peer():
            return self._asking.applied(source)

    @contextmanager
    def _naming_peer(self) -> Iterator[None]:
        """Who writes here is told which provider is away."""
        try:
            yield
        except UnavailableError as error:
            what = f"its peer {self._peer.address} does not answer: {error.what}"
            raise UnavailableError(what, remedy="try again when the peer is back") from None
