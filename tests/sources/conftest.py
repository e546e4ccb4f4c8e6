"""Fixtures of the tests of sources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sources.feed_server import Web, served


@pytest.fixture
def web() -> Iterator[Web]:
    """A server of feeds."""
    with served() as server:
        yield server
