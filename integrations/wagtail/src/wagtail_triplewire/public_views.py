"""What the site offers to programs (docs/cms-protocol.md of Triplewire, "What a site offers")."""

from __future__ import annotations

import hashlib
import xmlrpc.client
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST, require_safe
from wagtail.models import Page

from wagtail_triplewire import inbox, outbox, rdf, taxonomy
from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import Request

_MOST_BODY = 1 << 20
_NEWEST = 50  # pages of the feed
_NO_CALL, _NO_METHOD, _WRONG = -32600, -32601, -32602


@require_safe
def index(request: HttpRequest) -> JsonResponse:
    """What there is: for the service, and for who checks the site."""
    of = conf()
    told = {
        "triplewire": 1,
        "name": getattr(settings, "WAGTAIL_SITE_NAME", of.base),
        "service": of.service,
        "feed": of.url("pages.rdf"),
        "taxonomy": of.url("taxonomy.ttl"),
        "namespace": of.url("terms#"),
        "notify": of.url("notify"),
    }
    if of.development and (guest := of.guest()):
        told["guest"] = guest
    return JsonResponse(told)


def _with_etag(request: HttpRequest, text: str, kind: str) -> HttpResponse:
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    known = [each.strip().removeprefix("W/") for each in request.headers.get("If-None-Match", "").split(",")]
    if etag in known or "*" in known:
        return HttpResponse(status=304, headers={"ETag": etag})
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8", headers={"ETag": etag})


@require_safe
def pages_feed(request: HttpRequest) -> HttpResponse:
    """The newest public pages as RSS 1.0."""
    newest = Page.objects.live().public().filter(depth__gt=1, first_published_at__isnull=False)
    chosen = newest.order_by("-first_published_at").specific()[:_NEWEST]
    return _with_etag(request, rdf.feed_of([page for page in chosen if outbox.may_leave(page)]), "application/rdf+xml")


@require_safe
def taxonomy_export(request: HttpRequest) -> HttpResponse:
    """The vocabulary of the site, as the service was told of it."""
    return _with_etag(request, taxonomy.all_statements(), "text/turtle")


@require_GET
def page(request: HttpRequest, number: int) -> HttpResponse:
    """The name of a page leads to where it is now; Wagtail asks there who may read it."""
    found = get_object_or_404(Page.objects.live(), pk=number)
    if (url := found.get_url(request)) is None:
        raise Http404
    return HttpResponseRedirect(url)


@csrf_exempt
@require_POST
def notify(request: HttpRequest) -> HttpResponse:
    """The call-back of the service: XML-RPC, with the one method `notify`."""
    try:
        said: Any = (_notified(request),)
    except xmlrpc.client.Fault as fault:
        said = fault
    text = xmlrpc.client.dumps(said, methodresponse=True)
    return HttpResponse(text, content_type="text/xml; charset=utf-8", headers={"WebHook-Allowed-Rate": "*"})


def _notified(request: HttpRequest) -> bool:
    """Take in a call. Raises `Fault`."""
    name, event = _call(request)
    if name != "notify":
        raise xmlrpc.client.Fault(_NO_METHOD, f"there is no method {name[:80]!r}; known: notify")
    if not inbox.is_signed(conf().inbox_key, request.headers, request.body):
        raise xmlrpc.client.Fault(403, "the signature is wrong, or older than five minutes")
    if not isinstance(event, dict):
        raise xmlrpc.client.Fault(_WRONG, "notify takes one struct")
    row = Request.objects.filter(subscription=str(event.get("subscription", ""))[:60]).first()
    if row is None:
        raise xmlrpc.client.Fault(404, "nobody of this site has this subscription")
    try:
        if not event.get("test"):
            inbox.take(row, event)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise xmlrpc.client.Fault(_WRONG, f"the event cannot be read: {type(error).__name__}: {error}"[:300]) from None
    return True


def _call(request: HttpRequest) -> tuple[str, Any]:
    """The method and the struct of a call. Raises `Fault`."""
    length = request.headers.get("Content-Length", "")
    if not length.isdecimal() or int(length) > _MOST_BODY:
        raise xmlrpc.client.Fault(413, f"a call has at most {_MOST_BODY:,} bytes")
    if b"<!" in request.body.replace(b"<![CDATA[", b""):
        raise xmlrpc.client.Fault(_NO_CALL, "a call has no document type, and no entities of its own")
    load: Callable[..., Any] = xmlrpc.client.loads
    try:
        parameters, name = load(request.body, use_builtin_types=True)
    except Exception as error:  # the parser of the standard library raises many kinds
        raise xmlrpc.client.Fault(_NO_CALL, f"the call cannot be read: {type(error).__name__}"[:300]) from None
    return str(name), parameters[0] if len(parameters) == 1 else None
