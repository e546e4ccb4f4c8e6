"""The client of the parsing process, which is started at the first request and restarted after a crash.

There is one for each process that reads. Threads may share it: one request is served at a time. After a fork, the child
starts a parsing process of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import subprocess
import threading
import time
from dataclasses import dataclass, field

from triplewire.child_process import started
from triplewire.errors import ReadError
from triplewire.forks import new_lock
from triplewire.read.process.frames import LENGTH, Reply, Request

_CHUNK = 1 << 20
_STOP_SECONDS = 2.0


@dataclass(slots=True)
class Client:
    """A parsing process, once it is started. `module` is the Python module that it runs."""

    module: str = "triplewire.read.process.worker"
    _process: subprocess.Popen[bytes] | None = None
    _limit: int = 0
    _lock: threading.Lock = field(default_factory=new_lock)

    def ask(self, request: Request) -> Reply:
        """Send a document and return the reply. Raises `ReadError`, also if the process crashes or is too slow.

        A process that has read other documents may have been ended from outside. So the document is refused for a
        crash only if a new process crashes on it as well.
        """
        with self._lock:
            try:
                used = self._process is not None
                return self._exchange(request)
            except _Broken as broken:
                code = self._stop()
                if not used or broken.why:
                    raise _refusal(request, broken, code) from None
            try:
                return self._exchange(request)
            except _Broken as broken:
                raise _refusal(request, broken, self._stop()) from None

    def _exchange(self, request: Request) -> Reply:
        """One request and its reply, with a process that runs."""
        process = self._started(request.settings.parse_bytes)
        try:
            return _exchange(process, request)
        except (_Broken, ReadError):
            raise
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
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
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

    def _stop(self) -> int:
        """Kill the process, if any. Returns its exit code, or 0."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)  # after a crash, its own signal is the exit code
        process.kill()
        process.wait(timeout=_STOP_SECONDS)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return process.returncode or 0


class _Broken(Exception):
    """The process ended (`why` is empty) or was too slow."""

    def __init__(self, why: str = "", remedy: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


def _refusal(request: Request, broken: _Broken, code: int) -> ReadError:
    """The error for a document on which the process ended with an exit code."""
    ending = f"signal {-code}" if code < 0 else f"exit {code}"
    what = broken.why or f"the parser crashed on it ({ending})"
    return ReadError(what, source=request.source, remedy=broken.remedy)


def _exchange(process: subprocess.Popen[bytes], request: Request) -> Reply:
    """Write the request and read the reply within `parse_seconds`, whichever pipe is ready: neither end blocks."""
    assert process.stdin is not None
    assert process.stdout is not None
    to, from_ = process.stdin.fileno(), process.stdout.fileno()
    deadline = time.monotonic() + request.settings.parse_seconds
    outgoing = [memoryview(part) for part in request.to_bytes() if part]
    incoming, reply = bytearray(), Reply(request.source)
    with selectors.DefaultSelector() as selector:
        selector.register(from_, selectors.EVENT_READ)
        selector.register(to, selectors.EVENT_WRITE)
        while not reply.ended:
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                seconds = request.settings.parse_seconds
                raise _Broken(f"parsing it takes more than {seconds} s", "raise parse_seconds")
            for key, _ in ready:
                if key.fd == to:
                    _write(to, outgoing)
                    if not outgoing:
                        selector.unregister(to)
                else:
                    _read(from_, incoming, reply)
    return reply


def _write(to: int, outgoing: list[memoryview]) -> None:
    """Write some bytes of the first part and drop them from `outgoing`."""
    try:
        sent = os.write(to, outgoing[0][:_CHUNK])
    except BlockingIOError:
        return
    except OSError:
        raise _Broken from None
    outgoing[0] = outgoing[0][sent:]
    if not outgoing[0]:
        outgoing.pop(0)


def _read(from_: int, incoming: bytearray, reply: Reply) -> None:
    """Read some bytes, and hand each complete frame to the reply."""
    try:
        received = os.read(from_, _CHUNK)
    except BlockingIOError:
        return
    except OSError:
        raise _Broken from None
    if not received:
        raise _Broken
    incoming += received
    while len(incoming) >= LENGTH.size and not reply.ended:
        (length,) = LENGTH.unpack_from(incoming)
        if len(incoming) < LENGTH.size + length:
            return
        body = bytes(incoming[LENGTH.size : LENGTH.size + length])
        del incoming[: LENGTH.size + length]
        reply.take(body)


CLIENT = Client()
"""The client that all readers of this process use."""

atexit.register(CLIENT.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CLIENT.forget)
