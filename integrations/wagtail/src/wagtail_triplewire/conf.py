"""The setting `TRIPLEWIRE` of the site, a dictionary.

    TRIPLEWIRE = {
        "SERVICE": "http://127.0.0.1:8750",          # the address of the service
        "TOKEN_FILE": "/run/secrets/triplewire",     # its API token; or "TOKEN"
        "SITE": "https://coast.example",             # the address of this site; default: WAGTAILADMIN_BASE_URL
    }

All others have a default, which `Conf` says.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

DAY = 86_400


@dataclass(frozen=True)
class Conf:
    """The settings of the app. Times are seconds."""

    service: str = ""
    token_file: str = ""
    token: str = ""
    site: str = ""
    path: str = "/triplewire/"  # below which the site includes `wagtail_triplewire.urls`
    transparent: dict[str, list[str]] = field(default_factory=dict)  # "app.Model": which requests its owner gets
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)  # templates: name -> {"type", "fields"}
    categories: str = ""  # "app.Model" with `parents`: the classes of the site beside its sections and tags
    lease: int = 7 * DAY  # of a subscription; it is renewed when half of it is over
    pull: int = 600  # between two looks for notifications whose push was lost
    timeout: int = 30  # of one call of the service
    thread: bool = False  # for development: the sender is a thread of the server
    development: bool = False  # tells everybody the token of `guest_file`, for the conformance program
    guest_file: str = ""  # the API token of the service's owner `guest`

    @cached_property
    def base(self) -> str:
        """The address of the site, without a slash at its end."""
        return (self.site or getattr(settings, "WAGTAILADMIN_BASE_URL", "")).rstrip("/")

    @cached_property
    def key(self) -> str:
        """What ids of this site's subscriptions begin with: several sites may share an owner at the service."""
        return hashlib.sha256(self.base.encode()).hexdigest()[:8]

    @cached_property
    def inbox_key(self) -> str:
        """The part of the inbox's address that only the service is told."""
        return hmac.new(settings.SECRET_KEY.encode(), b"triplewire inbox", hashlib.sha256).hexdigest()[:32]

    def url(self, path: str = "") -> str:
        """The address of something of this app."""
        return f"{self.base}{self.path}{path}"

    def secret(self) -> str:
        """The API token; it is read each time, so that a new one needs no restart."""
        return Path(self.token_file).read_text(encoding="utf-8").strip() if self.token_file else self.token

    def guest(self) -> str:
        """The token that a site in development tells everybody."""
        return Path(self.guest_file).read_text(encoding="utf-8").strip() if self.guest_file else ""


def conf() -> Conf:
    """The settings as they are now. Raises `ImproperlyConfigured`."""
    named = getattr(settings, "TRIPLEWIRE", {})
    known = {each.name.upper(): each.name for each in fields(Conf)}
    if unknown := sorted(set(named) - set(known)):
        raise ImproperlyConfigured(f"TRIPLEWIRE: {unknown[0]!r} is no setting; known: {', '.join(known)}")
    made = Conf(**{known[name]: value for name, value in named.items()})
    for name, value in (("SERVICE", made.service), ("SITE, or WAGTAILADMIN_BASE_URL", made.base)):
        if not value.startswith(("http://", "https://")):
            raise ImproperlyConfigured(f"TRIPLEWIRE: {name} is an http or https address, not {value!r}")
    return made
