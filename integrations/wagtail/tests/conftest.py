"""The example site with its people and pages, and a real service beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from wagtail.models import Locale, Page, Site

from killed_site import KilledSite, killed_site
from pages.models import BlogPost, Section, Thread
from running import PROGRAM, Broker
from wagtail_triplewire import outbox, sender
from wagtail_triplewire.models import Inbox, Outbox, Request, Sender
from wagtail_triplewire.service import Service


@dataclass
class Coast:
    """The site of the tests."""

    settings: Any
    url: str = "http://127.0.0.1:8000"

    def user(self, name: str) -> Any:
        """A person of the example."""
        return get_user_model().objects.get(username=name)

    def page(self, slug: str) -> Any:
        """A page of the example."""
        return Page.objects.get(slug=slug).specific

    def post(self, title: str, body: str = "", by: str = "ann", is_live: bool = True) -> BlogPost:
        """A new post of the news."""
        made = BlogPost(title=title, body=body, owner=self.user(by), live=False)
        self.page("news").add_child(instance=made)
        revision = made.save_revision()
        if is_live:
            revision.publish()
        made.refresh_from_db()
        return made

    def change(self, page: Any, **fields: str) -> None:
        """Another content of a page."""
        page = page.specific
        for name, value in fields.items():
            setattr(page, name, value)
        page.save_revision().publish()

    def request(self, query: str, by: str = "ben", **more: Any) -> Request:
        """An explicit request."""
        return Request.objects.create(user=self.user(by), kind="query", title="mine", query=query, **more)

    def waiting(self) -> list[tuple[str, int | None]]:
        """What is to be sent."""
        return list(Outbox.objects.filter(state="waiting").values_list("kind", "page"))

    def sent(self) -> None:
        """Forget what is to be sent, as if it had been."""
        for row in Outbox.objects.filter(state="waiting"):
            sender._sent(row)

    def told(self, by: str = "ben") -> list[str]:
        """The titles that somebody was told, the first of them first."""
        entries = Inbox.objects.filter(request__user__username=by).order_by("pk")
        return [entry.title for entry in entries]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """People and pages are made once for all tests that do not empty the tables."""
    with django_db_blocker.unblock():
        _fill()


def _fill() -> None:
    Locale.objects.get_or_create(language_code="en")
    if not Page.objects.exists():
        Page.add_root(instance=Page(title="Root", slug="root"))
    call_command("demo_content")


def _filled(settings: Any, url: str = "http://127.0.0.1:8000") -> Coast:
    settings.WAGTAILADMIN_BASE_URL = url
    Site.clear_site_root_paths_cache()
    _fill()  # the tables were emptied behind a test before
    outbox.WOKEN.clear()
    return Coast(settings, url)


@pytest.fixture
def coast(db: None, settings: Any) -> Coast:
    """The site alone."""
    return _filled(settings)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A service."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not there: `make test` in the folder of Triplewire sets it up")
    made = Broker(tmp_path_factory.mktemp("broker") / "data")
    yield made
    made.kill()


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[KilledSite]:
    """The site in processes of its own, which may be killed."""
    with killed_site() as site:
        yield site


@pytest.fixture(scope="session")
def token(broker: Broker, live_server: Any) -> str:
    """Of the site at its address: an owner of its own, who may say what its names mean."""
    return broker.token("coast", "--namespace", f"{live_server.url}/triplewire/")


@pytest.fixture
def joined(transactional_db: None, settings: Any, live_server: Any, broker: Broker, token: str) -> Coast:
    """The site at an address, with nothing left to send; the service has forgotten its users of before."""
    settings.TRIPLEWIRE = {**settings.TRIPLEWIRE, "SERVICE": broker.url, "TOKEN": token, "PULL": 3_600}
    made = _filled(settings, live_server.url)
    service = Service()
    for user in {told["user"] for told in service.call("list") if told.get("user")}:
        service.call("forget", user=user)
    Sender.objects.update_or_create(pk=1, defaults={"cursor": last_event(service)})
    call_command("triplewire_sender", "--once")
    return made


def last_event(service: Service) -> int:
    """The number of the newest event of the site."""
    events, last = True, 0
    while events:
        events = service.call("notifications", after=last, most=1_000)
        last = int(events[-1]["number"]) if events else last
    return last


@pytest.fixture
def home(coast: Coast) -> Section:
    """The first page of the site."""
    return Section.objects.get(slug="home")


@pytest.fixture
def thread(coast: Coast) -> Thread:
    """A thread of ann's."""
    return Thread.objects.get()
