"""Run a command line in this process; the few tests that need a real process start one themselves."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any, NamedTuple
from unittest import mock

from triplewire.cli import TRIPLEWIRE, Program, run

HEEDS_HANGUPS = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
"""Code for a process that is sent SIGHUP: tests may be run by something that ignores it, as `nohup` does."""


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def triplewire(*arguments: object, stdin: bytes = b"", program: Program = TRIPLEWIRE) -> Done:
    """Run it; nothing is a terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run([str(argument) for argument in arguments], program)
    texts = [stream.buffer.getvalue().decode("utf-8") for stream in (out, err)]  # type: ignore[attr-defined]  # BytesIO
    return Done(code, *texts)
