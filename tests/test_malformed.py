"""What is said against malformed subscriptions, subscription files and publications: the exact texts.

The tables are data: `tests/cases/malformed/*.toml`. After a change of wording, look at each new text with
TRIPLEWIRE_TEST_SHOW_ERRORS=1, which prints it, and write it into the table.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire.errors import LanguageError, ReadError, Refusal, TriplewireError
from triplewire.languages import parse
from triplewire.languages.sources.files import read_rows
from triplewire.read import read

FOLDER = Path(__file__).resolve().parent / "cases" / "malformed"
SHOW = os.environ.get("TRIPLEWIRE_TEST_SHOW_ERRORS") == "1"


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _cases(*names: str) -> list[Any]:
    return [
        pytest.param(table.get("language", ""), case, id=f"{name}: {case['name']}")
        for name in names
        for table in [_table(name)]
        for case in table["case"]
    ]


def _same(name: str, said: object, wanted: object) -> None:
    if SHOW:
        print(f"\n[{name}]\n{said}")
    else:
        assert said == wanted


@pytest.mark.parametrize(("language", "case"), _cases("sparql", "gql", "mdv", "predicates"))
def test_subscription(language: str, case: dict[str, str]) -> None:
    with pytest.raises(TriplewireError) as caught:
        parse(case["text"], language, id="q")
    _same(case["name"], str(caught.value), case.get("error"))
    if isinstance(caught.value, LanguageError):
        assert caught.value.where.startswith("q:"), "a wrong text is told with its line"


@pytest.mark.parametrize(("_language", "case"), _cases("files"))
def test_subscription_file(_language: str, case: dict[str, Any], tmp_path: Path) -> None:
    for name, text in case["files"].items():
        (tmp_path / name).write_text(text.removeprefix("\n"), encoding="utf-8")
    refusals: list[Refusal] = []
    kept = [parsed.row.id for parsed in read_rows([tmp_path], on_refusal=refusals.append)]
    said = [str(refusal).replace(str(tmp_path), "FOLDER") for refusal in refusals]
    _same(case["name"], said, case.get("refusals"))
    assert kept == case["kept"]
    assert all(refusal.kind == "subscription" for refusal in refusals)


@pytest.mark.parametrize(("_language", "case"), _cases("publications"))
def test_publication(_language: str, case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / case["file"]
    file.write_text(case["text"].removeprefix("\n"), encoding="utf-8")
    refusals: list[Refusal] = []
    kept = [publication.id for publication in read(file, on_refusal=refusals.append)]
    said = [str(refusal).replace(str(tmp_path), "FOLDER") for refusal in refusals]
    _same(case["name"], said, case.get("refusals"))
    assert kept == case.get("kept", [])
    with pytest.raises(ReadError):
        list(read(file))
