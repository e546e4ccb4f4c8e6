"""The revision of a subscription of an engine, read without compiling its text."""

from __future__ import annotations

from triplewire.engine.engine import Engine


def revision_in(engine: Engine, id: str) -> str:
    """The revision of the subscription of this id, whose text is not compiled for it; "" where there is none."""
    return engine._snapshot.revision(id)
