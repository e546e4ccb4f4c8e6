"""The blocks `sh service` of a page run one after the other, in an empty folder that has the project's `examples`.

`triplewire ... &` is a process that runs on until the page ends, or until `kill %1`; `export NAME=$(triplewire ...)`
keeps what a command prints. What else a line says, as `pip install`, is passed over.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from cli.runner import triplewire
from docs.blocks import ROOT, blocks, markdown_files
from pipeline.connect.servers import free_port

PROGRAM = str(Path(sys.executable).parent / "triplewire")
_EXPORT = re.compile(r"export (\w+)=\$\((.*)\)")
PAGES = [page for page in markdown_files() if any("service" in block.words for block in blocks(page))]


class Shell:
    """What a person's shell does with such lines. `ended`: the exit codes of what ran in the background."""

    def __init__(self, folder: Path) -> None:
        port = str(free_port())
        address = {"TRIPLEWIRE_PORT": port, "TRIPLEWIRE_SERVICE": f"http://127.0.0.1:{port}"}
        self.environment = {**os.environ, **address, "TRIPLEWIRE_TIER": "interpreted"}
        self.ended: list[int] = []
        self._folder, self._log = folder, folder / "log"
        self._running: list[subprocess.Popen[bytes]] = []

    def run(self, line: str) -> str:
        """Run one line; returns what it prints."""
        if export := _EXPORT.fullmatch(line):
            self.environment[export[1]] = self.run(export[2]).split()[-1]
            return ""
        words = shlex.split(line, comments=True)
        if words == ["kill", "%1"]:
            self.end()
        if words[:1] != ["triplewire"]:
            return ""
        if words[-1] == "&":
            self._start(words[1:-1])
            return ""
        with contextlib.chdir(self._folder), mock.patch.dict(os.environ, self.environment, clear=True):
            done = triplewire(*words[1:])
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
        return done.out

    def _start(self, arguments: list[str]) -> None:
        with self._log.open("wb") as log:
            command = [PROGRAM, *arguments]
            self._running.append(subprocess.Popen(command, cwd=self._folder, env=self.environment, stderr=log))
        end = time.monotonic() + 300
        while "serving at" not in self._log.read_text():
            assert time.monotonic() < end, self._log.read_text()
            time.sleep(0.05)

    def end(self) -> None:
        """End what runs in the background."""
        for process in self._running:
            process.terminate()
            self.ended.append(process.wait(300))
        self._running.clear()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell, printed = Shell(tmp_path), dict[str, str]()
    shell.environment.pop("TRIPLEWIRE_TOKEN", None)
    try:
        for block in blocks(page):
            if "service" in block.words:
                for line in block.text.replace("\\\n", " ").splitlines():
                    printed[line] = shell.run(line.strip())
    finally:
        shell.end()
    assert set(shell.ended) <= {0}
    assert any('"type": "matched"' in text and "puffin" in text for text in printed.values()), "no entry came"
