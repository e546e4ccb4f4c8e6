"""The site and a real service: what is published comes back to who asked for it, once, in order, and only to them."""

from __future__ import annotations

import datetime as dt
import json
import threading
import urllib.request
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone
from wagtail.models import PageViewRestriction

from conftest import Coast
from killed_site import KilledSite, send
from pages.models import Article, Category, Thread
from running import Between, Broker, feed_of, until
from wagtail_triplewire import inbox, sender
from wagtail_triplewire.models import Inbox, Outbox, Request, Sender, VocabularyMap, new_id
from wagtail_triplewire.names import name_of, term_iri
from wagtail_triplewire.service import Service, ServiceError

OLYMPIC = 'SELECT ?t WHERE (?i, title, ?t) SUCHTHAT (?t CONTAINS "Olympic")'


def kinds(name: str) -> set[tuple[str, str]]:
    """What somebody was told, each with the kind of request."""
    return {(entry.request.kind, entry.title) for entry in Inbox.objects.filter(request__user__username=name)}


def pulled() -> None:
    """Fetch what there is, as if no push had come."""
    sender.pull(Service(), Sender.objects.get())


def test_a_post_arrives_in_the_profile_of_who_asked_with_why(joined: Coast, client: Any) -> None:
    joined.request(OLYMPIC)
    joined.request('SELECT ?t WHERE (?i, title, ?t) SUCHTHAT (?t CONTAINS "chess")', by="ann")
    send()
    post = joined.post("Olympic games", "<p>They begin.</p>")
    send()
    until(joined.told)
    client.force_login(joined.user("ben"))
    assert "Olympic games" in client.get("/triplewire/profile/").content.decode()
    entry = Inbox.objects.get()
    shown = client.get(f"/triplewire/entries/{entry.pk}/").content.decode()
    assert "CONTAINS" in shown
    assert entry.page == post.pk
    client.force_login(joined.user("ann"))
    assert client.get(f"/triplewire/entries/{entry.pk}/").status_code == 404
    assert joined.told("ann") == []


def test_transparent_subscriptions_tell_of_replies_changes_and_sections(joined: Coast, client: Any) -> None:
    thread = Thread.objects.get()
    client.force_login(joined.user("ben"))
    for kind, slug in (("section", "home"), ("page", "tides"), ("replies", "seals")):
        client.post(f"/triplewire/follow/{kind}/{joined.page(slug).pk}/")
    assert client.post(f"/triplewire/follow/query/{thread.pk}/").status_code == 404
    send()
    thread.answer(joined.user("admin"), "At the skerry.")
    send()
    joined.change(joined.page("tides"), title="Tides and currents")
    joined.post("Storm")
    send()
    reply = "Re: Who has seen the seals?"  # in a section below a section
    told = {("replies", reply), ("page", "Tides and currents"), ("section", "Storm"), ("section", reply)}
    until(lambda: told <= kinds("ben"))
    assert ("replies", reply) in kinds("ann"), "whose thread it is"


def test_a_notification_is_kept_once_and_fetched_where_its_push_was_lost(joined: Coast) -> None:
    row = joined.request(OLYMPIC)
    send()
    before = Sender.objects.get().cursor
    joined.post("Olympic one")
    send()
    until(joined.told)
    pulled()
    pulled()
    assert joined.told() == ["Olympic one"]
    Inbox.objects.all().delete()
    Sender.objects.update(cursor=before)
    pulled()
    assert joined.told() == ["Olympic one"]
    assert Inbox.objects.get().request_id == row.pk


def test_only_what_may_be_read_at_the_moment_is_shown_and_mailed(joined: Coast, client: Any) -> None:
    row = joined.request(OLYMPIC, by_mail=True, interval=0)
    send()
    post = joined.post("Olympic secret")
    send()
    until(joined.told)
    PageViewRestriction.objects.create(page=post, restriction_type="groups")
    client.force_login(joined.user("ben"))
    entry = Inbox.objects.get()
    for address in ("/triplewire/profile/", f"/triplewire/entries/{entry.pk}/"):
        assert "secret" not in client.get(address).content.decode()
    mail.outbox.clear()
    Request.objects.filter(pk=row.pk).update(mailed=None)
    send()
    assert not mail.outbox
    PageViewRestriction.objects.all().delete()
    Request.objects.filter(pk=row.pk).update(mailed=None)
    send()
    assert {"Olympic secret" in message.body for message in mail.outbox} == {
        True
    }  # it is told anew, which may come yet


