"""A process of an isolated operator, from outside: started, asked, ended in time. `worker` is what runs in it."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import selectors
import subprocess
import time
from typing import Any

from triplewire.child_process import started
from triplewire.errors import OperatorFault
from triplewire.operators.calling.frames import LENGTH, MOST_BYTES

START_SECONDS = 60.0  # to import what the operator needs
_CHUNK = 1 << 16


class _Ended(Exception):
    """The process ended by itself."""


class Process:
    """A process that has opened an operator. One thread asks it at a time. Raises `OperatorFault` where it
    cannot be opened."""

    def __init__(self, origin: tuple[str, ...], memory: int) -> None:
        # a group of its own: what the operator starts ends with it
        self._process = started(
            "triplewire.operators.calling.worker", memory, environment={"OPENBLAS_NUM_THREADS": "1"}, own_group=True
        )
        self.parent = os.getpid()
        self.answers = 0
        try:
            ready = self._exchange(origin, START_SECONDS)
        except _Ended:
            raise OperatorFault(f"its process ended before it was open ({self.end()})") from None
        if "ready" not in ready:
            self.end()
            raise OperatorFault(str(ready.get("broke")))

    def ask(self, call: Any, seconds: float) -> dict[str, Any]:
        """The answer to a call. Raises `OperatorFault` where there is none in time, `_Ended`."""
        answer = self._exchange(call, seconds)
        self.answers += 1
        return answer

    def _exchange(self, value: Any, seconds: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        to, from_ = self._process.stdin.fileno(), self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        body = pickle.dumps(value)
        outgoing, incoming = memoryview(LENGTH.pack(len(body)) + body), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(from_, selectors.EVENT_READ)
            selector.register(to, selectors.EVENT_WRITE)
            while True:
                left = deadline - time.monotonic()
                ready = selector.select(left) if left > 0 else []
                if not ready:
                    self.end()
                    raise OperatorFault(f"no answer within {seconds:g} s (timeout)")
                for key, _ in ready:
                    try:
                        if key.fd == to:
                            outgoing = outgoing[os.write(to, outgoing[:_CHUNK]) :]
                            if not outgoing:
                                selector.unregister(to)
                            continue
                        received = os.read(from_, _CHUNK)
                    except BlockingIOError:
                        continue
                    except OSError:
                        raise _Ended from None
                    if not received:
                        raise _Ended
                    incoming += received
                if len(incoming) >= LENGTH.size:
                    (length,) = LENGTH.unpack_from(incoming)
                    if length > MOST_BYTES:
                        self.end()
                        raise OperatorFault("its process wrote what is no answer")
                    if len(incoming) >= LENGTH.size + length:
                        return self._parsed(bytes(incoming[LENGTH.size : LENGTH.size + length]))

    def _parsed(self, body: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.end()
            raise OperatorFault("its process wrote what is no answer")
        return answer

    def end(self) -> str:
        """Kill it and what it started. Returns how it had ended, where it had."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.2)  # after a crash, its own signal is the exit code
        code = self._process.returncode
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, 9)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return "killed" if code is None else f"signal {-code}" if code < 0 else f"exit {code}"
