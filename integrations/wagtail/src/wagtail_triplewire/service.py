"""The service, as this module calls it: XML-RPC, and HTTP for the taxonomy (docs/cms-protocol.md of Triplewire)."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
import xmlrpc.client
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from wagtail_triplewire.conf import Conf, conf

_AGAIN = {401, 403, 408, 429, 500, 502, 503, 504, 507}
"""What another try may mend: the service is away or full, or the token is not right yet."""


class ServiceError(Exception):
    """The service was not reached, or has refused. `is_final`: the same call will be refused again. `code`: as HTTP
    has it, 0 where there was no answer."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.is_final = bool(code) and code not in _AGAIN


class _Connection(xmlrpc.client.Transport):
    """Gives up after a while. One of TLS where the address says so."""

    def __init__(self, of: Conf) -> None:
        super().__init__(use_builtin_types=True, headers=[("Authorization", f"Bearer {of.secret()}")])
        self._conf = of

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        """The connection stays open between calls."""
        if self._connection[0] != host:
            is_tls = self._conf.service.startswith("https:")
            made = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
            self._connection = host, made(urlsplit(self._conf.service).netloc, timeout=self._conf.timeout)
        return self._connection[1]


class Service:
    """Calls of the service with the token of the site. For one thread."""

    def __init__(self) -> None:
        self._conf = conf()
        try:
            transport = _Connection(self._conf)
        except OSError as error:
            raise ServiceError(f"the token cannot be read: {error}") from None
        self._proxy = xmlrpc.client.ServerProxy(self._conf.service.rstrip("/") + "/RPC2", transport)

    def call(self, method: str, **struct: Any) -> Any:
        """Call a method with a struct. Raises `ServiceError`."""
        try:
            return getattr(self._proxy, method)(struct)
        except xmlrpc.client.Fault as fault:
            raise ServiceError(fault.faultString, abs(fault.faultCode)) from None
        except xmlrpc.client.ProtocolError as error:
            raise ServiceError(f"{error.errcode} {error.errmsg}", error.errcode) from None
        except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
            raise ServiceError(f"the service does not answer: {type(error).__name__}: {error}") from None

    def change_taxonomy(self, change: Mapping[str, Any]) -> None:
        """Change what is said of the terms of this site. Raises `ServiceError`."""
        self.http("PATCH", f"/taxonomy?namespace={quote(self._conf.url(), safe='')}", change)

    def http(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Ask another door, which takes JSON. Raises `ServiceError`."""
        request = urllib.request.Request(
            self._conf.service.rstrip("/") + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._conf.secret()}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=self._conf.timeout) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            raise ServiceError(_refusal(error.read()) or str(error), error.code) from None
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(f"the service does not answer: {error}") from None


def _refusal(body: bytes) -> str:
    """What a refusal says, and what to do (RFC 9457); "" where it is none."""
    try:
        said = json.loads(body)
        return "; ".join(filter(None, (said["title"], said.get("remedy"))))
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""
