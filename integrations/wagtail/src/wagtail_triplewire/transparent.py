"""Subscriptions that nobody has to write (paper 000, section 6): replies to me, this page changed, new in a section.

Their queries are GQL, and who is told is the user. They end with the page, and with the account.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from wagtail.models import Page

from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import Request
from wagtail_triplewire.names import page_iri, term_iri
from wagtail_triplewire.rdf import RDF, REPLY_OF

Kind = Request.Kind
KINDS = (Kind.REPLIES, Kind.PAGE, Kind.SECTION)


def query_of(kind: str, page: int) -> str:
    """The GQL of a transparent subscription on a page."""
    if kind == Kind.REPLIES:
        return f"SELECT ?title WHERE (?reply, <{REPLY_OF}>, <{page_iri(page)}>) AND (?reply, title, ?title)"
    if kind == Kind.PAGE:
        return f"SELECT ?title WHERE (<{page_iri(page)}>, title, ?title)"
    section = f"(?item, <{RDF}type>, ?class) SUCHTHAT (?class ISA <= <{term_iri(f'section-{page}')}>)"
    return f"SELECT ?title WHERE ({section}) AND (?item, title, ?title)"


def _made(kind: str, user: Any, page: Page) -> Request:
    texts = {Kind.REPLIES: _("Replies to “%s”"), Kind.PAGE: _("Changes of “%s”"), Kind.SECTION: _("New in “%s”")}
    title = (texts[Kind(kind)] % page.title)[:200]
    return Request(user=user, kind=kind, page_id=page.pk, title=title, query=query_of(kind, page.pk))


def of_new_page(page: Page) -> None:
    """What the owner of a page gets when it is published for the first time: `TRIPLEWIRE["TRANSPARENT"]` says what,
    by type of page."""
    if page.owner is not None and (kinds := conf().transparent.get(page._meta.label, [])):
        Request.objects.bulk_create([_made(kind, page.owner, page) for kind in kinds], ignore_conflicts=True)


def follow(kind: str, user: Any, page: Page) -> Request:
    """Have a user told. Who is told already, is told once."""
    made = _made(kind, user, page)
    values = {"title": made.title, "query": made.query}
    return Request.objects.get_or_create(user=user, kind=kind, page_id=page.pk, defaults=values)[0]
