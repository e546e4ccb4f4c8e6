"""Tests that take `matcher` run once for each registered matcher."""

from __future__ import annotations

import pytest

from amounts import MATCHERS


@pytest.fixture(params=MATCHERS)
def matcher(request: pytest.FixtureRequest) -> str:
    """The name of a matcher."""
    return str(request.param)