def test_drafts_and_private_pages_reach_nobody(joined: Coast, broker: Broker) -> None:
    joined.request("SELECT * WHERE (?x, title, ?y)")
    send()
    news = joined.page("news")
    joined.post("Olympic draft", is_live=False)
    PageViewRestriction.objects.create(page=news, restriction_type="login")
    joined.post("Olympic private")
    send()
    pulled()
    assert not [title for title in joined.told() if title.startswith("Olympic")]
    everything = broker.proxy().notifications({"after": 0, "most": 1000})
    assert "Olympic private" not in str(everything)
    assert "Olympic draft" not in str(everything)


def test_markup_and_what_looks_like_gql_is_content(joined: Coast) -> None:
    joined.request(OLYMPIC)
    send()
    before = len(Service().call("list"))
    body = f"<p>GQL: {OLYMPIC}</p><p>&lt;rdf:RDF&gt;&lt;item&gt; ]]&gt; &amp;amp;</p>"
    joined.post("GQL: Olympic", body)
    send()
    until(joined.told)
    assert joined.told() == ["“GQL: Olympic”"]
    assert len(Service().call("list")) == before


def test_a_deleted_account_leaves_nothing(joined: Coast, broker: Broker) -> None:
    user = joined.user("ben")
    joined.request(OLYMPIC)
    Thread.objects.get().answer(user, "Mine.")
    send()
    joined.post("Olympic end")
    send()
    until(joined.told)
    name = name_of(user.pk)
    assert Service().call("list", user=name)
    user.delete()
    send()
    assert not Request.objects.filter(user=user.pk).exists()
    assert not Inbox.objects.filter(request__user=user.pk).exists()
    assert not Outbox.objects.exclude(state="sent").exists()
    assert Service().call("list", user=name) == []
    assert Service().call("forget", user=name)["subscriptions"] == 0
    assert not [event for event in Service().call("notifications", after=0) if event.get("user") == name]


def test_what_is_saved_in_an_hour_without_the_service_arrives_once_and_in_order(joined: Coast, broker: Broker) -> None:
    """A save a minute, and a sender that tries in vain meanwhile. Another page is deleted at the end."""
    versions, pages = "abcdefgh", 8
    joined.request(OLYMPIC)
    send()
    broker.kill()
    posts = [joined.post(f"Olympic {number:02} a") for number in range(pages)]
    for version in versions[1:]:
        for number, post in enumerate(posts):
            joined.change(post, title=f"Olympic {number:02} {version}")
        send()
    joined.post("Olympic, but no more").delete()
    rows = list(Outbox.objects.filter(state="waiting"))
    assert len(rows) == len(versions) * pages + 2
    begin = timezone.now() - dt.timedelta(minutes=len(rows))
    for number, row in enumerate(rows):
        row.written, row.due = begin + number * dt.timedelta(minutes=1), 0
    Outbox.objects.bulk_update(rows, ["written", "due"])
    broker.start()
    send()
    assert joined.waiting() == []
    until(lambda: len(joined.told()) >= len(versions) * pages)
    pulled()
    told = [entry.title for entry in Inbox.objects.order_by("seq") if entry.title != "Olympic, but no more"]
    assert sorted(told) == sorted(f"Olympic {number:02} {version}" for number in range(pages) for version in versions)
    for number in range(pages):
        assert "".join(title[-1] for title in told if title.startswith(f"Olympic {number:02}")) == versions


