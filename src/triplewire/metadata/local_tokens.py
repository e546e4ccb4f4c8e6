"""Tokens of providers on this machine. Writing to a provider needs a token. One that is started without leaves its own
where only the same user reads it, and commands of that user take it from there."""

from __future__ import annotations

import ipaddress
import os
import secrets
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit


def local_token(address: str) -> str:
    """The token that a provider at an address of this machine has left; "" where there is none."""
    parts = urlsplit(address)
    if not _is_loopback(parts.hostname or "") or parts.port is None:
        return ""
    with suppress(OSError):
        return _file(parts.port).read_text("ascii").strip()
    return ""


def leave_token(port: int) -> str:
    """The token of a provider at a port of this machine: what was left there, or a new one. Raises `OSError`."""
    file = _file(port)
    if token := local_token(f"http://127.0.0.1:{port}"):
        return token
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = secrets.token_urlsafe(24)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.touch(0o600)
    part.write_text(token, "ascii")
    os.replace(part, file)
    return token


def _file(port: int) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "triplewire", f"provider-{port}.token")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
