"""The door of XML-RPC (`/RPC2`), as paper 000 has it (section 6): each method takes one struct.

A refusal is a fault whose text says where and why. Its code is the HTTP status that other doors answer, or one of the
"Specification for Fault Code Interoperability": -32700 no XML, -32600 no call, -32601 no such method, -32602 wrong
parameters. There is no `system.multicall`: one request would try many tickets.
"""

from __future__ import annotations

import datetime as dt
import logging
import xmlrpc.client
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool

from triplewire.broker.events.event_log import MOST
from triplewire.broker.feeds.cleaning import clean
from triplewire.errors import ReadError, TriplewireError
from triplewire.read.guard.xml import check_rdf_xml
from triplewire.service import access
from triplewire.service.access import OWNER_OR_TICKET, Body, acting, allowed, base_of, broker, owner
from triplewire.service.administration import forget
from triplewire.service.feeds import check_form, feed_at, written
from triplewire.service.problems import Problem, status_of
from triplewire.service.publish import Taking, came_in
from triplewire.service.rates import count_dry_run
from triplewire.service.subscriptions import NewSubscription, list_subscriptions, told, wanted_of
from triplewire.service.tester import Attempt, newest_matches, tried
from triplewire.store.database import DAY

router = APIRouter(tags=["XML-RPC"])

NO_XML, NO_CALL, NO_METHOD, WRONG_PARAMETERS = -32700, -32600, -32601, -32602
_MOST_BODY, _MOST_DEPTH = 1 << 20, 32
_MOST_INTEGER = 2**31 - 1

_log = logging.getLogger("triplewire.service")


class _OfSubscription(Body):
    subscription: str
    ticket: str | None = None


class _Renewal(_OfSubscription):
    subscription: str = ""
    subscriptions: list[str] = Field([], max_length=10_000)
    seconds: float = DAY


class _After(_OfSubscription):
    subscription: str = ""
    after: int = Field(0, ge=0, le=2**62)
    most: int = Field(MOST, ge=1, le=MOST)
    why: bool = False
    format: str = ""


class _Content(Body):
    content: str | bytes = ""
    content_type: str = ""
    source: str = ""
    readers: list[str] | None = None
    wait: bool = True
    page: str = ""
    revision: int | None = Field(None, ge=0, le=2**62)
    delete: bool = False


class _Attempt(Attempt):
    user: str = ""
    most: int = Field(10, ge=0, le=50)


class _Listed(Body):
    user: str = ""
    state: str = ""


class _Forgotten(Body):
    user: str = Field(min_length=1)


def _subscribe(request: Request, given: NewSubscription) -> Any:
    """Register a subscription {query, language, id, seconds, title, notify, user, ...}: {id, ticket, feed, ...}."""
    made = broker(request).subscribe(wanted_of(request, given), acting(request, given.user))
    return told(request, made, given.user)


def _try(request: Request, given: _Attempt) -> Any:
    """Ask a query of the last publications, and keep nothing {query, language, user, most}: {of, matched, ...}."""
    of = broker(request)
    count_dry_run(request)
    window = of.window.of(acting(request, given.user))
    outcome = tried(of, window, given.query, given.language, given.prefixes or None)
    newest = newest_matches(of, window, given, outcome.matched[: given.most])
    about = {"of": outcome.of, "matched": len(outcome.matched), "a_day": outcome.a_day, "asks": outcome.asks}
    return {**about, "warnings": list(outcome.warnings), "newest": newest}


def _renew(request: Request, given: _Renewal) -> Any:
    """Have a subscription {subscription, ticket, seconds}, or several {subscriptions, seconds}, last for so many
    seconds from now: {id, expires}, or an array of them."""
    of = broker(request)
    if given.subscription:
        row = _row(request, given)
        return {"id": row.id, "expires": of.renew(row.number, given.seconds)}
    ends = of.renew_all(owner(request), given.subscriptions, given.seconds)
    return [
        {"id": id, **({"fault": 404, "text": str(end)} if isinstance(end, TriplewireError) else {"expires": end})}
        for id, end in zip(given.subscriptions, ends, strict=True)
    ]


