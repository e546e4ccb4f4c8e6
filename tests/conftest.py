"""For all tests: a generated example may take as long as it needs, since the first one may have to compile kernels; and
the order of the tests, which keeps two workers busy to the end (`pytest -n 2 --dist loadgroup`).

Kernels are compiled once, by the first test. Meanwhile the other worker runs tests that need none: what both compile at
the same time is compiled twice. Groups that take minutes come next, so that none is left alone at the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("triplewire", deadline=None)
settings.load_profile("triplewire")

COMPILES = "test_generated_publications[sparql-0]"
WITHOUT_KERNELS = (
    "conformance/test_feeds.py",
    "house",
    "ir",
    "languages",
    "model",
    "read",
    "conformance/test_rdf_syntax.py",
    "conformance/test_w3c_sparql_syntax.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What compiles, what needs no kernel, long groups, all the rest; within each, as collected."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[int, int]:
    if item.name == COMPILES:
        return 0, 0
    path = item.path.relative_to(Path(__file__).parent).as_posix()
    for number, start in enumerate(WITHOUT_KERNELS):
        if path == start or path.startswith(f"{start}/"):
            return 1, number
    marker = item.get_closest_marker("xdist_group")
    return (3, 0) if marker is None else (2, marker.args[0] != "spark")