def test_a_feed_of_the_form_is_polled_and_told_of_until_nobody_asks(joined: Coast, client: Any) -> None:

    def polled() -> list[str]:
        of = joined.settings.TRIPLEWIRE
        request = urllib.request.Request(f"{of['SERVICE']}/sources", headers={"Authorization": f"Bearer {of['TOKEN']}"})
        with urllib.request.urlopen(request, timeout=180) as answer:
            return [source["url"] for source in json.load(answer)]

    with feed_of("News of seals", "News of puffins") as (url, asked):
        for name in ("ben", "ann"):
            client.force_login(joined.user(name))
            given = {"title": "seals", "url": url, "query": "", "interval": 0, "categories": "coast"}
            assert client.post("/triplewire/requests/new/", given).status_code == 302
        send()
        until(lambda: len(joined.told()) == 2)
        assert sorted(joined.told()) == ["News of puffins", "News of seals"]
        assert asked, "the service asks the feed itself"
        for name in ("ben", "ann"):
            assert polled().count(url) == 1
            client.force_login(joined.user(name))
            row = Request.objects.get(user=joined.user(name), kind="feed")
            assert client.post(f"/triplewire/requests/{row.pk}/delete/").status_code == 302
            send()
        assert url not in polled()
        assert not Inbox.objects.filter(title__startswith="News of"), "with the request goes what it was told"


def test_leases_are_renewed_in_bulk_and_the_lists_agree_after_a_restart(joined: Coast) -> None:
    rows = [joined.request(OLYMPIC) for _ in range(3)]
    send()
    ids = {row.pk: row.subscription for row in Request.objects.all()}
    soon = Request.objects.get(pk=rows[0].pk).made
    Request.objects.update(expires=soon)
    between = Between(joined.settings.TRIPLEWIRE["SERVICE"])
    joined.settings.TRIPLEWIRE = {**joined.settings.TRIPLEWIRE, "SERVICE": between.url}
    assert sender.renew(Service()) == len(ids)
    assert len(between.seen) == 1, "one call for all"
    between.end()
    assert not Request.objects.filter(expires__lte=soon).exists()
    joined.settings.TRIPLEWIRE = {**joined.settings.TRIPLEWIRE, "SERVICE": between.url}


def test_what_is_missing_on_either_side_is_set_right(joined: Coast) -> None:
    here, gone, stray = joined.request(OLYMPIC), joined.request(OLYMPIC), new_id()
    send()
    service = Service()
    service.call("unsubscribe", subscription=Request.objects.get(pk=gone.pk).subscription)
    service.call("subscribe", id=stray, user="u9", query=OLYMPIC, language="gql")
    sender.reconcile(service)
    send()
    there = {told["id"] for told in Service().call("list") if told["state"] != "ended"}
    assert there == set(Request.objects.values_list("subscription", flat=True))
    assert Request.objects.get(pk=here.pk).subscription == here.subscription
    assert Request.objects.get(pk=gone.pk).subscription != gone.subscription
    assert set(Request.objects.values_list("state", flat=True)) == {"active"}


def test_the_vocabulary_follows_the_site(joined: Coast, broker: Broker) -> None:
    birds = Category.objects.get(name="Birds")
    of_class = "SELECT ?t WHERE ((?i, rdf:type, ?c) SUCHTHAT (?c ISA <= <{}>)) AND (?i, title, ?t)"
    sport = Category(name="Sport")
    sport.save()
    joined.request(OLYMPIC.replace("Olympic", "before"))
    joined.request(of_class.format(term_iri(f"category-{sport.pk}")))
    send()
    assert not Sender.objects.get().taxonomy

    def article(title: str) -> None:
        made = Article(title=title, owner=joined.user("ann"), live=False)
        made.categories = [birds]
        joined.page("home").add_child(instance=made)
        made.save_revision().publish()
        send()

    article("before")
    assert until(joined.told) == ["before"]  # so it was matched
    birds.parents = [*birds.parents.all(), sport]
    birds.save()
    send()
    article("after")
    until(lambda: len(joined.told()) > 1)
    assert joined.told() == ["before", "after"], "a change holds for what comes later"
    assert VocabularyMap.objects.get(term=f"category-{birds.pk}").exported.count("subClassOf") == 2


def test_a_site_at_another_address_is_told_anew(joined: Coast, broker: Broker) -> None:
    request, birds = joined.request(OLYMPIC), Category.objects.get(name="Birds")
    send()
    there = joined.url.replace("localhost", "127.0.0.1")
    token = broker.token("moved", "--namespace", f"{there}/triplewire/")
    joined.settings.TRIPLEWIRE = {**joined.settings.TRIPLEWIRE, "SITE": there, "TOKEN": token}
    Sender.objects.update(cursor=0)
    send()
    exported = dict(VocabularyMap.objects.values_list("term", "exported"))
    assert f"category-{birds.pk}" in exported
    assert all(text.startswith(f"<{there}/") for text in exported.values())
    assert not Sender.objects.get().taxonomy, "the service takes all of it"
    assert Request.objects.get(pk=request.pk).subscription != request.subscription
    joined.post("Olympic games", "<p>They begin.</p>")
    send()
    until(joined.told)
    assert joined.told() == ["Olympic games"]


