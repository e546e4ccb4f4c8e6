"""Deliveries to whatever Apprise knows, as ntfy, Slack, Discord and Matrix (the extra `messengers`).

Addresses are those of Apprise behind `apprise:`, and hold its tokens: they are shown nowhere. Which of its services may
be named is a setting.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from triplewire.deliver.messages import Channel, Message, Outcome
from triplewire.errors import AddressError, ArgumentError, UnavailableError
from triplewire.net.foreign import only_public_addresses

_NOT_THEIRS = {"template", "retry", "wait", "rto", "cto", "verify"}  # reads a file of ours; holds up others
_PREFIX = "apprise:"


class Messengers(Channel):
    """Sends events as texts."""

    def check(self, address: str) -> None:
        """Raises `TriplewireError` where Apprise does not know the address, or the service does not allow it."""
        self._plugin(address)

    def _plugin(self, address: str) -> Any:
        # imported here because it takes a while, and is not there without the extra
        try:
            import apprise
        except ImportError:
            remedy = "in a copy of the sources: pip install '.[messengers]'"
            raise UnavailableError("these deliveries need Apprise", remedy=remedy) from None
        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # what it tells may have the address in it
        url = address.removeprefix(_PREFIX)
        scheme = url.partition(":")[0].lower()
        if scheme not in self._settings.messengers.split(","):
            raise ArgumentError(f"this service delivers to no {scheme}:", remedy=f"known: {self._settings.messengers}")
        plugin: Any = apprise.Apprise.instantiate(url)
        if plugin is None:
            raise ArgumentError(f"this is no address of {scheme}", remedy="see the documentation of Apprise")
        asked = {name.lower() for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
        usual = {name for name, _ in parse_qsl(urlsplit(plugin.url()).query) if name == "template"}
        if wrong := sorted((asked | usual) & _NOT_THEIRS):
            raise ArgumentError(f"the address may not have {wrong[0]}=")
        return plugin

    def send(self, message: Message) -> Outcome:
        """One try."""
        plugin = self._plugin(message.target.address)
        guard = nullcontext() if self._settings.allow_private_addresses else only_public_addresses()
        try:
            with guard:
                is_taken = bool(plugin.notify(body=message.text(), title=message.title))
        except AddressError as error:
            return Outcome(error.what, of_target=True)
        except Exception as error:  # of a library that talks to many services; its text may have the address in it
            return Outcome(f"the service failed: {type(error).__name__}", of_target=True)
        return Outcome("taken" if is_taken else "the service did not take it", is_delivered=is_taken)
