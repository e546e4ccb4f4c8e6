"""Digests: at each interval of a request, one mail with what came since and was not read."""

from __future__ import annotations

import datetime as dt

from django.core.mail import send_mail
from django.db.models import F, Q
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _

from wagtail_triplewire import inbox
from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import Inbox, Request

_AT_ONCE = 100


def send_digests() -> int:
    """Send what is due. One that fails is not sent again: what it told of stays unread. Returns how many were sent."""
    now, done = timezone.now(), 0
    news = Q(notifications__read=False) & (Q(mailed=None) | Q(notifications__came__gt=F("mailed")))
    for request in Request.objects.filter(news, by_mail=True).select_related("user").distinct()[:_AT_ONCE]:
        if request.mailed and request.mailed + dt.timedelta(seconds=request.interval) > now:
            continue
        entries = Inbox.objects.filter(request=request, read=False, came__lte=now)
        entries = entries.filter(came__gt=request.mailed) if request.mailed else entries
        shown = inbox.readable(request.user, entries[:_AT_ONCE])
        Request.objects.filter(pk=request.pk).update(mailed=now)  # first: none is sent twice
        if shown and request.user.email:
            given = {"request": request, "entries": shown, "profile": conf().url("profile/")}
            text = render_to_string("wagtail_triplewire/mail.txt", given)
            subject = _("New: %s") % " ".join(request.title.split())
            done += send_mail(subject, text, None, [request.user.email], fail_silently=True)
    return done
