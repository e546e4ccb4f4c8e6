"""Files of a folder as a source of a watch: those that are new or have changed go to the inbox.

A file goes to the inbox first and is written down as read then. A process that is killed in between reads it once
more, and its matches are told once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from triplewire.errors import ReadError
from triplewire.pipeline.connect.arrivals import SETTLE, Arrivals, ScanResult
from triplewire.read.documents import file_bytes
from triplewire.sources.inbox import Delivered, Inbox

_PIECE = 4 << 20  # bytes of files that are put into the inbox together, about
_MOST_WAITING = 4  # parts in the inbox, before more is read
_LOOK = 1.0  # seconds between two looks at the folder
_PATIENCE = 3  # times `settle` that a single look waits for files that still change
_NEVER = 2**62  # all parts are before this one: none is repeated with other files


@dataclass
class FileSource:
    """The files that a path stands for: a file, all files below a folder, or a glob. `state` is the file in which those
    that were read are known; one that has not changed for `settle` seconds is complete. `on_note` is told what else a
    user should know."""

    path: str
    state: Path
    inbox: Inbox
    most_bytes: int
    stop: threading.Event = field(default_factory=threading.Event)
    on_note: Callable[[str], None] = lambda note: None
    settle: float = SETTLE

    def begin(self, watch: bool) -> Callable[[], None]:
        """Put what is new into the inbox: once, or, to `watch`, in a thread. Returns what ends it."""
        arrivals = Arrivals(self.path, self.state, self.settle)
        if not watch:
            patience = time.monotonic() + _PATIENCE * self.settle
            while self._look(arrivals) and time.monotonic() < patience and not self.stop.wait(min(self.settle, 0.25)):
                pass
            if pending := self._look(arrivals):
                now = time.time()
                why = "it still changes: it was not read; the next start reads it"
                self.inbox.append([Delivered(path, None, why, now) for path in pending])
            return lambda: None
        thread = threading.Thread(target=self._watch, args=(arrivals,), name="files", daemon=True)
        thread.start()
        return thread.join

    def _watch(self, arrivals: Arrivals) -> None:
        said = ""
        while not self.stop.wait(_LOOK):
            try:
                self._look(arrivals)
                said = ""
            except Exception as error:  # a full disk, a folder that is gone: perhaps not for long
                if str(error) != said:
                    said = str(error)
                    self.on_note(f"the files cannot be looked at, which is tried again: {said}")

    def _look(self, arrivals: Arrivals) -> list[str]:
        """Put what is new into the inbox; returns the files that still change."""
        result, now = arrivals.scan(_NEVER), time.time()
        for path in result.changed:
            self.on_note(f"{path} has changed since it was read: it is read again")
        refused = [
            Delivered(refusal.subject, None, "; ".join(filter(None, (refusal.reason, refusal.remedy))), now)
            for refusal in result.refusals
        ]
        self.inbox.append(refused)
        arrivals.take(ScanResult(passed=result.passed))
        piece, came, size = ScanResult(), list[Delivered](), 0
        for number, (path, state) in enumerate(result.ready, 1):
            came.append(self._read(path))
            piece.ready.append((path, state))
            size += len(came[-1].content or b"")
            if size >= _PIECE or number == len(result.ready):
                if not self._has_room():
                    return []
                self.inbox.append(came)
                arrivals.take(piece)
                piece, came, size = ScanResult(), [], 0
        return result.pending

    def _has_room(self) -> bool:
        """Waits until the inbox has room; False where the watch ends first."""
        while len(self.inbox.files()) >= _MOST_WAITING:
            if self.stop.wait(0.05):
                return False
        return not self.stop.is_set()

    def _read(self, path: str) -> Delivered:
        try:
            return Delivered(path, file_bytes(Path(path), self.most_bytes), "", time.time())
        except ReadError as error:
            reason = "; ".join(filter(None, (error.what, error.remedy)))
        except OSError as error:
            reason = f"the file cannot be read: {error.strerror or error}"
        return Delivered(path, None, reason, time.time())
