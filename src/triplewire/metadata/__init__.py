"""Metadata that keeps itself current (MDV paper). `docs/metadata.md` is the guide.

Documents refer to each other, rules are over all of them, and caches follow. `Provider` has global metadata,
`Repository` a cache; `RemoteProvider`, `Follower` and `move` connect the two over HTTP.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplewire.metadata.backbone import Peer
    from triplewire.metadata.batches import Batch, Snapshot
    from triplewire.metadata.follow import Follower, move
    from triplewire.metadata.messages import Applied, Dropped, Put, RuleText, Told, Withdraw
    from triplewire.metadata.provider import Provider
    from triplewire.metadata.registry import Registry
    from triplewire.metadata.remote import RemoteProvider
    from triplewire.metadata.repository import Repository

_MODULES = {
    "Applied": "messages",
    "Batch": "batches",
    "Dropped": "messages",
    "Follower": "follow",
    "Peer": "backbone",
    "Provider": "provider",
    "Put": "messages",
    "Registry": "registry",
    "RemoteProvider": "remote",
    "Repository": "repository",
    "RuleText": "messages",
    "Snapshot": "batches",
    "Told": "messages",
    "Withdraw": "messages",
    "move": "follow",
}

__all__ = [  # in the order of the alphabet
    "Applied",
    "Batch",
    "Dropped",
    "Follower",
    "Peer",
    "Provider",
    "Put",
    "Registry",
    "RemoteProvider",
    "Repository",
    "RuleText",
    "Snapshot",
    "Told",
    "Withdraw",
    "move",
]


def __getattr__(name: str) -> Any:
    # imported when first asked for: the commands import parts of this package, and need not load all of it
    if name in _MODULES:
        return getattr(import_module(f"triplewire.metadata.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'triplewire.metadata' has no attribute {name!r}")
