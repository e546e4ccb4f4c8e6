"""Where the shared test data lies; tests that need it skip, saying why, where it is absent."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("TRIPLEWIRE_TEST_DATA") or ROOT.parent / "shared" / "data")


def path(name: str) -> Path:
    """A file or folder of the shared data; skips the test where it is absent."""
    found = DATA / name
    if not found.exists():
        pytest.skip(f"shared test data is absent: {name} (looked in {DATA}; set TRIPLEWIRE_TEST_DATA)")
    return found


def lines(name: str) -> Iterator[str]:
    """The lines of a gzipped text file of the shared data."""
    with gzip.open(path(name), "rt", encoding="utf-8") as stream:
        yield from stream


def members(name: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in a tar archive of the shared data, in the archive's order."""
    with tarfile.open(path(name)) as archive:
        for member in archive:
            if member.isfile():
                stream = archive.extractfile(member)
                assert stream is not None
                yield member.name, stream.read()
