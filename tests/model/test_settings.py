"""Settings from the environment: unknown variables are named, with what was probably meant."""

from __future__ import annotations

import re

import pytest

from triplewire import config
from triplewire.config import VARIABLES, Settings

UNKNOWN = {
    "TRIPLEWIRE_MAX_BINDING": "did you mean TRIPLEWIRE_MAX_BINDINGS?",
    "TRIPLEWIRE_MAXBINDINGS": "did you mean TRIPLEWIRE_MAX_BINDINGS?",
    "TRIPLEWIRE_TEIR": "did you mean TRIPLEWIRE_TIER?",
    "TRIPLEWIRE_CACHE_DIR": "did you mean TRIPLEWIRE_CACHE?",
    "TRIPLEWIRE_COLOUR": "triplewire.config.VARIABLES has those that are read",
}


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_told", set())


@pytest.mark.parametrize(("name", "part"), UNKNOWN.items())
def test_an_unknown_variable_is_told_of_once(name: str, part: str) -> None:
    told: list[str] = []
    for _ in range(2):
        assert Settings.from_environment({name: "5", "HOME": "x"}, told.append) == Settings()
    assert len(told) == 1
    assert name in told[0]
    assert part in told[0]


def test_without_a_listener_python_warns() -> None:
    with pytest.warns(UserWarning, match=re.escape("did you mean TRIPLEWIRE_TIER?")):
        Settings.from_environment({"TRIPLEWIRE_TEIR": "auto"})


def test_known_variables_are_not_told_of() -> None:
    told: list[str] = []
    values = dict.fromkeys(VARIABLES, "5")
    assert Settings.from_environment(values, told.append).max_bindings == 5
    assert told == []
