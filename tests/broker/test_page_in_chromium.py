"""The page in a real browser: the tutorial, the live tester, no script of a stranger, and what WCAG asks for."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from amounts import IN_FULL
from broker.page_visits import TOKEN, Service, chromium, row_of, served, sqlite_in
from pipeline.connect.servers import free_port
from triplewire.broker.broker import Target, Wanted
from triplewire.store.tables import deliveries, events, publications, sources

pytestmark = pytest.mark.xdist_group("chromium")  # one worker starts it

VECTORS = Path(__file__).parents[1] / "cases/page/vectors.txt"
QUERY = 'SELECT ?title { ?item rss:title ?title FILTER ftcontains(?title, "swimming") }'
PAGES = (
    "/",
    "/page/new",
    "/page/subscriptions/1",
    "/page/subscriptions/1/edit",
    "/page/subscriptions/1/why",
    "/page/subscriptions/1/why/1",
    "/page/subscriptions/1/why/2",
    "/page/sources",
    "/page/dead-letters",
    "/page/settings",
    "/page/none",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    """A service with nothing in it."""
    with served(sqlite_in(tmp_path)) as service:
        yield service


def opened(browser: Any, **how: Any) -> Any:
    """A window, in which a slow machine has minutes for each step."""
    context = browser.new_context(**how)
    context.set_default_timeout(300_000)
    return context.new_page()


def signed_in(browser: Any, base: str, **how: Any) -> Any:
    """A window of who is signed in."""
    window = opened(browser, base_url=base, **how)
    window.goto("/sign-in")
    window.fill("input[name=token]", TOKEN)
    window.click("button.main")
    return window


FEED = (
    b'<rss version="2.0"><channel><title>c</title><link>http://example.org/</link><description>d</description>'
    b"<item><guid>urn:1</guid><title>Swimming in the lake</title></item></channel></rss>"
)


class Feed(http.server.BaseHTTPRequestHandler):
    """A server of a feed."""

    def do_GET(self) -> None:
        """The feed, whatever is asked for."""
        self.send_response(200)
        self.send_header("Content-Type", "application/rss+xml")
        self.end_headers()
        self.wfile.write(FEED)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def feed() -> Iterator[str]:
    """The address of a feed on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Feed) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield f"http://127.0.0.1:{server.server_port}/feed.xml"
        server.shutdown()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """`triplewire serve` from an empty folder; the address that it prints, once it answers there."""
    more = {"TRIPLEWIRE_TOKEN": TOKEN, "TRIPLEWIRE_TIER": "interpreted", "TRIPLEWIRE_ALLOW_PRIVATE_ADDRESSES": "1"}
    command = [sys.executable, "-m", "triplewire", "serve", "--data", str(folder), "--port", str(free_port())]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **more}) as process:
        try:
            assert process.stderr is not None
            address = next(line.split()[-1] for line in process.stderr if "/sign-in?key=" in line)
            while True:  # it listens a moment after it has said so
                with contextlib.suppress(urllib.error.URLError):
                    urllib.request.urlopen(address.partition("/sign-in")[0] + "/liveness", timeout=300).close()
                    break
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()


def test_the_tutorial_from_an_empty_folder(browser: Any, tmp_path: Path, feed: str) -> None:
    """Start the service, open the address that it prints, add a feed, type a query while what matches lights up, save
    it, and read the first entry."""
    with serving(tmp_path / "data") as address:
        window = opened(browser)
        window.goto(address)
        assert window.locator(".welcome").count() == 1
        window.click("text=Add a feed")
        window.fill("input[name=url]", feed)
        window.fill("main input[name=title]", "The Daily Example")
        window.click("text=Add >> nth=-1")
        assert "The Daily Example" in window.locator("section[aria-labelledby=all]").inner_text()
        while not window.locator("#publications li[data-number]").count():  # until it was polled
            window.click("nav >> text=New")
        window.fill("#query", "swimming")
        window.wait_for_selector("#publications li.lit")
        window.fill("main input[name=title]", "Water")
        window.click("text=Save")
        base, headers = address.partition("/sign-in")[0], {"Authorization": f"Bearer {TOKEN}"}
        again = FEED.replace(b"urn:1", b"urn:2")
        assert window.request.post(f"{base}/publish?wait=1", data=again, headers=headers).status == 202
        window.reload()
        assert window.locator("h1").inner_text() == "Water"
        assert "Swimming in the lake" in window.locator("section[aria-labelledby=entries]").inner_text()
        assert window.locator("section[aria-labelledby=addresses] input").count() == 8


