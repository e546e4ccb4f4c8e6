"""What the app keeps: what the service is to be told, what readers ask for, what they were told, and the vocabulary."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

IRI = r"^https?://[^\s<>\"{}|\\^`]+$"
"""An address that RDF can have as a name."""


def new_id() -> str:
    """An id for a subscription."""
    return uuid.uuid4().hex


class Outbox(models.Model):
    """Something that the service is to be told, written in the transaction of its cause, and sent in the order of
    `seq`. Of a page the last row that was sent stays, without its payload: it says that the service knows the page."""

    class Kind(models.TextChoices):
        PUBLISH = "publish", _("publish")
        WITHDRAW = "withdraw", _("withdraw")
        UNSUBSCRIBE = "unsubscribe", _("unsubscribe")
        FORGET = "forget", _("forget a user")
        SOURCE = "source", _("poll a feed no more")
        TAXONOMY = "taxonomy", _("taxonomy")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        SENT = "sent", _("sent")
        REFUSED = "refused", _("refused")

    seq = models.BigAutoField(primary_key=True)
    site = models.CharField(max_length=200)
    page = models.PositiveBigIntegerField(null=True, db_index=True, help_text=_("None: it is of no page."))
    revision = models.PositiveBigIntegerField(default=0, help_text=_("0: a page without revisions."))
    kind = models.CharField(max_length=12, choices=Kind)
    payload = models.TextField(blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    tries = models.PositiveIntegerField(default=0)
    due = models.FloatField(default=0, help_text=_("Not to be tried before (seconds since 1970)."))
    answer = models.TextField(blank=True, help_text=_("Why the last try failed."))
    written = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("seq",)
        verbose_name_plural = "outbox"
        indexes = (models.Index(fields=("state", "seq")),)

    def __str__(self) -> str:
        return f"{self.seq}: {self.kind} {self.page or ''} ({self.state})"


class Request(models.Model):
    """What a reader asks for: one subscription of the service. `subscription` is its id there."""

    class Kind(models.TextChoices):
        REPLIES = "replies", _("replies to me")
        PAGE = "page", _("this page changed")
        SECTION = "section", _("new in this section")
        QUERY = "query", _("GQL")
        FEED = "feed", _("a feed")

    class State(models.TextChoices):
        WANTED = "wanted", _("is being set up")
        ACTIVE = "active", _("active")
        REFUSED = "refused", _("refused")
        ENDED = "ended", _("ended")

    class Interval(models.IntegerChoices):
        AT_ONCE = 0, _("at once")
        HOUR = 3600, _("1 hour")
        DAY = 86400, _("1 day")
        WEEK = 604800, _("1 week")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="triplewire_requests")
    subscription = models.CharField(max_length=60, unique=True, default=new_id)
    ticket = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=8, choices=Kind)
    page = models.ForeignKey("wagtailcore.Page", models.CASCADE, null=True, blank=True, related_name="+")
    title = models.CharField(max_length=200)
    url = models.CharField(max_length=1000, blank=True)
    query = models.TextField(blank=True)
    description = models.CharField(max_length=500, blank=True)
    interval = models.IntegerField(choices=Interval, default=Interval.HOUR)
    by_mail = models.BooleanField(default=False)
    categories = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.WANTED)
    reason = models.TextField(blank=True)
    feed = models.CharField(max_length=1000, blank=True)
    expires = models.DateTimeField(null=True, blank=True)
    mailed = models.DateTimeField(null=True, blank=True)
    made = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("title", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("user", "kind", "page"), condition=models.Q(page__isnull=False), name="triplewire_one_a_page"
            ),
        )
        indexes = (models.Index(fields=("state", "expires")),)

    def __str__(self) -> str:
        return self.title

    @property
    def category_names(self) -> list[str]:
        """The categories of its feed, as figure 14 of the paper has them."""
        return [name for part in self.categories.split(",") if (name := part.strip())]


class Inbox(models.Model):
    """A notification. The same one (`request`, `subscription`, `seq`) is kept once, however often it comes."""

    request = models.ForeignKey(Request, models.CASCADE, related_name="notifications")
    subscription = models.CharField(max_length=60, help_text=_("Whose sequence it is: a request may get another."))
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=12)
    publication = models.CharField(max_length=2000)
    page = models.PositiveBigIntegerField(null=True, help_text=_("Where it is of this site."))
    title = models.CharField(max_length=500, blank=True)
    link = models.CharField(max_length=2000, blank=True)
    why = models.TextField(blank=True)
    read = models.BooleanField(default=False)
    came = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-pk",)
        verbose_name_plural = "inbox"
        constraints = (models.UniqueConstraint(fields=("request", "subscription", "seq"), name="triplewire_told_once"),)
        indexes = (models.Index(fields=("request", "read")),)

    def __str__(self) -> str:
        return self.title or self.publication


class VocabularyMap(models.Model):
    """A class or an instance of the site, as the service's taxonomy has it. `equivalent`: a class elsewhere that says
    the same, which people declare."""

    term = models.CharField(max_length=200, unique=True, help_text=_("Below the namespace of the site."))
    label = models.CharField(max_length=255, blank=True)
    equivalent = models.CharField(max_length=1000, blank=True, validators=[RegexValidator(IRI)])
    exported = models.TextField(blank=True, help_text=_("The statements that the service has, as N-Triples."))

    class Meta:
        ordering = ("term",)

    def __str__(self) -> str:
        return self.label or self.term


class Sender(models.Model):
    """The one row of the process that sends: one at a time, and another takes over from one that has ended."""

    holder = models.CharField(max_length=200, blank=True)
    until = models.FloatField(default=0)
    cursor = models.PositiveBigIntegerField(default=0, help_text=_("The last event of the service that was looked at."))
    pulled = models.FloatField(default=0)
    taxonomy = models.TextField(blank=True, help_text=_("Why the service does not take the vocabulary."))

    def __str__(self) -> str:
        return self.holder
