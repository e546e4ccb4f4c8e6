"""What `deploy` says of an image and of a system service holds for the command as it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service.serving import serving
from triplewire.cli import run
from triplewire.config import VARIABLES

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CONTAINERFILE, UNIT = ((DEPLOY / name).read_text() for name in ("Containerfile", "triplewire.service"))


def test_the_health_check_tells_whether_the_service_is_there(tmp_path: Path) -> None:
    program, *check = json.loads(re.findall(r"^HEALTHCHECK CMD (.+)$", CONTAINERFILE, re.MULTILINE)[0])
    assert program == "python"

    def exit_code(url: str) -> int:
        command = [sys.executable, *(part.replace("http://127.0.0.1:8750", url) for part in check)]
        assert url in command[-1]
        return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode

    with serving(tmp_path / "data") as service:
        assert exit_code(service.url) == 0
        assert service.end() == 0
        assert exit_code(service.url) == 1


@pytest.mark.parametrize("text", [CONTAINERFILE, UNIT], ids=["image", "unit"])
def test_variables_and_options_are_known(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set(re.findall(r"\bTRIPLEWIRE_\w+", text))
    assert len(names) >= 2
    assert names <= {*VARIABLES}
    options = set(re.findall(r"(?<=\s)--[a-z-]+", " ".join(re.findall(r"triplewire serve (.+)", text))))
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in options)