def test_matched_publications_light_up_while_typing(browser: Any, running: Service) -> None:
    """With the price; a wrong query has its place told; and what was published long ago is shown where it matches."""
    running.publish(*(["Swimming long ago"] + [f"Running {number}" for number in range(119)] + ["Swimming now"]))
    window = signed_in(browser, running.base)
    window.goto("/page/new")
    assert window.locator("#publications li").count() == 100
    window.type("#query", "swimming")
    window.wait_for_selector("#publications li.lit >> nth=1")
    assert window.locator("#publications li.lit").all_inner_texts()[1].strip() == "Swimming long ago"
    assert "2 of the last 121 (1.7 %)" in window.locator("#found").inner_text()
    assert window.locator(".strip rect").count() == 2
    window.check("#only")
    assert window.locator("#publications li:visible").count() == 2
    window.select_option("#language", "sparql")
    window.wait_for_selector("#wrong .bad")
    assert "Line 1" in window.locator("#wrong").inner_text()
    window.fill("#query", QUERY)
    window.wait_for_selector("#wrong:not(:has(.bad))", state="attached")
    assert "ftcontains" in window.locator("#asks pre").text_content()


@pytest.mark.parametrize("language", ["keywords", "sparql", "gql"])
def test_a_field_that_is_clicked_becomes_a_condition(browser: Any, running: Service, language: str) -> None:
    """Each field of an example gives a query that matches it, alone and with the one before."""
    text = """@prefix rss: <http://purl.org/rss/1.0/> . @prefix dc: <http://purl.org/dc/elements/1.1/> .
    <urn:a> a rss:item ; rss:title "Swimming, \\"the\\" \\\\ race: it's 10 (m)" ; dc:creator "Ann" ; dc:date 2004 ;
      dc:issued "2004-05-06"^^<http://www.w3.org/2001/XMLSchema#date> ;
      dc:subject "two" ; rss:link <http://example.org/a?b=c&d=e> ; dc:description "%s" ;
      <http://example.org/own#thing> "mine" .""" % ("word " * 60)
    assert running.ask("/publish?wait=1", text.encode(), kind="text/turtle")[0] == 202
    window = signed_in(browser, running.base)
    window.goto("/page/new")
    window.click("#publications summary")
    fields = window.locator("#publications .field")
    count = fields.count()
    assert count >= 7
    asked: list[str] = []
    for place in range(count):
        window.fill("#query", "")
        window.select_option("#language", language)
        window.wait_for_selector("#publications li:not(.lit)")
        if not fields.nth(place).is_enabled():
            continue  # this language cannot ask for it
        asked.append(fields.nth(place).get_attribute("data-property"))
        for each in (place, 1):
            fields.nth(each).click()
            window.wait_for_selector("#publications li.lit, #wrong .bad")
            assert window.locator("#wrong").inner_text() == "", window.locator("#query").input_value()
            window.wait_for_selector("#publications li.lit")
    assert {"rss:title", "rss:link", "dc:creator"} <= set(asked)


def test_the_page_keeps_itself_up_to_date(browser: Any, running: Service) -> None:
    """What matches shows up on the start page without a reload."""
    running.broker.subscribe(Wanted(QUERY, title="Water"), "owner")
    window = signed_in(browser, running.base)
    assert "Nothing yet" in window.locator("ul.events >> nth=0").inner_text()
    running.publish("Swimming now")
    window.wait_for_selector("text=Swimming now")


def test_the_page_does_without_scripts(browser: Any, running: Service) -> None:
    """Try, save, open an entry and sign out, with JavaScript off."""
    running.publish("Swimming now", "Running")
    window = signed_in(browser, running.base, java_script_enabled=False)
    window.click("text=New subscription")
    window.fill("#query", "swimming")
    window.click("text=Try it")
    assert "1 of the last 2" in window.locator("#found").inner_text()
    assert window.locator("li.lit").count() == 1
    window.click("text=Save")
    assert window.locator("h1").inner_text() == "swimming"
    assert not window.locator("button.copy >> nth=0").is_visible()
    window.click("text=Sign out")
    assert window.url.endswith("/sign-in")


# --- scripts of strangers --------------------------------------------------------------------------------------------


