"""A server of feeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.connect.feed_server import Web, served


@pytest.fixture
def web() -> Iterator[Web]:
    with served() as state:
        yield state
