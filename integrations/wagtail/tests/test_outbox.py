"""What goes to the outbox: public pages as they are, in the transaction of their change, and nothing else."""

from __future__ import annotations

import datetime as dt
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from wagtail.models import PageViewRestriction

from conftest import Coast
from pages.models import BlogPost, Category, Thread
from wagtail_triplewire import outbox, rdf
from wagtail_triplewire.models import Outbox, Request

NAMES = {"": rdf.RSS, "rdf": rdf.RDF, "dc": rdf.DC, "sioc": rdf.SIOC}


def item(coast: Coast, page: Any) -> dict[str, list[str]]:
    """What the newest row of a page says of it: texts, or the ends of addresses, by the name of the property."""
    row = Outbox.objects.filter(page=page.pk).last()
    root = ElementTree.fromstring(row.payload)
    element = root.find("item", NAMES)
    assert element.get(f"{{{rdf.RDF}}}about") == f"{coast.url}/triplewire/pages/{page.pk}"
    said: dict[str, list[str]] = {}
    for child in element:
        name = child.tag.rpartition("}")[2]
        said.setdefault(name, []).append(
            child.get(f"{{{rdf.RDF}}}resource", "").removeprefix(f"{coast.url}/triplewire/") or child.text or ""
        )
    return said


def test_a_page_says_what_it_is(coast: Coast) -> None:
    post = BlogPost(title="Storm & rain", body="<p>All <b>boats</b> stay</p><p>in &lt;harbour&gt;.</p>")
    post.owner = coast.user("ann")
    post.tags.add("Boats")
    post.categories = [Category.objects.get(name="Birds")]
    coast.page("news").add_child(instance=post)
    post.save_revision().publish()
    birds, news = Category.objects.get(name="Birds").pk, coast.page("news").pk
    said = item(coast, post)
    assert said["title"] == ["Storm & rain"]
    assert said["link"] == [f"{coast.url}/news/storm-rain/"]
    assert "boats" in said["description"][0]
    assert "<harbour>" in said["description"][0]
    assert "<b>" not in said["description"][0]
    assert sorted(said["type"]) == [
        f"terms#category-{birds}",
        "terms#pages.BlogPost",
        f"terms#section-{news}",
        "terms#tag-boats",
    ]
    assert said["creator"] == ["ann"]
    assert sorted(said["subject"]) == ["Birds", "Boats"]


def test_a_reply_says_what_it_answers(coast: Coast, thread: Thread) -> None:
    reply = thread.answer(coast.user("ben"), "At the skerry.\n<script>alert(1)</script>")
    said = item(coast, reply)
    assert said["reply_of"] == [f"pages/{thread.pk}"]
    assert "<script>" in said["description"][0], "it is text, and no markup"


@pytest.mark.parametrize("title", ["GQL", "GQL: mine", " GQL:x"])
def test_a_title_that_would_subscribe_is_quoted(coast: Coast, title: str) -> None:
    said = item(coast, coast.post(title))
    assert said["title"] == [f"“{title}”"]


def test_text_that_xml_cannot_have_is_replaced(coast: Coast) -> None:
    said = item(coast, coast.post("a\x01b\ufffe", "<p>]]> &amp; \x0b</p>"))
    assert said["title"] == ["a\ufffdb\ufffd"]


def test_what_is_rolled_back_was_never_there(coast: Coast) -> None:
    before = Outbox.objects.count()
    with transaction.atomic():
        coast.post("never")
        transaction.set_rollback(True)
    assert Outbox.objects.count() == before


def test_a_draft_does_not_leave(coast: Coast) -> None:
    coast.sent()
    draft = coast.post("soon", is_live=False)
    later = coast.post("later", is_live=False)
    later.go_live_at = timezone.now() + dt.timedelta(days=1)
    later.save_revision().publish()
    outbox.reconcile()
    assert coast.waiting() == []
    draft.save_revision().publish()
    assert coast.waiting() == [("publish", draft.pk)]


