"""The callback of our subscriptions at foreign hubs (WebSub 5.3 and 7): `triplewire.broker.websub_subscriber`."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from triplewire.broker import websub_subscriber
from triplewire.service.access import KEY, allowed, broker

router = APIRouter(tags=["hub"])

_HEADERS = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}


@router.get("/websub/{number}/{key}", response_class=PlainTextResponse)
@allowed(KEY)
def verify(request: Request, number: int, key: str) -> Response:
    """A hub asks whether we mean it: its challenge, where we do. Nothing else that it sends is ever sent back."""
    asked = request.query_params
    challenge = asked.get("hub.challenge", "")
    try:
        lease = websub_subscriber.lease_of(broker(request), number, key)
    except ValueError:
        lease = None
    if lease is None or not websub_subscriber.verify(
        broker(request),
        lease,
        asked.get("hub.mode", ""),
        asked.get("hub.topic", ""),
        challenge,
        asked.get("hub.lease_seconds", ""),
    ):
        return PlainTextResponse("nothing of this kind was asked for\n", 404, _HEADERS)
    return PlainTextResponse("" if asked.get("hub.mode") == "denied" else challenge, 200, _HEADERS)


@router.post("/websub/{number}/{key}", status_code=202, response_class=PlainTextResponse)
@allowed(KEY)
async def receive(request: Request, number: int, key: str) -> Response:
    """A hub sends a feed. The answer does not say whether the signature was right."""
    body = await request.body()
    return await run_in_threadpool(_receive, request, number, key, body)


def _receive(request: Request, number: int, key: str, body: bytes) -> Response:
    of, headers = broker(request), request.headers
    try:
        lease = websub_subscriber.lease_of(of, number, key)
    except ValueError:
        return PlainTextResponse("there is no such callback\n", 404, _HEADERS)
    if lease is None:
        return PlainTextResponse("the subscription has ended\n", 410, _HEADERS)
    signature = headers.get("x-hub-signature", "")
    websub_subscriber.receive(of, lease, body, headers.get("content-type", ""), signature)
    return PlainTextResponse("", 202, _HEADERS)
