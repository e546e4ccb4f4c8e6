"""The current snapshot of an engine: read without a lock, replaced under a lock, optimised in the background."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable

from triplewire.engine.chunk import Install, Snapshot
from triplewire.engine.tiers.interpreted import InterpretedSnapshot
from triplewire.engine.tiers.kernels import KERNELS, PUBLICATION_BYTES, SMALL_BYTES, SMALL_PAIRS
from triplewire.errors import TriplewireError, text_of_raised
from triplewire.forks import forget_in_children, new_lock
from triplewire.read.documents import Source, bytes_of

LOOK = 1 << 8  # match calls between two checks for due background work, which many match calls make worth while
PAUSE_SECONDS = 60.0  # after work that failed, before it is tried again
_FAILURES = (TriplewireError, OSError, MemoryError)


class CurrentSnapshot:
    """Holds a snapshot. Whoever puts another in its place holds `lock`; readers take `snapshot` once and keep to it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.lock = new_lock()
        self.snapshot = snapshot
        self._working: threading.Thread | None = None
        self._paused = 0.0  # until then, nothing is begun
        self._calls = 0  # to match
        forget_in_children(self)

    def start_background_work(self) -> None:
        """Start a background thread for due work, unless one is running. The caller must not hold the lock."""
        if self._working is None and time.monotonic() >= self._paused and self.snapshot.background_work() is not None:
            with self.lock:
                if self._working is None:
                    # nobody waits for it at the end of the process: it only makes later calls cheaper
                    thread = threading.Thread(target=self._work, name="triplewire-merge", daemon=True)
                    try:
                        thread.start()
                    except (RuntimeError, MemoryError):  # there is no room for a thread
                        self._pause()
                    else:
                        self._working = thread

    def snapshot_for_matching(self, publications: Callable[[int], int]) -> Snapshot:
        """The snapshot for a match call. `publications` estimates their number, as far as it has to be known: up to its
        argument. Until the kernels are ready, small calls are interpreted, and a large one waits for the kernels
        here."""
        self._calls += 1
        if self._calls % LOOK == 0:
            self.start_background_work()
        snapshot = self.snapshot
        if not isinstance(snapshot, InterpretedSnapshot):
            return snapshot
        if len(snapshot) and publications(SMALL_PAIRS // len(snapshot) + 1) * len(snapshot) > SMALL_PAIRS:
            return self.compiled()
        KERNELS.ask()
        self.start_background_work()
        return snapshot

    def prepare_for_loading(self, files: Iterable[object]) -> None:
        """Subscription files are about to be loaded: where they are large, wait for the kernels."""
        if isinstance(self.snapshot, InterpretedSnapshot) and bytes_of(files) > SMALL_BYTES:
            self.compiled()

    def compiled(self) -> Snapshot:
        """The snapshot of the compiled tier, after waiting for the kernels; unchanged where kernels are not used."""
        while isinstance(snapshot := self.snapshot, InterpretedSnapshot) and KERNELS.wait(in_advance=False):
            self._install(snapshot.take_over())
        return self.snapshot

    def settle(self) -> None:
        """Do the due work now, or wait for the thread that does it; nothing during the pause after a failure. A failure
        is a warning only, and the work is tried again later: it only makes later calls cheaper."""
        if time.monotonic() >= self._paused:
            try:
                self.finish()
            except _FAILURES as error:
                self._pause()
                _warn(error)

    def finish(self) -> None:
        """As `settle`, but also during the pause after a failure, and raises what the work raises."""
        while True:
            with self.lock:
                working = self._working
            if working is not None:
                working.join()
                continue
            work = self.snapshot.background_work()
            if work is None:
                return
            self._install(work())

    def _work(self) -> None:
        while True:
            with self.lock:  # so that no change comes between the last look and the end
                work = self.snapshot.background_work()
                if work is None:
                    self._working = None
                    return
            try:
                install = work()
            except BaseException as error:
                self._pause()
                self._working = None
                if not isinstance(error, _FAILURES):
                    raise
                _warn(error)
                return
            self._install(install)

    def _pause(self) -> None:
        self._paused = time.monotonic() + PAUSE_SECONDS

    def forget(self) -> None:
        """In the child of a fork: no thread is at work here, nor holds the lock."""
        self._working = None

    def _install(self, install: Install) -> None:
        with self.lock:
            self.snapshot = install(self.snapshot)
        self._paused = 0.0


def _warn(error: BaseException) -> None:
    what = f"work in the background is put off, which costs time and memory: {text_of_raised(error)}"
    warnings.warn(what, RuntimeWarning, stacklevel=2)


def snapshot_for_more(snapshot: Snapshot, publications: int) -> Snapshot:
    """The snapshot for the next result of a call that gives several, of publications that are so many by now: where it
    has turned out to be large, the compiled one of the same subscriptions."""
    if isinstance(snapshot, InterpretedSnapshot) and publications * len(snapshot) > SMALL_PAIRS:
        return snapshot.compiled() or snapshot
    return snapshot


def publications_of(sources: Iterable[Source]) -> int:
    """About how many publications there are in files and folders, or more: what is gzipped, or a stream, hides some."""
    return bytes_of(sources) // PUBLICATION_BYTES
