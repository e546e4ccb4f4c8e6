"""`manage.py demo_content`: people and pages to begin with. What is there already stays."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from wagtail.models import Page, Site

from pages.models import Article, BlogPost, Category, Section, Thread, WikiPage

PASSWORD = "coast"


def publish(page: Page, above: Page, user: Any) -> Page:
    """A page below another one, made and published by a user."""
    page.owner, page.live = user, False
    above.add_child(instance=page)
    page.save_revision(user=user).publish()
    return page


class Command(BaseCommand):
    """Makes them once."""

    help = "Make the people and the pages of the example."

    def handle(self, *args: Any, **options: Any) -> None:
        """Three people, and a page of each kind. The site has the port of `WAGTAILADMIN_BASE_URL`."""
        port = urlsplit(settings.WAGTAILADMIN_BASE_URL).port or 80
        Site.objects.filter(is_default_site=True).update(port=port)
        if Section.objects.exists():
            return
        users = get_user_model().objects
        admin = users.create_superuser("admin", "admin@kestrelcoast.example", PASSWORD)
        ann = users.create_user("ann", "ann@kestrelcoast.example", PASSWORD)
        users.create_user("ben", "ben@kestrelcoast.example", PASSWORD)
        root = Page.objects.get(depth=1)
        for page in root.get_children():
            page.delete()
        root.refresh_from_db()
        home = Section(title="Kestrel Coast", slug="home", body="<p>Birds, boats and weather.</p>", owner=admin)
        root.add_child(instance=home)
        Site.objects.update_or_create(
            is_default_site=True, defaults={"hostname": "127.0.0.1", "port": port, "root_page": home}
        )
        home.save_revision(user=admin).publish()
        wildlife, birds = Category(name="Wildlife"), Category(name="Birds")
        wildlife.save()
        birds.parents = [wildlife]
        birds.save()
        publish(Article(title="The lights of the coast", body="<p>Skerry Point Light is 38.5 m high.</p>"), home, admin)
        publish(WikiPage(title="Tides", body="<p>High water at noon.</p>"), home, ann)
        blog = publish(Section(title="News", slug="news"), home, admin)
        post = BlogPost(title="First puffin chick of the year", body="<p>Seen at the north cliff.</p>")
        post.categories = [birds]
        post.tags.add("puffins")
        publish(post, blog, ann)
        forum = publish(Section(title="Forum", slug="forum"), home, admin)
        publish(Thread(title="Who has seen the seals?", slug="seals", body="<p>None since Monday.</p>"), forum, ann)
