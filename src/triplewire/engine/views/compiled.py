"""Decides whether an engine is compiled before it is saved for other processes, which will match given files."""

from __future__ import annotations

from collections.abc import Iterable

from triplewire.engine.current_snapshot import publications_of
from triplewire.engine.engine import Engine
from triplewire.read.sources import Source


def is_compiled_for(engine: Engine, sources: Iterable[Source]) -> bool:
    """Is the engine compiled, now that these files and folders are to be matched? Large work waits for the kernels
    here, as `Engine.match_files` does. For small work they are compiled in the background."""
    return engine._current.snapshot_for_matching(lambda most: publications_of(sources)).columnar
