"""What goes out: rows that are written in the transaction of their cause, and who may leave the site at all."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from wagtail.models import Page

from wagtail_triplewire import rdf, transparent
from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import Outbox, Request
from wagtail_triplewire.names import name_of

WOKEN = threading.Event()
"""Is set when there is something to send, for a sender in this process; others look twice a second."""


def may_leave(page: Page) -> bool:
    """Is a page public: is it live, has it an address, and may anybody read it?"""
    is_wanted = getattr(page.specific_class, "triplewire", True)
    return bool(is_wanted and page.live and page.get_url_parts() and not page.get_view_restrictions().exists())


@transaction.atomic
def page_changed(page: Page) -> None:
    """Say what a page is now: its content, or that it is withdrawn where the service knows one that may not leave any
    more. To be called in the transaction of the change."""
    if may_leave(page):
        specific, is_known = page.specific, _last(page.pk) is not None
        values = {"page": page.pk, "revision": page.live_revision_id or 0, "payload": rdf.feed_of([specific])}
        _add(Outbox.Kind.PUBLISH, **values)
        if not is_known:
            transparent.of_new_page(specific)
    else:
        page_gone(page.pk)


def page_gone(page: int) -> None:
    """Withdraw a page, if the service knows it, or is to be told of it."""
    if (last := _last(page)) is not None and last.kind != Outbox.Kind.WITHDRAW:
        _add(Outbox.Kind.WITHDRAW, page=page)


def pages_changed(pages: Iterable[Page]) -> None:
    """The same for many pages."""
    for page in pages:
        page_changed(page)


def request_gone(request: Request) -> None:
    """Have a subscription end at the service, and a feed be polled no more that nobody asks for."""
    _add(Outbox.Kind.UNSUBSCRIBE, payload=request.subscription)
    if request.kind == Request.Kind.FEED:
        _add(Outbox.Kind.SOURCE, payload=request.url)


def user_gone(user: int) -> None:
    """Have the service forget a user: subscriptions, what they were told, and all else."""
    _add(Outbox.Kind.FORGET, payload=name_of(user))


def publish_document(document: str) -> None:
    """Publish a document that is no page."""
    _add(Outbox.Kind.PUBLISH, payload=document)


def categories_changed() -> None:
    """Have the service told of categories."""
    _add(Outbox.Kind.TAXONOMY)


def wake() -> None:
    """Have the sender look, once what is written now is committed."""
    transaction.on_commit(WOKEN.set)


def is_of_another_address() -> bool:
    """Has the site another address than when rows were written?"""
    return Outbox.objects.exclude(site=conf().base).exists()


def reconcile() -> int:
    """Write what is missing: of pages that were changed past the signals (imports, changes of a slug above them), and
    before the app was installed. At another address of the site all is new. Returns how many pages that were."""
    if is_of_another_address():
        Outbox.objects.filter(page__isnull=False).exclude(site=conf().base).delete()
        Outbox.objects.filter(page__isnull=True).update(site=conf().base)
    of_site = Outbox.objects.filter(page__isnull=False)
    last = dict(of_site.order_by().values_list("page").annotate(Max("seq")))
    told = {row.page: row for row in Outbox.objects.filter(seq__in=last.values()).defer("payload")}
    count = 0
    for page in Page.objects.live().public().filter(depth__gt=1).specific().iterator(chunk_size=200):
        row = told.pop(page.pk, None)
        is_told = row is not None and row.kind == Outbox.Kind.PUBLISH and row.revision == (page.live_revision_id or 0)
        if not is_told and may_leave(page):
            with transaction.atomic():
                page_changed(page)
            count += 1
    for number, row in told.items():
        if row.kind == Outbox.Kind.PUBLISH:
            page_gone(number)
            count += 1
    return count


def _last(page: int) -> Outbox | None:
    return Outbox.objects.filter(page=page).order_by("-seq").defer("payload").first()


def _add(kind: Outbox.Kind, **values: object) -> Outbox:
    wake()
    return Outbox.objects.create(site=conf().base, kind=kind, written=timezone.now(), **values)
