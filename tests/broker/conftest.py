"""Limits of time that a loaded machine would reach."""

from __future__ import annotations

import pytest

from triplewire.broker.feeds import websub
from triplewire.broker.incoming import websub_subscriber
from triplewire.broker.subscriptions import trial
from triplewire.service import tester


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices and tries come of all publications that there are, and callbacks have minutes to answer."""
    monkeypatch.setattr(trial, "SECONDS", 300.0)
    monkeypatch.setattr(tester, "_SECONDS", 300.0)
    monkeypatch.setattr(websub, "_SECONDS", 300.0)
    monkeypatch.setattr(websub_subscriber, "_SECONDS", 300.0)
