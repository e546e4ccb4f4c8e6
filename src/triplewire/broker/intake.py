"""What becomes of what a source brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Row

from triplewire.broker.publications import Came

if TYPE_CHECKING:
    from triplewire.broker.broker import Broker


def take(broker: Broker, came: Came, rows: Sequence[Row[Any]]) -> None:
    """Take over a document of registered sources; what is accepted is committed and synced. Raises what
    `Broker.publish` raises."""
    broker.publish(came.publications, source=rows[0].id)