def _unsubscribe(request: Request, given: _OfSubscription) -> Any:
    """End a subscription {subscription, ticket}: true."""
    broker(request).unsubscribe(_row(request, given).number)
    return True


def _publish(request: Request, given: _Content) -> Any:
    """Publish a document {content, content_type, source, readers, wait, page, revision}, or take one away {page,
    delete, revision}: {publications, subscribed, refused}; content is text or base64."""
    of, content = broker(request), given.content
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    taking = Taking.of(request, given.source, given.readers, given.page, given.revision)
    came = None if given.delete else came_in(data, given.content_type, of.settings)
    done = taking.away(of) if came is None else taking.take(of, came)
    if done.refusals and not (done.taken or done.subscribed):
        first = done.refusals[0]
        raise ReadError(first.reason, source=first.where, remedy=first.remedy)
    counts = taking.counts(request, done.taken) if given.wait else {}
    publications = [
        {"publication": entry.id, "new": entry.is_new, "matched": counts.get(entry.number)} for entry in done.taken
    ]
    refused = [str(refusal) for refusal in done.refusals]
    return {"publications": publications, "subscribed": done.subscribed, "refused": refused}


def _notifications(request: Request, given: _After) -> Any:
    """The events of a subscription behind a sequence {subscription, ticket, after, most}, or all of an owner behind a
    number {after, most}: an array of structs, with `why` on demand, or the text of a feed {format}."""
    of = broker(request)
    row = _row(request, given) if given.subscription or given.ticket is not None else None
    if given.format:
        if row is None:
            raise Problem(WRONG_PARAMETERS, "a feed is of one subscription", "name it")
        check_form(given.format)
        return written(feed_at(of, row, base_of(request), after=given.after), given.format, of).decode()
    if row is None:
        events = of.events(owner(request), given.after, given.most)
    else:
        events = of.events_of(row.number, given.after, given.most)
    why = of.reasons(events) if given.why else {}
    return [{**event.to_json(), **({"why": why.get(event.number, [])} if given.why else {})} for event in events]


def _list(request: Request, given: _Listed) -> Any:
    """All subscriptions of the owner of an API token and of its users, or of one user {user, state}, the newest first:
    an array of structs."""
    return list_subscriptions(request, given.user, given.state)


def _forget(request: Request, given: _Forgotten) -> Any:
    """Remove all that is of a user for good {user}: how many rows of what."""
    return forget(request, acting(request, given.user))


def _row(request: Request, given: _OfSubscription) -> Any:
    """The subscription that a ticket is of, or, without one, an API token. Raises `Problem`."""
    if given.ticket is None:
        return access.subscription(request, given.subscription)
    row = broker(request).find(given.subscription, ticket=given.ticket)
    if row is None:
        raise Problem(404, f"there is no subscription {given.subscription!r}, or the ticket is not its")
    return row


class _Method(NamedTuple):
    call: Callable[[Request, Any], Any]
    takes: type[Body]
    gives: str


_METHODS = {
    "subscribe": _Method(_subscribe, NewSubscription, "struct"),
    "renew": _Method(_renew, _Renewal, "struct"),
    "unsubscribe": _Method(_unsubscribe, _OfSubscription, "boolean"),
    "publish": _Method(_publish, _Content, "struct"),
    "notifications": _Method(_notifications, _After, "array"),
    "list": _Method(_list, _Listed, "array"),
    "try": _Method(_try, _Attempt, "struct"),
    "forget": _Method(_forget, _Forgotten, "struct"),
}
_ABOUT = {
    "system.listMethods": (["array"], "The names of all methods: an array of strings."),
    "system.methodSignature": (["array", "string"], "The signatures of a method, by its name: an array of arrays."),
    "system.methodHelp": (["string", "string"], "What a method does, by its name: a string."),
}
_BODY = {"required": True, "content": {"text/xml": {"schema": {"type": "string"}}}}


@router.post("/RPC2", response_class=Response, openapi_extra={"requestBody": _BODY})
@allowed(OWNER_OR_TICKET)
async def rpc(request: Request) -> Response:
    """A call of XML-RPC; `system.listMethods` says which there are."""
    body = await request.body()
    return await run_in_threadpool(_answer, request, body)


