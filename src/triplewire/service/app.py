"""The service: an ASGI application with all doors of a broker."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response

from triplewire.broker.broker import Broker
from triplewire.config import ServiceSettings
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.schedule import Deliveries
from triplewire.service import (
    administration,
    deliveries,
    feeds,
    hub,
    metrics,
    openapi,
    opml,
    problems,
    publish,
    rates,
    source_doors,
    sparql,
    streams,
    subscriptions,
    tester,
    xml_rpc,
)
from triplewire.service.access import check_policies, owner_or_none
from triplewire.service.pages import posted, rendered, sessions, shown

_MOST_DRAINED = 1 << 28  # bytes of a body that is too long
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
}


def service(broker: Broker, settings: ServiceSettings, delivering: Deliveries | None = None) -> FastAPI:
    """The application of a broker that is open, and of what delivers its events. Raises `TriplewireError` for a door
    without a policy, and for networks that are none."""
    metrics.parsed_networks(settings.metrics_from)
    doors = (opml, subscriptions, publish, feeds, streams, source_doors, administration, hub)
    pages = (tester, sessions, rendered, shown, posted)
    others = (xml_rpc, sparql, metrics, deliveries)
    routers = [door.router for door in (*doors, *others, *pages)]
    app = application(settings, routers, sessions.refused, {"/hub": hub.refused, "/RPC2": xml_rpc.refused})
    app.state.broker, app.state.owner_of, app.state.account_of = broker, broker.owner_of, sessions.account_of
    app.state.delivering = delivering or Deliveries(broker, DeliverySettings(**vars(settings)))
    app.state.first_visit = secrets.token_urlsafe(24)
    broker.listeners.append(lambda batch: app.state.streams.wake({row[1] for row in batch.events}))
    return app


def application(
    settings: ServiceSettings,
    routers: Iterable[APIRouter],
    on_page: problems.Refused = lambda request, said: None,
    refusals: Mapping[str, Callable[[problems.Problem], Response]] = {},
) -> FastAPI:
    """An application with these doors: each has a policy and bounds, is described, and refuses with problem details,
    or as `refusals` says by its path. No owner has a token but that of the settings, unless the caller sets
    `state.owner_of`. Raises `TriplewireError` for a door without a policy."""
    app = FastAPI(title="Triplewire", version=version("triplewire"), docs_url=None, redoc_url=None)
    app.state.settings, app.state.owner_of = settings, lambda token: None
    app.state.account_of, app.state.rates = owner_or_none, rates.Rates(settings)
    app.state.streams = streams.Streams()
    problems.install(app, on_page)
    for router in routers:
        app.include_router(router)
    app.add_middleware(BodyLimit, most=settings.most_body)

    @app.middleware("http")
    async def guarded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        try:
            await rates.count_request(request)
        except problems.Problem as problem:
            await _drain(request.receive)
            answer = refusals.get(request.scope["path"], problems.refused)(problem)
        else:
            answer = await call_next(request)
            await asyncio.sleep(getattr(request.state, "not_before", 0.0) - time.monotonic())
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    check_policies(app)
    openapi.install(app)
    return app


class BodyLimit:
    """Refuses a request whose body is too long, by counting its bytes, whatever its head says."""

    def __init__(self, app: Any, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken, has_more = 0, True
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        refused = declared.isdigit() and int(declared) > self._most

        async def counted() -> Any:
            nonlocal taken, refused, has_more
            message = await receive()
            taken += len(message.get("body", b""))
            has_more = message.get("more_body", False)
            if taken > self._most:
                refused = True
                raise _TooLong
            return message

        async def guarded(message: Any) -> None:
            if not refused:
                await send(message)

        try:
            if not refused:
                await self._app(scope, counted, guarded)
        except Exception:  # a door may have made another error of it, or an answer, which is not sent
            if not refused:
                raise
        if refused:
            if has_more:
                await _drain(receive)
            what = f"the body has more than {self._most:,} bytes"
            remedy = "send it in parts, or raise TRIPLEWIRE_MOST_BODY"
            answer = problems.refused(problems.Problem(413, what, remedy, {"Connection": "close"}))
            await answer(scope, receive, send)


async def _drain(receive: Any) -> None:
    """Read what is left of a body, and keep nothing: a client that still sends would not see the answer."""
    left = _MOST_DRAINED
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b"")) + 1
        if message["type"] != "http.request" or not message.get("more_body"):
            return


class _TooLong(Exception):
    """A body is longer than allowed."""
