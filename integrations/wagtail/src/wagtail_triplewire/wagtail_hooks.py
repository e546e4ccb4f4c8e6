"""What editors see: how the exchange with the service is, and which classes elsewhere say the same as those here."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from wagtail import hooks
from wagtail.admin.auth import permission_denied
from wagtail.admin.menu import MenuItem
from wagtail.admin.panels import FieldPanel
from wagtail.snippets.models import register_snippet
from wagtail.snippets.views.snippets import SnippetViewSet

from wagtail_triplewire.models import Outbox, Request, Sender, VocabularyMap


class VocabularyViewSet(SnippetViewSet):
    """Declares equivalences."""

    model = VocabularyMap
    icon = "tag"
    menu_label = "Vocabulary"
    list_display = ("term", "label", "equivalent")
    search_fields = ("term", "label")
    panels = (FieldPanel("term", read_only=True), FieldPanel("label", read_only=True), FieldPanel("equivalent"))


register_snippet(VocabularyViewSet)


def status(request: HttpRequest) -> HttpResponse:
    """How many rows wait, and what was refused, with why."""
    if not request.user.has_perm("wagtail_triplewire.view_outbox"):
        return permission_denied(request)
    sender = Sender.objects.first()
    given = {
        "waiting": Outbox.objects.filter(state=Outbox.State.WAITING).count(),
        "refused": Outbox.objects.filter(state=Outbox.State.REFUSED)[:100],
        "active": Request.objects.filter(state=Request.State.ACTIVE).count(),
        "wanted": Request.objects.filter(state=Request.State.WANTED).count(),
        "taxonomy": sender.taxonomy if sender else "",
    }
    return render(request, "wagtail_triplewire/status.html", given)


@hooks.register("register_admin_urls")
def admin_urls() -> list[URLPattern]:
    """The address of that page."""
    return [path("triplewire/", status, name="triplewire_status")]


@hooks.register("register_admin_menu_item")
def menu_item() -> MenuItem:
    """Its place in the menu."""
    return MenuItem("Triplewire", reverse("triplewire_status"), icon_name="rss", order=900)
