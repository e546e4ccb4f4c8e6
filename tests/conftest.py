"""For all tests: how long a generated example may take, and the order of the tests.

An example may take as long as it needs, since the first one may have to compile kernels. The order keeps all workers
busy to the end (`pytest -n 4 --dist loadgroup`). All kernels are compiled by the first test, which takes two minutes.
Meanwhile the others run tests that need none: what two compile at the same time is compiled twice. So no test module
may match when it is imported. Groups that take minutes come next, so that none is left alone at the end.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from amounts import usually
from databases import database_url, emptied, kafka_server, new_database, server, spark

__all__ = ["database_url", "emptied", "kafka_server", "new_database", "server", "spark"]

# what is tested is the compiled trie, from the first match on, in processes that tests start as well; the interpreted
# tier and the change from one to the other have tests of their own (tests/tiers)
os.environ.setdefault("TRIPLEWIRE_TIER", "compiled")

# files that tests make lie in memory where it has room, and go at the end of a run without failures: databases and
# ledgers wait for a disk at each commit
if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

# a hundred processes that tests start read the package's bytecode; else each compiles all of its modules again
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# processes that tests interrupt would wait for ever where a shell has started all this in the background
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until all is collected

settings.register_profile("triplewire", deadline=None, max_examples=usually(30, 100))
settings.load_profile("triplewire")

COMPILES = "test_nothing_is_compiled_where_all_is_on_disk"
WITHOUT_KERNELS = (
    "house",
    "ir",
    "languages",
    "model",
    "net",
    "sources",
    "read",
    "conformance/test_rdf_syntax.py",
    "conformance/test_w3c_sparql_syntax.py",
    "service/test_serve_command.py",  # what these start is interpreted
    "service/test_serving_process.py",
    "broker/test_two_services.py",
)


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    """A command that serves has all loggers write to its standard error, which is closed behind its test."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def examples() -> Path:
    """The folder of the examples."""
    return Path(__file__).resolve().parents[1] / "examples"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What compiles, what needs no kernel, long groups, all the rest; within each, as collected."""
    items.sort(key=_turn)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no search for garbage goes through it."""
    gc.freeze()
    gc.enable()


def _turn(item: pytest.Item) -> tuple[int, int]:
    if item.name == COMPILES:
        return 0, 0
    if (number := _without_kernels(item.path)) is not None:
        return 1, number
    marker = item.get_closest_marker("xdist_group")
    return (3, 0) if marker is None else (2, marker.args[0] != "spark")


@cache
def _without_kernels(file: Path) -> int | None:
    path = file.relative_to(Path(__file__).parent).as_posix()
    starts = (path == start or path.startswith(f"{start}/") for start in WITHOUT_KERNELS)
    return next((number for number, is_there in enumerate(starts) if is_there), None)


QUICK = ("ir", "languages", "model", "net", "notify", "operators", "read")
"""The folders of `--quick` (`make quick`): unit tests that need no compiled kernel, no Spark and no workload. Slow
ones among them are marked `slow`. Other folders are not even imported."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option `--quick`."""
    parser.addoption("--quick", action="store_true", help=f"only the folders {', '.join(QUICK)}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--quick`, folders and files outside of `QUICK` are passed over."""
    tests = Path(__file__).parent
    if not config.getoption("quick") or not collection_path.is_relative_to(tests):
        return None
    parts = collection_path.relative_to(tests).parts
    return True if parts and parts[0] not in QUICK else None
