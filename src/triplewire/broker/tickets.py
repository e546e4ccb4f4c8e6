"""Tickets: what gives its bearer a right. Only their SHA-256 is kept, so that a copy of the database gives none.

A ticket has 256 random bits and a checksum, `tw_KIND_RANDOM_CHECK`, by which scanners for secrets know
it. Kinds: `ctl` (renew, change, cancel one subscription), `api` (all of an owner), `pub`
(publish to a source). The key of a feed is not kept at all: it is made from the number of its subscription with a
secret that lies outside of the database, and gives the right to read. What has to be read again, as what webhooks are
signed with, is kept sealed with that secret (Fernet: AES-128-CBC and HMAC-SHA-256).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import zlib
from collections.abc import Callable
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken

from triplewire.errors import StoreError

CONTROL, API, PUBLISH = "ctl", "api", "pub"
SECRET_BYTES = 32
_KEY_BYTES = 15
_SEALED = "sealed:"


def new_ticket(kind: str) -> str:
    """A ticket of a kind."""
    stem = f"tw_{kind}_{secrets.token_urlsafe(SECRET_BYTES)}"
    return f"{stem}_{_check(stem)}"


def digest(ticket: str) -> bytes:
    """What is kept of a ticket, or of a token that its owner has chosen."""
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()


def _check(stem: str) -> str:
    return base64.urlsafe_b64encode(zlib.crc32(stem.encode("utf-8", "surrogatepass")).to_bytes(4, "big"))[:6].decode()


def feed_key(number: int, secret: bytes) -> str:
    """The key of the feed of a subscription: an address that nobody can guess."""
    return f"{number}-{_code(b'feed %d' % number, secret)}"


def callback_key(number: int, secret: bytes) -> str:
    """The key of the callback of a lease (`triplewire.broker.incoming.websub_subscriber`)."""
    return _code(b"websub %d" % number, secret)


def grant_key(target: int, secret: bytes) -> str:
    """The key of the address at which a receiver grants what it was asked: deliveries to a target."""
    return f"{target}-{_code(b'target %d' % target, secret)}"


def identity(secret: bytes) -> str:
    """What names the service of this secret, gives no right, and may be told to everybody."""
    return f"urn:triplewire:service:{_code(b'service', secret)}"


def _code(what: bytes, secret: bytes) -> str:
    return base64.b32encode(hmac.digest(secret, what, "sha256")[:_KEY_BYTES]).decode().lower()


def number_of(key: str, secret: bytes, made: Callable[[int, bytes], str] = feed_key) -> int | None:
    """The number of the subscription whose feed has this key, or of what `made` makes keys of; None for a key that was
    not made here."""
    text = key.partition("-")[0]
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        return None
    known = made(int(text), secret)
    return int(text) if hmac.compare_digest(known.encode(), key.encode("utf-8", "surrogatepass")) else None


def sealed(text: str, secret: bytes) -> str:
    """A text as the store keeps it, for who has the secret; "" for none."""
    return _SEALED + _cipher(secret).encrypt(text.encode("utf-8", "surrogatepass")).decode() if text else ""


def opened(text: str, secret: bytes) -> str:
    """The text that was sealed; one that an older version has kept as it is. Raises `StoreError` where the secret is
    another one."""
    if not text.startswith(_SEALED):
        return text
    try:
        return _cipher(secret).decrypt(text.removeprefix(_SEALED)).decode("utf-8", "surrogatepass")
    except InvalidToken:
        what = "what it is signed with was kept under another feed_secret"
        raise StoreError(what, remedy="put that back, or give the target its secret anew") from None


@lru_cache(4)
def _cipher(secret: bytes) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hmac.digest(secret, b"sealed", "sha256")))
