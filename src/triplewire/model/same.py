"""The rules by which a match is the same as one that was told; who applies them: `triplewire.model.match`."""

from __future__ import annotations

import enum


class Same(enum.StrEnum):
    """What makes two matches of a subscription the same, of which one is told (docs/streams.md)."""

    ITEM = "item"
    """The publication's id and its content: an item is told again when it has changed."""
    ID = "id"
    """The publication's id alone."""
    BINDINGS = "bindings"
    """The bindings, whatever publication they are of; blank nodes in them are alike."""
