"""The snapshot that is current: read without waiting, replaced under a lock, and improved aside while changes go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from triplewire.engine.incoming import size_of
from triplewire.engine.tiers.kernels import KERNELS, PUBLICATION_BYTES, SMALL_BYTES, SMALL_PAIRS
from triplewire.engine.tiers.snapshots import InterpretedSnapshot
from triplewire.matchers import Install, Snapshot
from triplewire.read.sources import Source


class Current:
    """Holds a snapshot. Whoever puts another in its place holds `lock`; readers take `snapshot` once and keep to it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.lock = threading.Lock()
        self.snapshot = snapshot
        self._working: threading.Thread | None = None

    def work_aside(self) -> None:
        """Start a thread for work that is due, unless one is at it. Not to be called with the lock held."""
        if self._working is None and self.snapshot.due() is not None:
            with self.lock:
                if self._working is None:
                    # nobody waits for it at the end of the process: it only makes later calls cheaper
                    self._working = threading.Thread(target=self._work, name="triplewire-merge", daemon=True)
                    self._working.start()

    def for_matching(self, publications: Callable[[], int] = lambda: 0) -> Snapshot:
        """The snapshot for a match call of about so many publications, or more, where nobody knows. Small work is
        matched interpreted until the kernels are ready; other work waits for them here."""
        snapshot = self.snapshot
        if not isinstance(snapshot, InterpretedSnapshot):
            return snapshot
        if publications() * len(snapshot) > SMALL_PAIRS:
            return self.compiled()
        KERNELS.ask()
        self.work_aside()
        return snapshot.for_call()

    def for_loading(self, files: Iterable[Source]) -> None:
        """Subscription files are about to be loaded: where they are large, wait for the kernels."""
        if isinstance(self.snapshot, InterpretedSnapshot) and size_of(files) > SMALL_BYTES:
            self.compiled()

    def compiled(self) -> Snapshot:
        """The snapshot, compiled: waits for the kernels. As it is where they are not to be used."""
        while isinstance(snapshot := self.snapshot, InterpretedSnapshot) and KERNELS.wait():
            self._install(snapshot.take_over())
        return self.snapshot

    def settle(self) -> None:
        """Do the work that is due now, or wait for the thread that is at it."""
        while True:
            with self.lock:
                working = self._working
            if working is not None:
                working.join()
                continue
            work = self.snapshot.due()
            if work is None:
                return
            self._install(work())

    def _work(self) -> None:
        while True:
            with self.lock:  # so that no change comes between the last look and the end
                work = self.snapshot.due()
                if work is None:
                    self._working = None
                    return
            try:
                install = work()
            except BaseException:
                self._working = None
                raise
            self._install(install)

    def _install(self, install: Install) -> None:
        with self.lock:
            self.snapshot = install(self.snapshot)


def publications_of(sources: Iterable[Source]) -> int:
    """About how many publications there are in files and folders, or more: what is gzipped, or a stream, hides some."""
    return size_of(sources) // PUBLICATION_BYTES
