"""Talks to a service over HTTP, as `publish` and others do: its address, the token, and what it refuses."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from triplewire.config import ServiceSettings
from triplewire.errors import BusyError, ServiceError, StoreError, TriplewireError, UnavailableError, WriteError
from triplewire.folders import text_of_file

_USUAL = f"http://{ServiceSettings.host}:{ServiceSettings.port}"
_TOKEN = "send a token: TRIPLEWIRE_TOKEN, or --token-file FILE; `triplewire token create` makes one"
_SECONDS = 300

ServiceOption = Annotated[
    str, typer.Option("--service", metavar="URL", help=f"The service; default: TRIPLEWIRE_SERVICE, or {_USUAL}.")
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="The file that holds the token; default: TRIPLEWIRE_TOKEN."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="What the service answers, as JSON.")]


@dataclass(frozen=True)
class Asking:
    """Which service is asked, and by whom; a group of options."""

    service: ServiceOption = ""
    token_file: TokenFileOption = None


def token_of(asking: Asking) -> tuple[str, str]:
    """The address of the service that is asked, and the token, "" for none. Raises `BadParameter` for no address, and
    what `token_in` raises."""
    from triplewire.net.guard import target_of  # --help does without it

    base = asking.service or os.environ.get("TRIPLEWIRE_SERVICE", "") or _USUAL
    try:
        target_of(base, allow_private=True)
    except ValueError as error:
        raise typer.BadParameter(f"{base!r} is no address of a service: {error}", param_hint="--service") from None
    return base.rstrip("/"), token_in(asking.token_file)


def token_in(file: Path | None, option: str = "--token-file") -> str:
    """The token of a file, which an option names, of the file that the environment names, or of the environment; ""
    for none. Raises `BadParameter` where the file is not there, or has no token, and `StoreError` where it cannot be
    read."""
    named = file or os.environ.get("TRIPLEWIRE_TOKEN_FILE")
    try:
        token = text_of_file(named).strip() if named else os.environ.get("TRIPLEWIRE_TOKEN", "")
    except FileNotFoundError:
        raise typer.BadParameter(f"{named} does not exist", param_hint=option) from None
    except (OSError, ValueError) as error:
        raise StoreError(f"the token cannot be read: {error}", source=str(named)) from None
    if not (token.isascii() and token.isprintable()):
        what = f"{named or 'TRIPLEWIRE_TOKEN'} has no token, which is one line of letters and digits"
        raise typer.BadParameter(what, param_hint=option)
    return token


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another server would get the token."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
"""Asks services, neither through proxies nor where they redirect to."""


class Service:
    """A service, and the right to ask it."""

    def __init__(self, asking: Asking) -> None:
        self.base, self._token = token_of(asking)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        ticket: str = "",
        answers: str = "application/json",
    ) -> Any:
        """The answer to a request: of JSON as an object, None for nothing, and of another type that is asked for
        (`answers`) as bytes. `body`: bytes, or an object of JSON. Raises `UnavailableError` where no service of ours
        answers, `ServiceError` where it refuses."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind} if data is not None else {}
        if token := ticket or self._token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with OPENER.open(request, timeout=_SECONDS) as answer:
                content, type_ = answer.read(), answer.headers.get_content_type()
        except urllib.error.HTTPError as error:
            sent = "the query" if kind == "application/json" else "the document"
            raise _refused(error, self.base + path, sent) from None
        except (OSError, HTTPException, UnicodeError) as error:  # a name of a host that cannot be
            cause = getattr(error, "reason", error)
            remedy = "start it: triplewire serve; or name another: --service"
            raise UnavailableError(f"the service does not answer: {cause}", source=self.base, remedy=remedy) from None
        try:
            if type_ != answers and content:
                raise ValueError(type_)
            return content if answers != "application/json" else json.loads(content) if content else None
        except (ValueError, RecursionError):
            what = f"it gives {type_}, where a service gives {answers}"
            raise UnavailableError(what, source=self.base, remedy="name a service: --service") from None


def in_path(name: str) -> str:
    """An id as a part of an address."""
    return quote(name, safe="")


def _refused(error: urllib.error.HTTPError, where: str, sent: str) -> TriplewireError:
    """What a service has refused, from its problem details (RFC 9457). `sent`: what lines and columns are of."""
    try:
        said = json.loads(error.read())
    except (OSError, ValueError, HTTPException):
        said = {}
    said = said if isinstance(said, dict) else {}
    kind = {503: BusyError, 507: WriteError}.get(error.code, UnavailableError if error.code >= 500 else ServiceError)
    remedy = _TOKEN if error.code in (401, 403) else said.get("remedy", "")
    place = {name: int(said[name]) for name in ("line", "column", "record") if isinstance(said.get(name), int)}
    what = said.get("title") or said.get("detail") or f"the service answers {error.code} {error.reason}"
    refused = kind(str(what), source=sent if place else where, remedy=str(remedy), **place)
    if isinstance(refused, ServiceError):
        refused.status = error.code
    return refused
