"""A process of this package that is talked to through pipes: started, asked within a time, and ended.

Such are the parsing process and isolated operators.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

LENGTH = struct.Struct(">Q")
"""The length of a frame, which stands before it."""

_CHUNK = 1 << 20
_ENDS_SECONDS, _STOP_SECONDS = 5.0, 2.0


def started(
    module: str, argument: int | str, *, environment: Mapping[str, str] | None = None, own_group: bool = False
) -> subprocess.Popen[bytes]:
    """A Python process that runs a module with an argument, most with the bytes of its address space, and with the
    import path of this one.

    Its standard input and output are pipes that do not block. `own_group`: what it starts can be ended with it. Raises
    `OSError`.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(argument)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        start_new_session=own_group,
    )
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
    return process


def exchange(
    process: subprocess.Popen[bytes],
    outgoing: Iterable[bytes],
    seconds: float,
    take: Callable[[bytearray], bool],
    answers: int = 1,
) -> None:
    """Write to a process, and read so many answers, whichever pipe is ready: neither end blocks.

    `take` gets all bytes that came, drops those that it takes, and says whether an answer has ended. Raises `EOFError`
    where the process ended, and `TimeoutError` where one has not ended within so many seconds after that before.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    to, from_ = process.stdin.fileno(), process.stdout.fileno()
    waiting, came = deque(memoryview(part) for part in outgoing if part), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(from_, selectors.EVENT_READ)
        selector.register(to, selectors.EVENT_WRITE)
        for _ in range(answers):
            deadline = time.monotonic() + seconds
            while not take(came):
                remaining = deadline - time.monotonic()
                ready = selector.select(remaining) if remaining > 0 else []
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    try:
                        if key.fd == from_:
                            received = os.read(from_, _CHUNK)
                            if not received:
                                raise EOFError
                            came += received
                        else:
                            waiting[0] = waiting[0][os.write(to, waiting[0][:_CHUNK]) :]
                            if not waiting[0]:
                                waiting.popleft()
                            if not waiting:
                                selector.unregister(to)
                    except BlockingIOError:
                        continue
                    except OSError:
                        raise EOFError from None


def next_frame(came: bytearray, most: int = sys.maxsize) -> bytes | None:
    """The first frame of what came, which is dropped from it; None before it is there as a whole. Raises `ValueError`
    where it has more than `most` bytes."""
    if len(came) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack_from(came)
    if length > most:
        raise ValueError(f"a frame of more than {most} bytes")
    end = LENGTH.size + length
    if len(came) < end:
        return None
    frame = bytes(came[LENGTH.size : end])
    del came[:end]
    return frame


def end(process: subprocess.Popen[bytes], *, own_group: bool = False) -> str:
    """Kill a process; with `own_group`, what it started as well. Returns how it had ended, where it had."""
    if had_ended := process.poll() is not None or _has_closed_a_pipe(process):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_ENDS_SECONDS)  # after a crash, its own signal is the exit code
    if own_group:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_STOP_SECONDS)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    code = process.returncode
    if code is None or (code == -signal.SIGKILL and not had_ended):
        return "killed"
    return f"signal {-code}" if code < 0 else f"exit {code}"


def _has_closed_a_pipe(process: subprocess.Popen[bytes]) -> bool:
    """So a process does that ends: an instant later it has an exit code."""
    ends = select.poll()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            ends.register(pipe, 0)
    return bool(ends.poll(0))
