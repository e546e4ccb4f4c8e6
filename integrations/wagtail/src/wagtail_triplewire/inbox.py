"""Notifications as they come in: pushed by the service (`notify`), or fetched. Each is kept once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet
from wagtail.models import Page

from wagtail_triplewire.models import Inbox, Request
from wagtail_triplewire.names import may_read, page_of

TOLD = {"matched", "changed", "repeated"}
_SKEW = 300  # seconds that a signature may be old


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Has the service signed a call? As Standard Webhooks has it (version 1, HMAC-SHA256)."""
    id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isascii() or not at.isdecimal() or abs(time.time() - int(at)) > _SKEW:
        return False
    digest = hmac.new(secret.encode(), f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    made = f"v1,{base64.b64encode(digest).decode()}".encode()
    signatures = headers.get("webhook-signature", "").encode("utf-8", "replace").split()
    return any(hmac.compare_digest(made, signature) for signature in signatures)


def take_event(event: Mapping[str, Any]) -> bool:
    """Take in an event as `notifications` has it. Returns whether it is new."""
    request = Request.objects.filter(subscription=event["subscription"]).first()
    publication = {name: event.get(name, "") for name in ("title", "link", "source")} | {"id": event["publication"]}
    return request is not None and take(request, {**event, "publication": publication})


def take(request: Request, event: Mapping[str, Any]) -> bool:
    """Take in an event as `notify` has it. Returns whether it is new."""
    if event["type"] == "suspended":
        reason = str(event.get("reason") or "it matched or cost too much")
        Request.objects.filter(pk=request.pk).update(state=Request.State.REFUSED, reason=reason)
    if event["type"] not in TOLD:
        return False
    publication = event.get("publication") or {}
    iri = str(publication.get("id", ""))[:2_000]
    page = page_of(iri)
    link = str(publication.get("link", ""))
    entry, is_new = Inbox.objects.get_or_create(
        request=request,
        subscription=request.subscription,
        seq=int(event["sequence"]),
        defaults={
            "type": event["type"],
            "publication": iri,
            "page": page,
            "title": str(publication.get("title", ""))[:500],
            "link": link[:2_000] if link.startswith(("http://", "https://")) else "",
            "why": why(request, event),
            "read": page is not None and _is_own(request, page),
        },
    )
    if not is_new and "why" in event:  # the service's own sentences say more than what was pushed
        Inbox.objects.filter(pk=entry.pk).update(why=why(request, event))
    return is_new


def _is_own(request: Request, page: int) -> bool:
    """Has the reader made the page? Who is told what they did themselves need not look at it."""
    return (
        request.kind in (Request.Kind.REPLIES, Request.Kind.SECTION)
        and Page.objects.filter(pk=page, owner=request.user_id).exists()
    )


def why(request: Request, event: Mapping[str, Any]) -> str:
    """Why an event is one: which request, and what of the publication decided."""
    sentences = [str(sentence) for sentence in event.get("why") or ()]
    for binding in [] if sentences else event.get("bindings") or ():
        said = (f"{name} = {term.get('value', '')}" for name, term in binding.items() if isinstance(term, Mapping))
        sentences += [", ".join(said)]
    return "\n".join([request.query or request.title, *filter(None, sentences)])


def readable(user: Any, entries: Iterable[Inbox]) -> list[Inbox]:
    """Those of pages that the user may read at this moment, and those of other places."""
    entries = list(entries)
    pages = Page.objects.in_bulk({entry.page for entry in entries} - {None})
    allowed = {number for number, page in pages.items() if may_read(user, page)}
    return [entry for entry in entries if entry.page is None or entry.page in allowed]


def unread(user: Any) -> QuerySet[Inbox]:
    """What a user has not read."""
    return Inbox.objects.filter(request__user=user, read=False)
