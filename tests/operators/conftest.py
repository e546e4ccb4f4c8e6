"""What calls cost in tests."""

from __future__ import annotations

import pytest

from triplewire.operators.order import statistics


@pytest.fixture(autouse=True)
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls that take less than half a second are taken for equally dear: a loaded machine changes no order."""
    monkeypatch.setattr(statistics, "LEAST_COST", 0.5)
