"""The page without a browser's scripts: who may see it, what its forms do, and what it says."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

import triplewire.service
from broker.page_visits import TOKEN, Service, Visitor, row_of, served, sqlite_in
from triplewire.broker.broker import Target, Wanted
from triplewire.service.access import doors
from triplewire.service.app import ServiceSettings
from triplewire.store.database import Database, now
from triplewire.store.tables import deliveries, events, publications, targets

QUERY = 'SELECT ?title { ?item rss:title ?title FILTER ftcontains(?title, "olympic games") }'
TEMPLATES = Path(triplewire.service.__file__).parent / "templates"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    """A service with a subscription and two publications."""
    with served(sqlite_in(tmp_path)) as service:
        filled(service)
        yield service


@pytest.fixture
def on_both(database_url: str) -> Iterator[Service]:
    """The same on both databases."""
    with served(database_url) as service:
        filled(service)
        yield service


def filled(service: Service) -> None:
    made = service.broker.subscribe(Wanted(QUERY, title="Games", id="games"), "owner")
    service.publish("Olympic games in Toronto", "Budget of the city")
    service.broker.add_target(made.number, Target("webhook", "http://user:unsaid@example.org/?token=unsaid"))
    with service.broker.database.reading() as connection:
        event = connection.execute(sa.select(events.c.number)).scalar()
        target = connection.execute(sa.select(targets.c.number)).scalar()
    row = row_of(deliveries, event=event, target=target, state="dead", tries=3, status="500 sorry")
    service.broker.database.write(lambda connection: connection.execute(deliveries.insert().values(row)))


def paths(service: Service, method: str, **more: int) -> list[str]:
    """The pages of a method, with the numbers that are there."""
    numbers = {"number": 1, "publication": 1, **more}
    return [
        route.path.format(**numbers)
        for route in doors(service.app.routes)
        if method in (route.methods or ()) and (route.path == "/" or route.path.startswith("/page/"))
    ]


def test_nobody_sees_a_page_without_signing_in(running: Service) -> None:
    """Each page sends who is not signed in, or has a forged cookie, to the form, and back after it."""
    forged = running.visitor()
    (cookie,) = forged.cookies
    cookie.value = cookie.value[:-1] + ("0" if cookie.value[-1] != "0" else "1")
    found = paths(running, "GET")
    assert len(found) > 8
    for path in found:
        for visitor in (Visitor(running.base), forged):
            assert visitor.get(path).path == "/sign-in"
    visitor = Visitor(running.base)
    assert visitor.sign_in("another").status == 403
    assert visitor.sign_in(TOKEN, "/page/sources").path == "/page/sources"


@pytest.mark.parametrize("then", ["https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example", "/s/x"])
def test_signing_in_leads_to_no_other_site(running: Service, then: str) -> None:
    """Only to a page of this service."""
    answer = Visitor(running.base).sign_in(TOKEN, then)
    assert (answer.status, answer.path) == (200, "/")
    assert answer.url.startswith(running.base)


@pytest.mark.parametrize(("base", "secure"), [("", False), ("https://broker.example", True)])
def test_the_cookie_is_kept_from_scripts_and_other_sites(tmp_path: Path, base: str, secure: bool) -> None:
    """HttpOnly, SameSite=Strict, and Secure where the service is reached by https."""
    with served(sqlite_in(tmp_path), ServiceSettings(token=TOKEN, base_url=base)) as service:
        visitor = Visitor(service.base)
        visitor.sign_in()
        (cookie,) = visitor.cookies
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "strict"
    assert cookie.secure is secure


def test_the_printed_address_signs_in_once(running: Service) -> None:
    """The second time it asks for a token."""
    address = f"/sign-in?key={running.app.state.first_visit}"
    assert Visitor(running.base).get(address).path == "/"
    again = Visitor(running.base).get(address)
    assert (again.status, again.path) == (403, "/sign-in")
    assert Visitor(running.base).get("/sign-in?key=").path == "/sign-in"


def test_a_revoked_token_ends_its_sessions(running: Service) -> None:
    """And signing out ends the one."""
    token = running.broker.new_token("ann")
    ann, other = running.visitor(token), running.visitor(token)
    assert ann.send("/sign-out").path == "/sign-in"
    assert ann.get("/").path == "/sign-in"
    shown = other.get("/page/settings")
    (digest,) = re.findall(r'name="revoke" value="([0-9a-f]+)"', shown.text)
    other.send("/page/settings", revoke=digest)
    assert other.get("/").path == "/sign-in"


def test_a_token_that_is_made_is_shown_once_and_works(running: Service) -> None:
    """It is the owner's."""
    shown = running.visitor().send("/page/settings")
    (token,) = re.findall(r"tw_api_[\w-]+", shown.text)
    assert running.ask("/subscriptions", token=token)[0] == 200
    assert token not in running.visitor().get("/page/settings").text


