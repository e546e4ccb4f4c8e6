"""The client of the parsing process, which is started at the first request and restarted after a crash.

There is one for each process that reads. Threads may share it: one request is served at a time. After a fork, the child
starts a parsing process of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from triplewire.child_process import end, exchange, next_frame, started
from triplewire.errors import ReadError
from triplewire.forks import forget_in_children, new_lock
from triplewire.read.process.frames import Reply, Request


@dataclass(eq=False)
class Client:
    """A parsing process, once it is started. `module` is the Python module that it runs."""

    module: str = "triplewire.read.process.worker"
    _process: subprocess.Popen[bytes] | None = None
    _limit: int = 0
    _lock: threading.Lock = field(default_factory=new_lock)

    def ask(self, request: Request) -> Reply:
        """Send a document and return the reply. Raises `ReadError`, also if the process crashes or is too slow. A
        process that has read other documents may have been ended from outside. So the document is refused for a crash
        only if a new process crashes on it as well."""
        with self._lock:
            while True:
                used, replies = self._process is not None, list[Reply | ReadError]()
                try:
                    self._exchange([request], replies)
                    break
                except _Broken as broken:
                    ending = self._stop()
                    if not used or broken.why:
                        raise broken.error(request, ending) from None
        if isinstance(reply := replies[0], ReadError):
            raise reply
        return reply

    def ask_all(self, requests: Sequence[Request]) -> Iterator[Reply | ReadError]:
        """The replies to documents that are read with the same settings, in their order; in place of one, what `ask`
        would raise. They are sent together: one is parsed while the reply to that before is taken."""
        while requests:
            replies: list[Reply | ReadError] = []
            broken = None
            with self._lock:
                try:
                    self._exchange(requests, replies)
                except _Broken as error:
                    broken, ending = error, self._stop()
            if broken is not None:
                broken_at = requests[len(replies)]
                # it crashes again, unless the process was ended from outside
                replies.append(broken.error(broken_at, ending) if broken.why else self._asked(broken_at))
            yield from replies
            requests = requests[len(replies) :]

    def _asked(self, request: Request) -> Reply | ReadError:
        try:
            return self.ask(request)
        except ReadError as error:
            return error

    def _exchange(self, requests: Sequence[Request], replies: list[Reply | ReadError]) -> None:
        """Add the reply to each request, or the error that it carries, each within `parse_seconds`, with a process that
        runs."""
        settings = requests[0].settings
        process, begun = self._started(settings.parse_bytes), [Reply(request.source) for request in requests]

        def take(came: bytearray) -> bool:
            reply = begun[len(replies)]
            try:
                while not reply.ended and (frame := next_frame(came)) is not None:
                    reply.take(frame)
            except ReadError as error:
                if not reply.ended:
                    raise _Broken(error.what) from None
                replies.append(error)
                return True
            if reply.ended:
                replies.append(reply)
            return reply.ended

        parts = (part for request in requests for part in request.to_bytes())
        outgoing = parts if len(requests) == 1 else [b"".join(parts)]  # small ones in one write
        try:
            exchange(process, outgoing, settings.parse_seconds, take, len(requests))
        except EOFError:
            raise _Broken from None
        except TimeoutError:
            raise _Broken(f"parsing it takes more than {settings.parse_seconds} s", "raise parse_seconds") from None
        except BaseException:  # after an interrupt, the rest of the reply is still in the pipe
            self._stop()
            raise

    @property
    def process_id(self) -> int | None:
        """The running process, if any."""
        return self._process.pid if self._process is not None else None

    def close(self) -> None:
        """End the process; the next request starts another."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """Called in the child of a fork: give up the parsing process, which belongs to the parent."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in filter(None, (process.stdin, process.stdout)):
                with contextlib.suppress(OSError):
                    os.close(pipe.fileno())
            process.returncode = 0  # nothing must wait for a process that is no child of this one

    def _started(self, limit: int) -> subprocess.Popen[bytes]:
        """The process, started where needed, with an address space of `limit` bytes. Raises `ReadError`."""
        if self._process is not None and (self._process.poll() is not None or limit != self._limit):
            self._stop()
        if self._process is None:
            try:
                self._process = started(self.module, limit)
            except OSError as error:
                raise ReadError(f"the parsing process cannot be started: {error}") from None
            self._limit = limit
        return self._process

    def _stop(self) -> str:
        """Kill the process, if any. Returns how it had ended, where it had."""
        process, self._process = self._process, None
        return "" if process is None else end(process)


class _Broken(Exception):
    """The process ended (`why` is empty) or was too slow."""

    def __init__(self, why: str = "", remedy: str = "") -> None:
        self.why, self.remedy = why, remedy

    def error(self, request: Request, ending: str) -> ReadError:
        """Why a document is refused."""
        what = self.why or f"the parser crashed on it ({ending})"
        return ReadError(what, source=request.source, remedy=self.remedy)


CLIENT = Client()
"""The client that all readers of this process use."""

atexit.register(CLIENT.close)
forget_in_children(CLIENT)
