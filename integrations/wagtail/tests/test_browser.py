"""Figures 12 to 14 of paper 000 in a browser: a feed, what was published, the form; and what WCAG asks of the pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client

from conftest import Coast
from running import until
from test_exchange import OLYMPIC, send
from wagtail_triplewire.models import Request

os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright has an event loop in the thread of the tests


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium as the system has it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def window(browser: Any, joined: Coast) -> Iterator[Any]:
    """A window in which ben is signed in."""
    client = Client()
    client.force_login(joined.user("ben"))
    context = browser.new_context(base_url=joined.url)
    context.set_default_timeout(180_000)
    cookie = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": django_settings.SESSION_COOKIE_NAME, "value": cookie, "url": joined.url}])
    yield context.new_page()
    context.close()


def _serious(window: Any) -> list[str]:
    """What axe finds that keeps people out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(window).response["violations"]
    return [rule["id"] for rule in found if rule["impact"] in ("serious", "critical")]


def test_the_form_of_figure_14(window: Any, joined: Coast) -> None:
    window.goto("/triplewire/requests/new/")
    assert _serious(window) == []
    window.fill("#id_title", "milenko2002")
    window.fill("#id_query", "SELECT *\nWHERE (?x, <title>, ?y")
    window.click("text=Check and try")
    assert "Line 2, column" in window.inner_text("main")
    assert "^" in window.inner_text("pre")
    assert _serious(window) == []
    window.fill("#id_query", "SELECT * WHERE (?x, title, ?y)")
    window.click("text=Check and try")
    assert "Who has seen the seals?" in window.inner_text("main"), "a dry run over the last pages"
    window.fill("#id_description", "all there is")
    window.select_option("#id_interval", label="1 hour")
    window.fill("#id_categories", "people, Canada")
    window.click("text=Submit")
    row = Request.objects.get(user__username="ben", kind="query")
    assert (row.title, row.interval, row.category_names) == ("milenko2002", 3600, ["people", "Canada"])
    assert "Canada" in window.inner_text("aside"), "the reader's own feeds, by category"
    send()
    window.reload()
    assert "active" in window.inner_text("main")
    window.click("main >> text=milenko2002")
    window.click("text=Delete")
    assert not Request.objects.filter(pk=row.pk).exists()


def test_a_query_and_a_feed_or_neither_is_refused(window: Any, joined: Coast) -> None:
    window.goto("/triplewire/requests/new/")
    window.fill("#id_title", "both")
    window.fill("#id_query", OLYMPIC)
    window.fill("#id_url", "https://news.example/feed.rdf")
    window.click("text=Submit")
    assert "one of them" in window.inner_text("main")
    window.fill("#id_query", "")
    window.click("text=Submit")
    assert Request.objects.get(title="both").query.startswith("SELECT ?title FROM <https://news.example/feed.rdf>")


def test_a_subscription_as_figure_12_tells_what_figure_13_publishes(window: Any, joined: Coast) -> None:
    joined.request("SELECT ?t WHERE (?i, title, ?t) SUCHTHAT (?t CONTAINS 'XSLT')")
    send()
    joined.post("Processing Inclusions with XSLT", "<p>Processing document inclusions with general XML tools</p>")
    joined.post("Putting RDF to Work", "<p>Tool and API support for the Resource Description Framework</p>")
    send()
    until(joined.told)
    window.goto("/triplewire/profile/")
    assert "Processing Inclusions with XSLT" in window.inner_text("main")
    assert "Putting RDF to Work" not in window.inner_text("main")
    assert "1 new" in window.inner_text("aside")
    assert _serious(window) == []
    window.click("main >> text=Processing Inclusions with XSLT")
    assert "XSLT" in window.inner_text("pre")
    assert _serious(window) == []
    window.goto("/triplewire/profile/")
    assert "1 new" not in window.inner_text("aside")


def test_a_document_of_a_template(window: Any, joined: Coast) -> None:
    joined.request("SELECT ?n WHERE (?e, rdf:type, schemas:Event) AND (?e, schemas:name, ?n)")
    send()
    window.goto("/triplewire/documents/Event/")
    window.fill("#id_Name", 'Regatta "North"')
    window.fill("#id_Page", "https://coast.example/regatta")
    window.click("text=Preview")
    assert r'"Regatta \"North\""' in window.inner_text("pre")
    assert _serious(window) == []
    window.click("main >> role=button[name=Publish]")
    send()
    entry = until(lambda: Request.objects.get(user__username="ben").notifications.first())
    assert "Regatta" in entry.why
