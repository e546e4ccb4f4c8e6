"""The files in `deploy` name what there is: settings, extras, ports, options. No image is built here."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from triplewire.cli import run
from triplewire.config import VARIABLES, ServiceSettings

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UNIT = (ROOT / "deploy" / "triplewire.service").read_text()


@pytest.fixture
def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile with their arguments, in order."""
    text = (ROOT / "deploy" / "Containerfile").read_text()
    lines = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [(name, argument.strip()) for name, _, argument in (line.partition(" ") for line in lines if line)]


def test_the_image_is_made_of_what_there_is(instructions: list[tuple[str, str]]) -> None:
    of = dict(instructions)
    version = re.fullmatch(r"docker\.io/library/python:3\.(\d+)-slim", of["FROM"])
    assert version is not None
    assert int(version[1]) >= int(PROJECT["requires-python"].removeprefix(">=3."))
    assert of["COPY"] == ". /src"
    assert set((ROOT / ".dockerignore").read_text().split()) >= {".git", ".venv", ".venv-cms"}, "what is no source"
    (extras,) = re.findall(r"pip install .*?'/src\[(.+?)\]'", of["RUN"])
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert subprocess.run(["sh", "-n", "-c", of["RUN"]], check=False).returncode == 0


def test_the_container_serves_as_nobody_in_particular(
    instructions: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    of, names = dict(instructions), [name for name, _ in instructions]
    environment = dict(pair.split("=") for name, text in instructions if name == "ENV" for pair in text.split())
    assert set(environment) <= {*VARIABLES, "NUMBA_CPU_NAME"}
    assert environment["TRIPLEWIRE_DATA"] == of["VOLUME"]
    assert names.index("RUN") < names.index("USER") < names.index("CMD"), "it is installed, but not run, as root"
    assert f"useradd --system --uid {ServiceSettings.port} {of['USER']}" in of["RUN"]
    assert int(of["EXPOSE"]) == ServiceSettings.port
    kind, _, command = of["HEALTHCHECK"].partition(" ")
    program, option, code = json.loads(command)
    assert (kind, program, option) == ("CMD", "python", "-c")
    ast.parse(code)
    assert f"http://127.0.0.1:{ServiceSettings.port}/readiness" in code
    (entry,) = json.loads(of["ENTRYPOINT"])
    assert entry in PROJECT["scripts"]
    assert run([*json.loads(of["CMD"]), "--help"]) == 0
    assert "--data" in capsys.readouterr().out


def test_the_unit_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    (started,) = re.findall(r"^ExecStart=\S+/(.+)$", UNIT, re.MULTILINE)
    program, command, *rest = started.split()
    assert program in PROJECT["scripts"]
    assert run([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in rest if option.startswith("--"))
    (environment,) = re.findall(r"^Environment=(.+)$", UNIT, re.MULTILINE)
    assert {pair.partition("=")[0] for pair in environment.split()} <= set(VARIABLES)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not there")
def test_systemd_knows_all_of_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "triplewire.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT, flags=re.MULTILINE))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "triplewire.service" in line] == []
