"""Which servers may be asked: the parts of a URL, the addresses that its host may have, the certificates it may show.

A name is resolved once, where the connection is made, and the checked address is the one that is connected to: see
`triplewire.net.transport`. `ipaddress.is_global` is not enough: it takes multicast, NAT64, 6to4 and others for global
(RFC 6890 and its registry).
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from triplewire.errors import AddressError
from triplewire.net.resolver import RESOLVER

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052
_OWN_NAT64 = "64:ff9b:1::/48"  # of one's own network: RFC 8215
_VERSION_4 = ("192.88.99.0/24", "192.0.0.0/24", "100.64.0.0/10")
_VERSION_6 = ("::/96", "fec0::/10", "3fff::/20", "5f00::/16", _OWN_NAT64)
_REFUSED = [ipaddress.ip_network(text) for text in (*_VERSION_4, *_VERSION_6)]
_URL = re.compile(r"https?://[!-~]+")
_READ_IN_TWO_WAYS = re.compile(r'[\\@"<>^`{|}#]')
_HOST = re.compile(r"[A-Za-z0-9._:-]+")
_WEB_PORTS, _LEAST_PORT = {80, 443}, 1024


class Target(NamedTuple):
    """What is asked: the parts of a URL, and what may be behind it."""

    is_secure: bool
    host: str
    port: int
    path: str
    allow_private: bool
    ca_file: str = ""  # certificates that are trusted instead of those of the system

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"

    @property
    def has_web_port(self) -> bool:
        """Is the port 80, 443 or one from 1024 on? Others belong to servers of mail and the like, which a URL from
        outside must not make us talk to."""
        return self.port in _WEB_PORTS or self.port >= _LEAST_PORT


def target_of(url: Any, allow_private: bool = False, ca_file: Any = "") -> Target:
    """The parts of a URL in plain ASCII: nothing in it may be read in two ways. `ca_file`: see `Target`. Raises
    `ValueError`, which says what is expected."""
    if not isinstance(url, str) or not _URL.fullmatch(url) or _READ_IN_TWO_WAYS.search(url):
        raise ValueError("url must be an http or https address in ASCII, without user, backslash and fragment")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError as error:
        raise ValueError(f"url is wrong: {error}") from None
    if not _HOST.fullmatch(host) or port == 0:
        raise ValueError(f"url has no host that can be asked: {url!r}")
    is_secure = parts.scheme == "https"
    if not isinstance(ca_file, str) or (ca_file and not is_secure):
        raise ValueError("ca_file is the path of a file of certificates (PEM), and url begins with https")
    try:
        if ca_file:
            trusting(ca_file)
    except (OSError, ValueError) as error:
        raise ValueError(f"ca_file {ca_file!r} has no certificates (PEM) that can be read: {error}") from None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_secure, host, port or (443 if is_secure else 80), path, allow_private, ca_file)


def trusting(ca_file: str) -> ssl.SSLContext:
    """What verifies certificates: by those of a file, which is read again once it has changed, or of the system. Raises
    `OSError`, of which `ssl.SSLError` is one, where the file has none."""
    if not ca_file:
        return _trusting("", ())
    state = os.stat(ca_file)
    return _trusting(ca_file, (state.st_mtime_ns, state.st_size, state.st_ino))


@lru_cache(maxsize=16)
def _trusting(ca_file: str, state: tuple[int, ...]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file or None)


def checked_addresses(host: str, port: int, *, allow_private: bool, seconds: float) -> list[str]:
    """The addresses that may be connected to. Raises `AddressError` where the name has none, or any that is not
    allowed, and where no name server answers within so many seconds."""
    try:
        addresses = RESOLVER.addresses(host, port, seconds)
    except TimeoutError:
        what = f"the address of {host!r} was not found out within {seconds:.3g} s"
        raise AddressError(what, remedy="look whether the name server answers") from None
    except (OSError, UnicodeError) as error:
        raise AddressError(f"the name {host!r} has no address: {error}") from None
    refused = [address for address in addresses if not is_public(address)]
    if refused and not allow_private:
        remedy = "allow_private_addresses = true allows it"
        raise AddressError(f"{host} has the private address {refused[0]}", remedy=remedy)
    return addresses


def is_public(text: str) -> bool:
    """Is it an address of the public network, also after what is wrapped in it is unwrapped?"""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(
        part.is_global
        and not (part.is_multicast or part.is_reserved)
        and not any(part.version == network.version and part in network for network in _REFUSED)
        for part in unwrapped(address)
    )


def unwrapped(address: Address) -> list[Address]:
    """The address, and those of version 4 inside it; of one that only stands for another, that one alone."""
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
