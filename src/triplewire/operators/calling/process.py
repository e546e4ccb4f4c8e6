"""A process of an isolated operator, from outside: started, asked, ended in time. `worker` is what runs in it."""

from __future__ import annotations

import json
import os
import pickle
import signal
from contextlib import suppress
from typing import Any

from triplewire.child_process import LENGTH, end, exchange, next_frame, started
from triplewire.errors import OperatorFault

START_SECONDS = 60.0  # to import what the operator needs
MOST_BYTES = 64 << 20  # of an answer


class _Running:
    """The processes of operators that run. `groups`: process group -> the process that started it."""

    def __init__(self) -> None:
        self.groups: dict[int, int] = {}
        self.is_over = False


_running = _Running()


def end_all() -> None:
    """Kill all processes of operators, and what they started, and start none any more: this program ends. Takes no
    lock, so that a signal handler may call it."""
    _running.is_over = True
    for group, parent in list(_running.groups.items()):
        if parent == os.getpid():
            with suppress(OSError):
                os.killpg(group, signal.SIGKILL)


class Process:
    """A process that has opened an operator. One thread asks it at a time. Raises `OperatorFault` where it
    cannot be opened."""

    def __init__(self, origin: tuple[str, ...], memory: int) -> None:
        if _running.is_over:
            raise OperatorFault("this program ends")
        # a group of its own: what the operator starts ends with it
        self._process = started(
            "triplewire.operators.calling.worker", memory, environment={"OPENBLAS_NUM_THREADS": "1"}, own_group=True
        )
        self.parent = _running.groups[self._process.pid] = os.getpid()
        self.answers = 0
        try:
            ready = self._exchange(origin, START_SECONDS)
        except EOFError:
            raise OperatorFault(f"its process ended before it was open ({self.end()})") from None
        if "ready" not in ready:
            self.end()
            raise OperatorFault(str(ready.get("broke")))

    def ask(self, call: Any, seconds: float) -> dict[str, Any]:
        """The answer to a call. Raises `OperatorFault` where there is none in time, `EOFError` at its end."""
        answer = self._exchange(call, seconds)
        self.answers += 1
        return answer

    def _exchange(self, value: Any, seconds: float) -> dict[str, Any]:
        body, frames = pickle.dumps(value), list[bytes]()

        def take(came: bytearray) -> bool:
            if (frame := next_frame(came, MOST_BYTES)) is not None:
                frames.append(frame)
            return bool(frames)

        try:
            exchange(self._process, (LENGTH.pack(len(body)) + body,), seconds, take)
            answer = json.loads(frames[0])
        except TimeoutError:
            self.end()
            raise OperatorFault(f"no answer within {seconds:g} s (timeout)") from None
        except ValueError:
            answer = None
        except KeyboardInterrupt:
            self.end()
            raise
        if not isinstance(answer, dict):
            self.end()
            raise OperatorFault("its process wrote what is no answer")
        return answer

    def end(self) -> str:
        """Kill it and what it started. Returns how it had ended, where it had."""
        _running.groups.pop(self._process.pid, None)
        return end(self._process, own_group=True)
