"""What happens in the CMS, as the outbox is told of it. The core of the CMS is as it was."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete
from wagtail.models import Page, PageViewRestriction
from wagtail.signals import page_published, page_slug_changed, page_unpublished, post_page_move

from wagtail_triplewire import outbox
from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import Request


def connect() -> None:
    """Listen to all of them."""
    page_published.connect(_published)
    page_unpublished.connect(_unpublished)
    post_page_move.connect(_moved)
    page_slug_changed.connect(_slug_changed)
    post_delete.connect(_deleted, sender=Page)
    for signal in (post_save, post_delete):
        signal.connect(_restricted, sender=PageViewRestriction)
    pre_delete.connect(_request_deleted, sender=Request)
    pre_delete.connect(_user_deleted, sender=get_user_model())
    if named := conf().categories:
        model = apps.get_model(named)
        for signal in (post_save, post_delete):
            signal.connect(_category_changed, sender=model)
        m2m_changed.connect(_category_changed, sender=model.parents.through)


def _published(instance: Page, **_: Any) -> None:
    outbox.page_changed(instance)


def _unpublished(instance: Page, **_: Any) -> None:
    outbox.page_gone(instance.pk)


def _deleted(instance: Page, **_: Any) -> None:
    outbox.page_gone(instance.pk)


def _moved(instance: Page, **_: Any) -> None:
    outbox.pages_changed(instance.get_descendants(inclusive=True).live())


def _slug_changed(instance: Page, **_: Any) -> None:
    outbox.pages_changed(instance.get_descendants(inclusive=True).live())


def _restricted(instance: PageViewRestriction, **_: Any) -> None:
    page = Page.objects.filter(pk=instance.page_id).first()  # None where it is being deleted
    if page is not None:
        outbox.pages_changed(page.get_descendants(inclusive=True).live())


def _request_deleted(instance: Request, **_: Any) -> None:
    outbox.request_gone(instance)


def _user_deleted(instance: Model, **_: Any) -> None:
    outbox.user_gone(instance.pk)


def _category_changed(sender: type[Model], **_: Any) -> None:
    outbox.categories_changed()
