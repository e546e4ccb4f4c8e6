"""The reader's end of the parsing process: one a process, started when it is first needed, restarted after a crash.

Safe with threads (one request at a time) and after a fork, where the child starts its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from triplewire.errors import ReadError
from triplewire.read.frames import LENGTH, Reply, Request

_CHUNK = 1 << 20
_STOP_SECONDS = 2.0


@dataclass(slots=True)
class Client:
    """A parsing process, or none yet. `module` is what it runs."""

    module: str = "triplewire.read.worker"
    _process: subprocess.Popen[bytes] | None = None
    _limit: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: Request) -> Reply:
        """Send a document and take the answer. Raises `ReadError`, also if the process crashes or is too slow.

        A process that has read other documents may have been ended from outside, so a crash is blamed on this one only
        if it ends a new process as well.
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
        process = self._started(request.settings.parse_bytes)
        try:
            return _exchange(process, request)
        except (_Broken, ReadError):
            raise
        except BaseException:  # an interrupt in mid-reply: what is left in the pipe belongs to nobody
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
        """In the child of a fork: the process belongs to the parent."""
        process, self._process = self._process, None
        self._lock = threading.Lock()
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        os.close(pipe.fileno())
            process.returncode = 0  # so that nothing waits for the parent's child

    def _started(self, limit: int) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._process.poll() is not None or limit != self._limit):
            self._stop()
        if self._process is None:
            path = os.pathsep.join(entry for entry in sys.path if entry)
            command = [sys.executable, "-P", "-m", self.module, str(limit)]
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    env={**os.environ, "PYTHONPATH": path},
                )
            except OSError as error:
                raise ReadError(f"the parsing process cannot be started: {error}") from None
            self._limit = limit
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                os.set_blocking(pipe.fileno(), False)
        return self._process

    def _stop(self) -> int:
        """Kill the process, if any; its exit code, or 0."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)  # let a crash show its own signal
        process.kill()
        process.wait(timeout=_STOP_SECONDS)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return process.returncode or 0


class _Broken(Exception):
    """The process ended (no `why`) or was too slow."""

    def __init__(self, why: str = "", remedy: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


def _refusal(request: Request, broken: _Broken, code: int) -> ReadError:
    ending = f"signal {-code}" if code < 0 else f"exit {code}"
    what = broken.why or f"the parser crashed on it ({ending})"
    return ReadError(what, source=request.source, remedy=broken.remedy)


def _exchange(process: subprocess.Popen[bytes], request: Request) -> Reply:
    """Write the request and read the reply at the same time, neither end waiting for the other, within the limit."""
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
    try:
        found = os.read(from_, _CHUNK)
    except BlockingIOError:
        return
    except OSError:
        raise _Broken from None
    if not found:
        raise _Broken
    incoming += found
    while len(incoming) >= LENGTH.size and not reply.ended:
        (length,) = LENGTH.unpack_from(incoming)
        if len(incoming) < LENGTH.size + length:
            return
        body = bytes(incoming[LENGTH.size : LENGTH.size + length])
        del incoming[: LENGTH.size + length]
        reply.take(body)


CLIENT = Client()
"""The parsing process of this process."""

atexit.register(CLIENT.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CLIENT.forget)