def test_no_form_is_taken_from_another_site(running: Service) -> None:
    """Each needs the code of the session; a code of another session is none."""
    visitor, other = running.visitor(), running.visitor(running.broker.new_token("ann"))
    foreign = other.get("/").code
    assert foreign
    found = [*paths(running, "POST"), "/sign-out"]
    assert len(found) > 8
    for path in found:
        for code in ("", "0", foreign):
            assert visitor.post(path, {"code": code, "state": "paused"}).status == 403, path
    assert running.broker.by_number(1).state == "active"
    sent = {"Sec-Fetch-Site": "cross-site"}
    assert Visitor(running.base).get("/sign-in", b"token=" + TOKEN.encode(), **sent).status == 403


def test_pages_of_another_owner_are_not_there(running: Service) -> None:
    """As if they never were: 404."""
    ann = running.visitor(running.broker.new_token("ann"))
    found = [path for path in paths(running, "GET") if "/subscriptions/" in path]
    assert len(found) == 5
    for path in found:
        assert ann.get(path).status == 404
    for path in [path for path in paths(running, "POST") if "/subscriptions/" in path]:
        assert ann.send(path, state="paused", seconds="600", query=QUERY, language="sparql", save="1").status == 404
    ann.send("/page/deliveries/1", do="resend")
    ann.send("/page/refused/1")
    assert running.broker.by_number(1).state == "active"
    with running.broker.database.reading() as connection:
        assert connection.execute(sa.select(deliveries.c.state)).scalar() == "dead"
    assert "Games" not in ann.get("/").text
    assert "Olympic" not in ann.get("/page/newest").text + ann.get("/page/dead-letters").text


def test_a_publication_for_others_is_in_no_page(running: Service) -> None:
    """Neither in the tester, nor why and why not, nor as an entry."""
    running.publish("Olympic games in secret", readers="ann", id="urn:secret:{}")
    visitor, ann = running.visitor(), running.visitor(running.broker.new_token("ann"))
    for path in paths(running, "GET"):
        assert "in secret" not in visitor.get(path).text, path
    assert visitor.get("/page/subscriptions/1/why/3").status == 404
    assert "in secret" in ann.get("/page/new").text


def test_each_page_loads_nothing_from_elsewhere(running: Service) -> None:
    """Its policy allows no script and no style but files of this service, and the page has none in it."""
    visitor = running.visitor()
    for path in [*paths(running, "GET"), "/sign-in", "/page/absent"]:
        answer = visitor.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "'unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", answer.text), path
        for loaded in re.findall(r'(?:src|href)="(/static/[^"]+)"', answer.text):
            assert visitor.get(loaded).status == 200


