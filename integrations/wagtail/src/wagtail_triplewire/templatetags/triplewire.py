"""Tags for the templates of a site: `triplewire_sidebar`, `triplewire_follow page`, `triplewire_badge`."""

from __future__ import annotations

from typing import Any

from django import template
from django.db.models import Count, Q
from wagtail.models import Page

from wagtail_triplewire import inbox
from wagtail_triplewire.models import Request
from wagtail_triplewire.transparent import KINDS

register = template.Library()


@register.simple_tag(takes_context=True)
def triplewire_badge(context: dict[str, Any]) -> int:
    """How many notifications the user has not read."""
    user = context["request"].user
    return inbox.unread(user).count() if user.is_authenticated else 0


@register.inclusion_tag("wagtail_triplewire/sidebar.html", takes_context=True)
def triplewire_sidebar(context: dict[str, Any]) -> dict[str, Any]:
    """The feeds of the user, by category."""
    unread = Count("notifications", filter=Q(notifications__read=False))
    groups: dict[str, list[Request]] = {}
    for row in Request.objects.filter(user=context["request"].user).annotate(unread=unread):
        for category in row.category_names or [""]:
            groups.setdefault(category, []).append(row)
    return {"groups": dict(sorted(groups.items())), "unread": triplewire_badge(context)}


@register.inclusion_tag("wagtail_triplewire/follow.html", takes_context=True)
def triplewire_follow(context: dict[str, Any], page: Page) -> dict[str, Any]:
    """A button for each transparent subscription on a page."""
    request = context["request"]
    followed = set(Request.objects.filter(user=request.user, page=page).values_list("kind", flat=True))
    kinds = [{"kind": kind.value, "label": kind.label, "is_followed": kind in followed} for kind in KINDS]
    return {"kinds": kinds, "page": page, "request": request, "csrf_token": context.get("csrf_token", "")}
