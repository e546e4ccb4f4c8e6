"""Settings of `triplewire serve`: what counts, what is refused, what is shown."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.cli import run
from triplewire.cli.settings import FILE, EffectiveSettings, read_settings
from triplewire.config import PREFIX, ServiceSettings
from triplewire.errors import TriplewireError

CASES = tomllib.loads((Path(__file__).parents[1] / "cases/service/settings.toml").read_text())["case"]


def found(case: dict[str, Any], folder: Path) -> EffectiveSettings:
    (folder / "secret").write_text("of a file\n")
    if "file" in case:
        (folder / FILE).write_text(case["file"].replace("{folder}", str(folder)))

    def filled(values: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value.replace("{folder}", str(folder)) if isinstance(value, str) else value
            for name, value in values.items()
        }

    options = {"data": folder, **filled(case.get("options", {}))}
    return read_settings(options, environment=filled(case.get("environment", {})))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    if "refused" in case:
        with pytest.raises(TriplewireError) as refused:
            found(case, tmp_path)
        assert case["refused"] in str(refused.value)
        return
    settings = found(case, tmp_path)
    values = {**dataclasses.asdict(settings.service), **dataclasses.asdict(settings.limits)}
    shown = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    assert {name: shown[name] for name in case["values"]} == case["values"]
    for name, origin in case.get("origins", {}).items():
        assert settings.origins.get(name, "default") == origin.replace("{folder}", str(tmp_path))


def test_an_unknown_variable_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_settings({"data": tmp_path}, environment={f"{PREFIX}PROT": "1"})
    assert "did you mean TRIPLEWIRE_PORT?" in capsys.readouterr().err


def test_all_is_shown_but_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIPLEWIRE_TOKEN", "not-to-be-seen")
    (tmp_path / FILE).write_text(
        "database = 'postgresql://me:not-to-be-seen@host/name?sslmode=require&password=not-to-be-seen'\n"
        "upstream = ['https://me:not-to-be-seen@broker.example/']\nfeed_secret = 'not-to-be-seen'"
    )
    assert run(["config", "dump", "--data", str(tmp_path), "--port", "9000", "--json"]) == 0
    written = capsys.readouterr().out
    assert "not-to-be-seen" not in written
    told = json.loads(written)
    assert told["port"] == {"value": 9000, "from": "option"}
    assert told["token"] == {"value": "********", "from": "environment"}
    database = "postgresql://me:********@host/name?sslmode=require&password=********"
    assert told["database"] == {"value": database, "from": str(tmp_path / FILE)}
    assert told["upstream"]["value"] == ["https://me:********@broker.example/"]
    assert told["metrics_token"]["value"] == ""
    assert {field.name for field in dataclasses.fields(ServiceSettings)} < set(told)
    assert run(["config", "dump", "--data", str(tmp_path)]) == 0
    assert "not-to-be-seen" not in capsys.readouterr().out


def test_a_secret_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "dump", "--token", "x"]) == 2
    assert "--token-file" in capsys.readouterr().err


def test_wrong_settings_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FILE).write_text("prot = 1")
    assert run(["serve", "--data", str(tmp_path)]) == 2
    assert "did you mean port?" in capsys.readouterr().err
    assert run(["serve", "--data", str(tmp_path), "--config", str(tmp_path / "absent.toml")]) == 2
    for option in ("--taxonomy", "--operators", "--token-file", "--source-folder"):
        assert run(["serve", "--data", str(tmp_path / "new"), option, str(tmp_path / "absent")]) == 2
    assert run(["serve"]) == 2