def test_what_a_person_does_with_forms_alone(on_both: Service) -> None:
    """Try a query, save it, read its entries, ask why, change, pause, renew and end it."""
    visitor = on_both.visitor()
    tried = visitor.send("/page/new", query="budget", language="keywords")
    assert "Would have matched 1 of the last 2 (50.0 %)" in tried.said
    assert tried.text.count('class="lit"') == 1
    made = visitor.send("/page/new", query="budget", language="keywords", title="Money", seconds="604800.0", save="1")
    assert made.path == "/page/subscriptions/2"
    on_both.publish("Another budget", id="urn:later:{}")
    shown = visitor.get("/page/subscriptions/2")
    assert "Another budget" in shown.said
    assert shown.said.count("/s/2-") == 0
    assert len(set(re.findall(r'value="http://[^"]+/s/2-[a-z2-7]+\.(\w+)"', shown.text))) == 7
    (why,) = re.findall(r"/page/subscriptions/2/why/\d+", shown.text)
    assert "It matches" in visitor.get(why).said
    missed = visitor.get("/page/subscriptions/2/why/1")
    assert "It does not match" in missed.said
    assert "<svg" in missed.text
    found = visitor.get("/?word=mon").text
    assert [f'class="name" href="/page/subscriptions/{number}"' in found for number in (1, 2)] == [False, True]

    changed = visitor.send(
        "/page/subscriptions/2/edit", query="city", language="keywords", title="Town", once_per_story="1", save="1"
    )
    assert changed.path == "/page/subscriptions/2"
    row = on_both.broker.by_number(2)
    assert (row.query, row.title, row.revision, row.once_per_story) == ("city", "Town", 2, True)
    visitor.send("/page/subscriptions/2/state", state="paused")
    assert on_both.broker.by_number(2).state == "paused"
    visitor.send("/page/subscriptions/2/renew", seconds="2592000.0")
    assert on_both.broker.by_number(2).expires > row.expires
    visitor.send("/page/subscriptions/2/targets", webhook="http://127.0.0.1/hook")
    assert "http://127.0.0.1/hook" in visitor.get("/page/subscriptions/2").said
    (target,) = on_both.broker.targets.of(2)
    assert "<svg" in visitor.get("/page/subscriptions/2").text, "its address as a QR code"
    assert "was not taken" in visitor.send("/page/subscriptions/2/targets", test=str(target.number)).said
    assert "Deliver again" in visitor.send("/page/subscriptions/2/mute").said
    assert on_both.broker.targets.of(2)[0].until > now() + 86_000
    assert "Mute for a day" in visitor.send("/page/subscriptions/2/mute", end="1").said
    assert visitor.send("/page/subscriptions/2/end").path == "/"
    assert on_both.broker.by_number(2).state == "ended"


def test_dead_letters_are_sent_again_or_given_up(on_both: Service) -> None:
    """By their owner; what could not be matched by the owner of the service."""
    visitor, database = on_both.visitor(), on_both.broker.database
    shown = visitor.get("/page/dead-letters")
    assert "500 sorry" in shown.said
    assert "unsaid" not in shown.text + visitor.get("/page/subscriptions/1").text

    def state() -> str:
        with database.reading() as connection:
            return str(connection.execute(sa.select(deliveries.c.state)).scalar())

    visitor.send("/page/deliveries/1", do="resend")
    assert state() == "pending"
    database.write(lambda connection: connection.execute(deliveries.update().values(state="dead")))
    visitor.send("/page/deliveries/1", do="drop")
    assert state() == "expired"
    refused = publications.update().where(publications.c.number == 2).values(state="refused", reason="it is too deep")
    database.write(lambda connection: connection.execute(refused))
    assert "it is too deep" in visitor.get("/page/dead-letters").said
    visitor.send("/page/refused/2")
    assert on_both.broker.wait([2], 300) == {2: 0}


def test_sources_are_added_and_taken_away(on_both: Service) -> None:
    """A feed by its address; what may not be asked is refused, with what was typed still there."""
    visitor = on_both.visitor()
    wrong = visitor.send("/page/sources", kind="poll", url="ftp://example.org/feed", title="Mine")
    assert wrong.status == 400
    assert 'value="ftp://example.org/feed"' in wrong.text
    visitor.send("/page/sources", kind="poll", url="http://127.0.0.1/feed", title="Mine")
    shown = visitor.get("/page/sources")
    assert "Mine" in shown.said
    (number,) = re.findall(r'name="remove" value="([^"]+)"', shown.text)
    on_both.visitor(on_both.broker.new_token("ann")).send("/page/sources", remove=number)
    assert "Mine" in visitor.get("/page/sources").said
    visitor.send("/page/sources", remove=number)
    assert "Mine" not in visitor.get("/page/sources").said
    assert "tw_pub_" in visitor.send("/page/sources", kind="push", title="Pushed").said


def test_a_wrong_query_is_told_with_its_place_and_kept(running: Service) -> None:
    """So that it can be mended."""
    query = "SELECT ?t {\n ?s rss:title }"
    answer = running.visitor().send("/page/new", query=query, language="sparql", save="1")
    assert answer.status == 400
    assert re.search(r"Line 2, column \d+", answer.said)
    assert "?s rss:title }" in answer.said


