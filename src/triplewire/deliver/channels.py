"""The channels that events are delivered over, by the kind of a target, and by the address that somebody names.

    https://HOST/PATH                   webhook
    xmlrpc:https://HOST/PATH            xmlrpc: calls `notify`
    kafka://HOST:PORT/TOPIC             kafka
    mailto:NAME@HOST                    mail
    apprise:SCHEME://...                apprise

A new channel is a `Channel` and a line here; `Deliveries(channels=...)` takes others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triplewire.broker.subscriptions.targets import DIGESTS, Target
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.mail import Mail
from triplewire.deliver.messages import Channel, Message, Outcome
from triplewire.deliver.messengers import Messengers
from triplewire.deliver.topics import Topics
from triplewire.deliver.webhooks import Posts, XmlRpc, cloud_event
from triplewire.errors import ArgumentError
from triplewire.net.addresses import shown

_SCHEMES = {
    "http": "webhook",
    "https": "webhook",
    "xmlrpc": "xmlrpc",
    "kafka": "kafka",
    "mailto": "mail",
    "apprise": "apprise",
}
_SETTINGS = {"ordered", "digest"}
_FOR_PEOPLE = {"mail", "apprise"}  # which may have digests
_LONGEST = 2_000  # characters of an address


class Channels:
    """All channels. `more`: others by kind."""

    def __init__(self, settings: DeliverySettings, more: Mapping[str, Channel] | None = None) -> None:
        self._by_kind: dict[str, Channel] = {
            "webhook": Posts(settings, cloud_event),
            "xmlrpc": XmlRpc(settings),
            "kafka": Topics(settings),
            "mail": Mail(settings),
            "apprise": Messengers(settings),
            **(more or {}),
        }

    def target(self, address: str, secret: str = "", settings: Mapping[str, Any] | None = None) -> Target:
        """The target that somebody names. Raises `TriplewireError` where it cannot be one."""
        kind = _SCHEMES.get(address.partition(":")[0].lower(), "")
        if not kind or len(address) > _LONGEST:
            remedy = "https://..., xmlrpc:https://..., kafka://..., mailto:... or apprise:..."
            raise ArgumentError("this is no address that events can be delivered to", remedy=remedy)
        if unknown := sorted(set(settings or {}) - _SETTINGS):
            raise ArgumentError(f"{unknown[0]!r} is no setting of a target", remedy=f"known: {', '.join(_SETTINGS)}")
        if digest := (settings or {}).get("digest"):
            if kind not in _FOR_PEOPLE:
                raise ArgumentError("only mail and messages have digests", remedy="leave out digest")
            if digest not in DIGESTS:
                raise ArgumentError(f"{digest!r} is no digest", remedy=f"known: {', '.join(DIGESTS)}")
        address = address.removeprefix("xmlrpc:")
        self._by_kind[kind].check(address)
        return Target(kind, address, secret, dict(settings or {}))

    def send(self, message: Message) -> Outcome:
        """One try. Raises `TriplewireError` where nothing could be tried."""
        kind = message.target.kind
        if kind not in self._by_kind:
            raise ArgumentError(f"{kind!r} is no channel of this service")
        return self._by_kind[kind].send(message)

    def ask(self, target: Target, origin: str, callback: str) -> Outcome:
        """Ask a receiver whether it wants events, where its channel can (webhooks)."""
        channel = self._by_kind[target.kind]
        if target.kind != "webhook" or not isinstance(channel, Posts):
            return Outcome("not asked")
        return channel.ask(target.address, origin, callback)

    def close(self) -> None:
        """Give up what stays open."""
        for channel in self._by_kind.values():
            channel.close()


def shown_address(kind: str, address: str) -> str:
    """An address as it may be shown: those of Apprise are secrets but for their beginning."""
    if kind != "apprise":
        return shown(address)
    return f"{address.partition('://')[0]}://***"