@pytest.mark.parametrize("kind", ["password", "login", "groups"])
@pytest.mark.parametrize("above", ["news", "first-puffin-chick-of-the-year"])
def test_a_page_that_becomes_private_is_withdrawn(coast: Coast, kind: str, above: str) -> None:
    coast.sent()
    post = coast.page("first-puffin-chick-of-the-year")
    restriction = PageViewRestriction.objects.create(page=coast.page(above), restriction_type=kind, password="x")
    restriction.groups.add(Group.objects.create(name="editors"))
    assert ("withdraw", post.pk) in coast.waiting()
    assert not any(kind == "publish" for kind, _ in coast.waiting())
    coast.sent()
    coast.change(post, body="<p>secret</p>")
    outbox.reconcile()
    assert coast.waiting() == []
    restriction.delete()
    assert ("publish", post.pk) in coast.waiting()


def test_what_is_unpublished_or_deleted_is_withdrawn(coast: Coast) -> None:
    one, other = coast.post("one"), coast.post("other")
    coast.sent()
    one.unpublish()
    other.delete()
    assert coast.waiting() == [("withdraw", one.pk), ("withdraw", other.pk)]
    coast.sent()
    assert not Outbox.objects.filter(page__in=[one.pk, other.pk]).exists(), "nothing is left of them"


def test_who_moves_takes_all_below_along(coast: Coast) -> None:
    coast.sent()
    news = coast.page("news")
    post = coast.page("first-puffin-chick-of-the-year")
    news.move(coast.page("forum"), pos="last-child")
    assert ("publish", post.pk) in coast.waiting()
    post.refresh_from_db()
    assert item(coast, post)["link"] == [f"{coast.url}/forum/news/first-puffin-chick-of-the-year/"]


def test_another_slug_is_told_of_all_below(coast: Coast, django_capture_on_commit_callbacks: Any) -> None:
    coast.sent()
    with django_capture_on_commit_callbacks(execute=True):
        coast.change(coast.page("news"), slug="today")
    post = coast.page("first-puffin-chick-of-the-year")
    assert item(coast, post)["link"] == [f"{coast.url}/today/first-puffin-chick-of-the-year/"]


def test_what_passed_the_signals_is_made_up_for(coast: Coast) -> None:
    """As imports do, which write rows, and a process that ends between two transactions."""
    coast.sent()
    Outbox.objects.filter(page=coast.page("seals").pk).delete()
    gone = coast.post("gone")
    coast.sent()
    type(gone).objects.filter(pk=gone.pk).update(live=False)
    assert outbox.reconcile() == 2
    assert sorted(coast.waiting()) == [("publish", coast.page("seals").pk), ("withdraw", gone.pk)]
    coast.sent()
    assert outbox.reconcile() == 0


def test_transparent_subscriptions_come_and_go_with_page_and_account(coast: Coast, thread: Thread) -> None:
    reply = thread.answer(coast.user("ben"), "Here.")
    mine = Request.objects.get(user__username="ben")
    assert (mine.kind, mine.page_id) == ("replies", reply.pk)
    assert f"<{coast.url}/triplewire/pages/{reply.pk}>" in mine.query
    mine.delete()
    coast.change(reply, body="<p>There.</p>")
    assert not Request.objects.filter(user__username="ben").exists(), "who wants none gets none again"
    coast.sent()
    of_thread = Request.objects.get(page=thread.pk)
    thread.delete()
    assert ("unsubscribe", None) in coast.waiting()
    assert Outbox.objects.get(kind="unsubscribe", state="waiting").payload == of_thread.subscription
    number = coast.user("ann").pk
    coast.user("ann").delete()
    assert not Request.objects.filter(user=number).exists()
    assert Outbox.objects.get(kind="forget").payload == f"u{number}"


def test_a_save_asks_the_database_as_often_however_many_subscribe(coast: Coast, thread: Thread) -> None:
    """10,000 transparent subscriptions are rows that a save does not look at."""

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            coast.change(thread, body="<p>again</p>")
        return len(seen)

    queries()
    before = queries()
    user = coast.user("ben")
    made = (Request(user=user, kind="query", title=str(n), query="SELECT * WHERE (?x, title, ?y)") for n in range(1000))
    Request.objects.bulk_create(made)
    assert queries() == before
