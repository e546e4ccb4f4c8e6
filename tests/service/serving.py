"""A `triplewire serve` of its own for a test, and the other commands that talk to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from cli.runner import Done, triplewire
from pipeline.connect.servers import free_port

PROGRAM = str(Path(sys.executable).parent / "triplewire")
TOKEN = "token-of-the-owner-0123456789"


@dataclass
class Serving:
    """A service that runs, and what it has written to standard error so far."""

    folder: Path
    url: str
    environment: dict[str, str]
    process: subprocess.Popen[str]
    log: Path

    def said(self) -> str:
        return self.log.read_text()

    def run(self, *arguments: str, given: str = "", **environment: str) -> Done:
        """One command that talks to it, with the owner's token, in this process."""
        of_command = {**self.environment, "TRIPLEWIRE_SERVICE": self.url, **environment}
        with mock.patch.dict(os.environ, of_command):
            return triplewire(*arguments, stdin=given.encode())

    def out(self, *arguments: str, given: str = "", **environment: str) -> str:
        """What a command that ends well has written."""
        done = self.run(*arguments, given=given, **environment)
        assert done.code == 0, done.err
        return done.out

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        """The status and the body of an answer."""
        return self.ask("GET", path, token=token)

    def ask(
        self, method: str, path: str, body: Any = None, token: str = TOKEN, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """The same of any request; `body`: bytes, or an object of JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header(
            "Content-Type", "application/octet-stream" if isinstance(body, bytes) else "application/json"
        )
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self) -> int:
        """Ends it as a supervisor does; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(300)


@contextmanager
def serving(
    folder: Path, *options: str, port: int = 0, program: Sequence[str] = (PROGRAM,), **environment: str
) -> Iterator[Serving]:
    """A service over a folder, until the block ends; `port`: 0 for any; `program`: the command `triplewire`."""
    port, log = port or free_port(), folder.with_suffix(f".{time.monotonic_ns()}.log")
    of_process = {**os.environ, "TRIPLEWIRE_TIER": "interpreted", "TRIPLEWIRE_TOKEN": TOKEN, **environment}
    of_process.setdefault("TRIPLEWIRE_WAIT_SECONDS", "300")
    command = [*program, "serve", "--data", str(folder), "--port", str(port), *options]
    with log.open("w") as stream:
        process = subprocess.Popen(command, env=of_process, stderr=stream, text=True, start_new_session=True)
    made = Serving(folder, f"http://127.0.0.1:{port}", of_process, process, log)
    try:
        end = time.monotonic() + 300
        while f"serving at {made.url}/" not in made.said():
            is_late = process.poll() is not None or time.monotonic() > end
            assert not is_late, made.said()
            time.sleep(0.05)
        yield made
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(300)
