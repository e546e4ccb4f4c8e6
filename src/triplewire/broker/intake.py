"""What becomes of what a source brings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Row

from triplewire.broker.publications import Came
from triplewire.errors import Refusal

if TYPE_CHECKING:
    from triplewire.broker.broker import Broker, Taken


@dataclass
class Intake:
    """What became of a document: publications that were accepted, and what was refused or repaired."""

    taken: list[Taken] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def take(broker: Broker, came: Came, rows: Sequence[Row[Any]] = (), *, readers: Iterable[str] | None = None) -> Intake:
    """Take over a document; what is accepted is committed and synced. `rows`: the sources that it comes from, where
    they are registered. Raises what `Broker.publish` raises."""
    source = rows[0].id if rows else ""
    return Intake(broker.publish(came.publications, source=source, readers=readers), came.refusals)
