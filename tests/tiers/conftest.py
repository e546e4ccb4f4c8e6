"""All kernels compiled on disk, and an engine that does not know it yet."""

from __future__ import annotations

import pytest

from triplewire.engine.tiers.kernels import KERNELS, TIER


@pytest.fixture(scope="session")
def kernels_on_disk() -> None:
    """All kernels are compiled, in the folder that processes take which this one starts."""
    assert KERNELS.wait()


@pytest.fixture
def cold(kernels_on_disk: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is as if it had just begun: no kernel is loaded, and none has been waited for."""
    monkeypatch.setenv(TIER, "auto")
    monkeypatch.setattr(KERNELS, "_is_loaded", False)
    monkeypatch.setattr(KERNELS, "spent", 0.0)
