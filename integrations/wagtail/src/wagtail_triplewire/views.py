"""What readers see: their profile, the forms of their requests, and documents of templates."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from wagtail.models import Page

from wagtail_triplewire import inbox, outbox, transparent
from wagtail_triplewire.conf import conf
from wagtail_triplewire.forms import DocumentForm, RequestForm, Trial, tried
from wagtail_triplewire.models import Inbox, Request, new_id
from wagtail_triplewire.names import may_read
from wagtail_triplewire.service import ServiceError

_SHOWN = 50  # notifications of a request


def _own(request: HttpRequest, number: int) -> Request:
    row: Request = get_object_or_404(Request, pk=number, user=request.user)
    return row


@login_required
def profile(request: HttpRequest) -> HttpResponse:
    """The requests of a user, and what each was told."""
    rows = list(Request.objects.filter(user=request.user).select_related("page"))
    told = [(row, inbox.readable(request.user, row.notifications.all()[:_SHOWN])) for row in rows]
    return render(request, "wagtail_triplewire/profile.html", {"told": told})


@login_required
def edit(request: HttpRequest, number: int | None = None) -> HttpResponse:
    """Make or change a request: check it, try it, submit it."""
    row = Request(user=request.user) if number is None else _own(request, number)
    before = row.query
    form = RequestForm(request.POST or None, instance=row)
    trial: Trial | None = None
    if request.method == "POST":
        if "check" in request.POST:
            trial = _trial(request, request.POST.get("query", ""))
        elif form.is_valid():
            with transaction.atomic():
                saved = form.save(commit=False)
                if number is not None and saved.query != before:
                    outbox.request_gone(Request(subscription=saved.subscription, kind=Request.Kind.QUERY))
                    saved.subscription, saved.state, saved.reason = new_id(), Request.State.WANTED, ""
                saved.save()
                outbox.wake()
            messages.success(request, _("“%s” is being set up.") % saved.title)
            return redirect("triplewire:profile")
        else:
            trial = getattr(form, "trial", None)
    given = {"form": form, "row": row, "trial": trial}
    return render(request, "wagtail_triplewire/request.html", given, status=422 if form.errors and not trial else 200)


def _trial(request: HttpRequest, query: str) -> Trial | None:
    try:
        return tried(query, request.user.pk)
    except ServiceError as error:
        messages.error(request, str(error))
        return None


@login_required
@require_POST
def delete(request: HttpRequest, number: int) -> HttpResponse:
    """End a request: here now, and at the service once it is told."""
    row = _own(request, number)
    with transaction.atomic():
        row.delete()
    messages.success(request, _("“%s” has ended.") % row.title)
    return redirect("triplewire:profile")


@login_required
@require_POST
def renew(request: HttpRequest, number: int) -> HttpResponse:
    """Have a request last; one that was refused or has ended is set up again."""
    row = _own(request, number)
    if row.state == Request.State.ACTIVE:
        Request.objects.filter(pk=row.pk).update(expires=row.made)  # the sender renews what ends soon
    else:
        outbox.request_gone(Request(subscription=row.subscription, kind=Request.Kind.QUERY))
        again = {"state": Request.State.WANTED, "reason": "", "subscription": new_id()}
        Request.objects.filter(pk=row.pk).update(**again)
    outbox.wake()
    messages.success(request, _("“%s” is being renewed.") % row.title)
    return redirect("triplewire:profile")


@login_required
@require_POST
def follow(request: HttpRequest, kind: str, number: int) -> HttpResponse:
    """Be told of a page, its replies, or its section; or no more."""
    page = get_object_or_404(Page, pk=number)
    if kind not in transparent.KINDS or not may_read(request.user, page):
        raise Http404
    mine = Request.objects.filter(user=request.user, kind=kind, page=page)
    with transaction.atomic():
        if not mine.exists():
            transparent.follow(kind, request.user, page)
            outbox.wake()
        else:
            for row in mine:
                row.delete()
    then = request.POST.get("then", "")
    is_here = url_has_allowed_host_and_scheme(then, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(then if is_here else reverse("triplewire:profile"))


@login_required
def entry(request: HttpRequest, number: int) -> HttpResponse:
    """One notification: with why, and marked as read."""
    row = get_object_or_404(Inbox.objects.select_related("request"), pk=number, request__user=request.user)
    if not inbox.readable(request.user, [row]):
        raise Http404
    Inbox.objects.filter(pk=row.pk).update(read=True)
    return render(request, "wagtail_triplewire/entry.html", {"entry": row})


@login_required
@require_POST
def read_all(request: HttpRequest) -> HttpResponse:
    """Mark all notifications as read."""
    inbox.unread(request.user).update(read=True)
    return redirect("triplewire:profile")


@login_required
def document(request: HttpRequest, name: str = "") -> HttpResponse:
    """Make an RDF document of a template: fill in, look at it, publish it."""
    names = list(conf().documents)
    if name and name not in names:
        raise Http404
    given: dict[str, Any] = {"names": names, "name": name}
    if name:
        form = DocumentForm(name, request.POST or None)
        given["form"] = form
        if request.method == "POST" and form.is_valid():
            if "publish" in request.POST:
                with transaction.atomic():
                    outbox.publish_document(form.document())
                messages.success(request, _("The document is being published."))
                return redirect("triplewire:documents")
            given["preview"] = form.document()
    return render(request, "wagtail_triplewire/document.html", given)
