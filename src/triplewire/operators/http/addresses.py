"""Which addresses a service may have. A name is resolved once, and the checked address is the one that is connected to.

`ipaddress.is_global` is not enough: it takes multicast, NAT64, 6to4 and others for global (RFC 6890 and its registry).
"""

from __future__ import annotations

import ipaddress
import socket

from triplewire.errors import OperatorError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052
_OWN_NAT64 = "64:ff9b:1::/48"  # of one's own network: RFC 8215
_VERSION_4 = ("192.88.99.0/24", "192.0.0.0/24", "100.64.0.0/10")
_VERSION_6 = ("::/96", "fec0::/10", "3fff::/20", "5f00::/16", _OWN_NAT64)
_REFUSED = [ipaddress.ip_network(text) for text in (*_VERSION_4, *_VERSION_6)]


def is_public(text: str) -> bool:
    """Is it an address of the public network, also after what is wrapped in it is unwrapped?"""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public(part) for part in _unwrapped(address))


def _unwrapped(address: Address) -> list[Address]:
    """The address, and those of version 4 inside it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inside: list[Address] = [address]
    if address.sixtofour is not None:
        inside.append(address.sixtofour)
    if address.teredo is not None:
        inside += address.teredo
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return inside


def _is_public(address: Address) -> bool:
    refused = any(address.version == network.version and address in network for network in _REFUSED)
    return address.is_global and not address.is_multicast and not address.is_reserved and not refused


def checked_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """The addresses that may be connected to. Raises `OperatorError` where the name has none, or any that is not
    allowed."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OperatorError(f"the name {host!r} has no address: {error}") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    refused = [address for address in addresses if not is_public(address)]
    if refused and not allow_private:
        raise OperatorError(
            f"{host} has the private address {refused[0]}", remedy="allow_private_addresses = true allows it"
        )
    return addresses