def test_a_refusal_says_why(joined: Coast) -> None:
    with pytest.raises(ServiceError, match=r"was not granted to coast.*--namespace IRI"):
        Service().http("PATCH", "/taxonomy?namespace=http%3A%2F%2Felsewhere.example%2F", {"add": ""})


def test_a_cycle_of_categories_is_refused_with_its_path(joined: Coast) -> None:
    wildlife, birds = Category.objects.get(name="Wildlife"), Category.objects.get(name="Birds")
    wildlife.parents = [birds]
    wildlife.save()
    send()
    refused = Outbox.objects.filter(state="refused").last()
    assert "Birds -> Wildlife -> Birds" in refused.answer or "Wildlife -> Birds -> Wildlife" in refused.answer
    assert joined.waiting() == []


@pytest.mark.parametrize("is_answer_lost", [False, True])
def test_a_sender_that_is_killed_at_any_call_loses_and_doubles_nothing(
    joined: Coast, broker: Broker, elsewhere: KilledSite, is_answer_lost: bool
) -> None:
    """Each call of the service in turn is lost, or its answer, and the sender is killed with it."""
    between = Between(broker.url)
    between.is_answer_lost = is_answer_lost
    joined.settings.TRIPLEWIRE = {**joined.settings.TRIPLEWIRE, "SERVICE": between.url}
    joined.request(OLYMPIC)
    send()
    between.happens = elsewhere.kill
    rounds, is_killed = 0, True
    while is_killed:
        post = joined.post(f"Olympic {rounds}")
        joined.change(post, body="<p>more</p>")
        joined.request("SELECT * WHERE (?x, title, chess)")
        between.at = len(between.seen) + rounds
        is_killed = elsewhere.is_killed("send")
        between.at = -1
        rounds += 1
    methods = {seen.split(" ", 1)[1] for seen in between.seen}
    assert {"/RPC2 publish", "/RPC2 subscribe", "/RPC2 list"} <= methods
    assert rounds > 4
    send()
    assert joined.waiting() == []
    until(lambda: len(joined.told()) >= 2 * rounds)
    pulled()
    between.end()
    told = sorted((entry.title, entry.type) for entry in Inbox.objects.all())
    assert told == sorted((f"Olympic {n}", kind) for n in range(rounds) for kind in ("matched", "changed"))


@pytest.mark.parametrize("step", ["before the commit", "before the send", "before the mark"])
def test_a_site_that_is_killed_between_save_and_mark_loses_and_doubles_nothing(
    joined: Coast, elsewhere: KilledSite, step: str
) -> None:
    """The processes of the site are killed at a step of the flow; then it goes on with others."""
    joined.request(OLYMPIC)
    send()
    number = Outbox.objects.count()

    assert elsewhere.is_killed("save without a commit" if step == "before the commit" else "save")
    assert Outbox.objects.count() == number + (step != "before the commit")
    if step == "before the mark":
        assert elsewhere.is_killed("send without a mark")
    send()
    assert joined.waiting() == []
    joined.post("Olympic again")
    send()
    until(lambda: "Olympic again" in joined.told())
    pulled()
    assert joined.told() == ["Olympic games"] * (step != "before the commit") + ["Olympic again"]


def test_saves_are_told_within_two_seconds(joined: Coast) -> None:
    """A sender beside it, as `make cms` has one: nothing here waits for a period to pass."""
    joined.request(OLYMPIC)
    send()
    stopping = threading.Event()
    running = threading.Thread(target=sender.run, args=(stopping,))
    running.start()
    try:
        for number in range(3):
            joined.post(f"Olympic {number}")
            until(lambda number=number: f"Olympic {number}" in joined.told())
    finally:
        stopping.set()
        running.join(180)
    assert inbox.unread(joined.user("ben")).count() == 3
