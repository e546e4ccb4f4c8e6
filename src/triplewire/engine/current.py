"""The snapshot that is current: read without waiting, replaced under a lock, and improved aside while changes go on."""

from __future__ import annotations

import threading

from triplewire.matchers import Install, Snapshot


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
