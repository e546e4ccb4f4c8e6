"""What pages, terms, users and feeds are called at the service, and what a user may read."""

from __future__ import annotations

import hashlib
from typing import Any

from wagtail.models import Page, PageViewRestriction

from wagtail_triplewire.conf import conf


def page_iri(page: int) -> str:
    """The name of a page, which stays when the page moves; it leads there."""
    return conf().url(f"pages/{page}")


def page_of(iri: str) -> int | None:
    """The number of the page of this site that has the name; None for other names."""
    number = iri.removeprefix(conf().url("pages/"))
    return int(number) if number != iri and number.isascii() and number.isdecimal() and len(number) < 19 else None


def term_iri(term: str) -> str:
    """The name of a class of the site: `section-7`, `tag-boats`, `category-3`, `blog.BlogPost`."""
    return conf().url(f"terms#{term}")


def name_of(user: int) -> str:
    """What the service calls a user of the site: nothing of the person."""
    return f"u{user}"


def source_of(url: str) -> str:
    """The id of the source of a feed."""
    return f"feed-{hashlib.sha256(url.encode()).hexdigest()[:16]}"


def may_read(user: Any, page: Page) -> bool:
    """May a user read a page now? A shared password is asked of each visit, so nobody is told of such pages."""
    if not page.live:
        return False
    groups: set[int] | None = None
    for restriction in page.get_view_restrictions().prefetch_related("groups"):
        if restriction.restriction_type == PageViewRestriction.PASSWORD:
            return False
        if restriction.restriction_type == PageViewRestriction.GROUPS and not user.is_superuser:
            groups = set(user.groups.values_list("pk", flat=True)) if groups is None else groups
            if not groups & {group.pk for group in restriction.groups.all()}:
                return False
    return bool(user.is_active)