def _answer(request: Request, body: bytes) -> Response:
    try:
        name, parameters = _call_of(request, body)
        said: Any = (_plain(_result(request, name, parameters)),)
    except Problem as problem:
        return refused(problem)
    except TriplewireError as error:
        said = xmlrpc.client.Fault(status_of(error), clean(str(error)))
    except Exception:
        _log.exception("a call of XML-RPC failed")
        said = xmlrpc.client.Fault(500, "a fault of the service: it is in its log")
    return _written(said)


def refused(problem: Problem) -> Response:
    """A refusal, also of a call that was not read."""
    return _written(xmlrpc.client.Fault(problem.status_code, clean(str(problem))), problem.headers)


def _written(said: Any, headers: Mapping[str, str] | None = None) -> Response:
    text = xmlrpc.client.dumps(said, methodresponse=True, encoding="utf-8")
    return Response(text.encode("utf-8", "replace"), headers=headers, media_type="text/xml; charset=utf-8")


def _call_of(request: Request, body: bytes) -> tuple[str, tuple[Any, ...]]:
    """The method and the parameters of a request. Raises `Problem`."""
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise Problem(415, "a compressed request is not read; send it as it is")
    if len(body) > _MOST_BODY:
        raise Problem(413, f"the request has more than {_MOST_BODY:,} bytes")
    limits = replace(broker(request).settings, max_xml_depth=_MOST_DEPTH, max_entities=1)
    try:
        parameters, name = xmlrpc.client.loads(check_rdf_xml(body, limits), use_builtin_types=True)
    except ReadError as error:
        raise Problem(NO_XML, str(error)) from None
    except xmlrpc.client.Fault:
        raise Problem(NO_CALL, "it is an answer, and no call") from None
    except Exception as error:  # the parser of the standard library raises many kinds
        raise Problem(NO_CALL, f"the call cannot be read: {type(error).__name__}: {error}"[:300]) from None
    if not name:
        raise Problem(NO_CALL, "the call names no method")
    return name, parameters


def _result(request: Request, name: str, parameters: tuple[Any, ...]) -> Any:
    """What a method answers. Raises `Problem` and `TriplewireError`."""
    if name in _ABOUT:
        return _about(name, parameters)
    method = _method(name)
    if len(parameters) > 1 or not isinstance(given := parameters[0] if parameters else {}, dict):
        raise Problem(WRONG_PARAMETERS, f"{name} takes one struct")
    try:
        struct = method.takes.model_validate(given)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, entry['loc'])) or 'the struct'}: {entry['msg']}" for entry in error.errors())
        raise Problem(WRONG_PARAMETERS, f"{name}: {'; '.join(wrong)}"[:1_000]) from None
    return method.call(request, struct)


def _method(name: str) -> _Method:
    """A method by its name, with `pubsub.` before it or not. Raises `Problem`."""
    method = _METHODS.get(name.removeprefix("pubsub."))
    if method is None:
        known = ", ".join([*_METHODS, *_ABOUT])
        raise Problem(NO_METHOD, f"there is no method {name[:80]!r}; known: {known}")
    return method


def _about(name: str, parameters: tuple[Any, ...]) -> Any:
    """What is said of methods (introspection)."""
    if name == "system.listMethods":
        return sorted([*_METHODS, *(f"pubsub.{each}" for each in _METHODS), *_ABOUT])
    if len(parameters) != 1 or not isinstance(parameters[0], str):
        raise Problem(WRONG_PARAMETERS, f"{name} takes the name of a method")
    (of,) = parameters
    if of in _ABOUT:
        signature, text = _ABOUT[of]
    else:
        method = _method(of)
        signature, text = [method.gives, "struct"], " ".join((method.call.__doc__ or "").split())
    return [signature] if name == "system.methodSignature" else text


def _plain(value: Any, name: str = "") -> Any:
    """A value as XML-RPC can say it: instants as dateTime.iso8601 in UTC, large integers as doubles, no null."""
    if name in ("expires", "created", "at") and isinstance(value, int | float):
        return dt.datetime.fromtimestamp(value, dt.UTC).replace(tzinfo=None, microsecond=0)
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _plain(each, key) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return float(value) if isinstance(value, int) and abs(value) > _MOST_INTEGER else value
