"""Starts a process of this package that is talked to through pipes: the parsing process, isolated operators."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping


def started(
    module: str, memory: int, *, environment: Mapping[str, str] | None = None, own_group: bool = False
) -> subprocess.Popen[bytes]:
    """A Python process that runs a module with an address space of `memory` bytes, with the import path of this one.

    Its standard input and output are pipes that do not block. `own_group`: what it starts can be ended with it. Raises
    `OSError`.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(memory)],
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