def poisoned(service: Service, vectors: list[str]) -> None:
    """Each vector in each input that a stranger or an owner has."""
    database = service.broker.database
    for place, vector in enumerate(vectors):
        quoted = json.dumps(vector)
        service.broker.subscribe(Wanted(QUERY, title=vector, id=f"s{place}"), "owner")
        service.broker.subscribe(Wanted(f"SELECT ?t {{ ?s rss:title ?t FILTER (?t != {quoted}) }}"), "owner")
    text = "@prefix rss: <http://purl.org/rss/1.0/> . @prefix dc: <http://purl.org/dc/elements/1.1/> ."
    for place, vector in enumerate(vectors):
        quoted = json.dumps(f"swimming {vector}")
        said = f"<urn:v{place}> a rss:item; rss:title {quoted}; rss:link {json.dumps(vector)}; dc:creator {quoted} ."
        assert service.ask("/publish?wait=1", f"{text} {said}".encode(), kind="text/turtle")[0] == 202

    def write(connection: Any) -> None:
        for place, vector in enumerate(vectors):
            changed = {"link": vector, "reason": vector, "source": vector}
            here = publications.update().where(publications.c.number == place + 1)
            connection.execute(here.values(**changed, state="refused" if place % 2 else "matched"))
            state = json.dumps({"reason": vector, "told": [vector]})
            named = {"id": f"x{place}", "owner": "owner", "kind": "poll", "url": vector, "title": vector * (place % 2)}
            connection.execute(sources.insert().values(row_of(sources, **named, state=state)))
        for number in connection.execute(sa.select(events.c.number)).scalars().all():
            vector = vectors[number % len(vectors)]
            row = row_of(deliveries, event=number, target=1 + number % 5, tries=1, status=vector)
            row["state"] = "dead" if number % 2 else "pending"
            connection.execute(deliveries.insert().values(row))

    for place, vector in enumerate(vectors):
        if place < 5:
            service.broker.add_target(1, Target(vector, vector))
    database.write(write)


def test_no_vector_runs_in_any_page(browser: Any, running: Service) -> None:
    """0 scripts run, and none is even stopped by the policy: no vector becomes markup."""
    vectors = [line for line in VECTORS.read_text("utf-8").splitlines() if line]
    assert len(vectors) > 60
    poisoned(running, vectors[:40])
    window = signed_in(browser, running.base)
    hits: list[str] = []
    window.expose_function("hit", lambda: hits.append(window.url))
    stopped: list[str] = []
    window.on("console", lambda message: stopped.append(message.text) if "Content Security" in message.text else None)
    window.on("dialog", lambda dialog: hits.append("dialog"))
    paths = [*PAGES[:-1], "/page/subscriptions/2", "/page/subscriptions/2/why/1", "/page/subscriptions/2/why/3"]
    for path in paths:
        window.goto(path)
        for unsafe in window.locator("main a").evaluate_all("found => found.map(one => one.href)"):
            assert unsafe.startswith(("http://", "https://")), path
        assert window.locator("main :is(script, iframe, object, embed, img, video, marquee, math)").count() == 0, path
    forms = ("/?word={}", "/page/new?query={}&language=sparql", "/page/new?query={}", "/sign-in?then={}")
    for number, vector in enumerate(vectors):
        for path in forms if IN_FULL else forms[number % 4 :][:1]:
            window.goto(path.format(quote(vector)))
    window.goto("/page/new")
    for vector in vectors:
        window.fill("#query", vector)
        window.wait_for_timeout(30)
    window.fill("#query", "swimming")
    window.wait_for_selector("#publications li.lit")
    assert hits == []
    assert stopped == []
    window.evaluate("hit()")  # what would have been told
    assert len(hits) == 1


@pytest.mark.parametrize(
    ("width", "scheme"), [(400, "dark"), (1400, "light"), *([(400, "light"), (1400, "dark")] if IN_FULL else [])]
)
def test_pages_are_accessible_and_fit(browser: Any, running: Service, width: int, scheme: str) -> None:
    """axe finds nothing by the rules of WCAG 2.2 AA, and nothing is wider than the window."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    running.broker.subscribe(Wanted(QUERY, title="Water"), "owner")
    running.broker.subscribe(Wanted("swimming", "keywords", seconds=600.0), "owner")
    running.publish(
        "Swimming in a lake with a name that is rather long: Chargoggagoggmanchauggagoggchaubunagungamaugg", "b"
    )
    running.broker.add_target(1, Target("webhook", "https://example.org/" + "long" * 30))
    with running.broker.database.reading() as connection:
        event = connection.execute(sa.select(events.c.number)).scalar()
    for state in ("dead", "pending", "delivered"):
        row = row_of(deliveries, event=event, target=1, state=state, tries=3, status="500 sorry")
        running.broker.database.write(lambda connection, row=row: connection.execute(deliveries.insert().values(row)))
    window = signed_in(browser, running.base, viewport={"width": width, "height": 900}, color_scheme=scheme)
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    for path in (*PAGES, "/sign-in"):
        window.goto(path)
        if path == "/page/new":
            window.fill("#query", "swimming")
            window.wait_for_selector("#publications li.lit")
            window.click("#publications summary >> nth=0")
        found = axe.Axe().run(window, options=rules)
        told = [(rule["id"], rule["impact"], rule["nodes"][0]["html"]) for rule in found.response["violations"]]
        assert told == [], path
        assert window.evaluate("document.documentElement.scrollWidth") <= width, path