def test_what_is_not_there_or_wrong_is_a_page_too(running: Service) -> None:
    """With what to do; programs get problem details."""
    visitor = running.visitor()
    for path in ("/page/subscriptions/99", "/page/subscriptions/x", "/page/subscriptions/1/why/99", "/page/none"):
        answer = visitor.get(path)
        assert answer.status in (404, 422)
        assert answer.headers["Content-Type"].startswith("text/html")
    wrong = running.ask("/subscriptions/none")
    assert (wrong[0], wrong[1]["status"]) == (404, 404)


def test_a_wrong_number_of_seconds_is_told(running: Service) -> None:
    visitor = running.visitor()
    for path, more in (("new", {"query": QUERY, "language": "sparql", "save": "1"}), ("subscriptions/1/renew", {})):
        answer = visitor.send(f"/page/{path}", seconds="soon", **more)
        assert (answer.status, "no number of seconds" in answer.said) == (400, True), answer.said


def test_no_page_asks_the_database_where_all_others_would_wait(
    running: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an event loop does holds up each other request until it is done."""
    reading = Database.reading
    waiting: list[str] = []

    def watched(database: Database) -> AbstractContextManager[Connection]:
        with suppress(RuntimeError):
            waiting.append(str(asyncio.get_running_loop()))
        return reading(database)

    monkeypatch.setattr(Database, "reading", watched)
    visitor = running.visitor()
    for path in ("/", "/page/absent", "/page/subscriptions/99", "/page/newest?before=x"):
        visitor.get(path)
    visitor.send("/page/settings")
    visitor.send("/sign-out")
    Visitor(running.base).sign_in("another")
    assert waiting == []


def test_texts_are_in_all_languages(running: Service) -> None:
    """A page is in the first language that the browser asks for and there is; each has every text of the templates."""
    texts = set()
    for template in TEMPLATES.glob("*.[hs]*"):
        texts |= set(re.findall(r'_\("((?:[^"\\]|\\.)*)"', template.read_text("utf-8")))
    assert len(texts) > 100
    catalogues = sorted(TEMPLATES.glob("*.toml"))
    assert len(catalogues) >= 2
    for catalogue in catalogues:
        known = tomllib.loads(catalogue.read_text("utf-8"))
        assert texts - set(known) == set()
        for text, translated in known.items():
            assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", translated)), text
    visitor = running.visitor()
    for asked, language in (("de-AT,en;q=0.5", "de"), ("xx, fr;q=0.4, de;q=0.2", "fr"), ("xx", "en"), ("", "en")):
        assert f'<html lang="{language}">' in visitor.get("/", **{"Accept-Language": asked}).text


def test_all_doors_have_a_policy(running: Service) -> None:
    """Also those of included routers: taking it from one stops the start."""
    from triplewire.errors import TriplewireError
    from triplewire.service import metrics
    from triplewire.service.app import service

    policy = metrics.liveness.__dict__.pop("policy")
    try:
        with pytest.raises(TriplewireError, match="/liveness"):
            service(running.broker, ServiceSettings())
    finally:
        metrics.liveness.__dict__["policy"] = policy


def test_lists_are_taken_and_saved(on_both: Service) -> None:
    """What is saved of one owner is taken by another, line by line; what is wrong is told with its line."""
    visitor = on_both.visitor()
    text = visitor.get("/page/subscriptions.opml").text
    assert "ftcontains" in text
    ann = on_both.visitor(on_both.broker.new_token("ann"))
    code = ann.get("/").code

    def taken(text: str) -> str:
        parts = (("code", "", code), ("list", '; filename="list.opml"', text))
        named = [
            f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'
            for name, more, value in parts
        ]
        body = "".join([*named, "--x--\r\n"]).encode()
        return ann.get("/page/opml", body, **{"Content-Type": "multipart/form-data; boundary=x"}).said

    assert "subscribed" in taken(text)
    assert "Games" in ann.get("/").said
    assert "there already" in taken(text)
    assert "refused" in taken(text.replace("SELECT", "SELEKT").replace('"games"', '"other"'))
