"""A service in this process, and visitors of its page: by HTTP alone, and in Chromium."""

from __future__ import annotations

import contextlib
import html
import json
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from broker.serving import served as at_a_port
from triplewire.broker.broker import Broker
from triplewire.service.app import ServiceSettings, service

TOKEN = "a token of the tests"
SECRET = b"page" * 8


@dataclass
class Answer:
    """What a visitor got."""

    status: int
    url: str
    headers: Any
    text: str

    @property
    def code(self) -> str:
        """The code of the forms of a page."""
        found = re.search(r'name="code" value="([0-9a-f]+)"', self.text)
        return found[1] if found else ""

    @property
    def path(self) -> str:
        """Where the visitor is."""
        return urllib.parse.urlsplit(self.url).path

    @property
    def said(self) -> str:
        """The texts of the page, without markup."""
        return html.unescape(re.sub(r"<[^>]+>", " ", self.text))


class Visitor:
    """A browser without JavaScript: it keeps cookies, and follows redirects."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.cookies = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Visit a page, or send it something."""
        request = urllib.request.Request(self.base + path, body, headers)
        try:
            answer = self._opener.open(request, timeout=300)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return Answer(answer.status, answer.url, answer.headers, answer.read().decode())

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        """Send a form."""
        return self.get(path, urllib.parse.urlencode(fields).encode())

    def sign_in(self, token: str = TOKEN, then: str = "/") -> Answer:
        """Sign in with a token."""
        return self.post("/sign-in", {"token": token, "then": then})

    def send(self, path: str, **fields: str) -> Answer:
        """Send a form with the code of this session."""
        return self.post(path, {"code": self.get("/").code, **fields})


@dataclass
class Service:
    """A service that runs."""

    broker: Broker
    app: FastAPI
    base: str

    def visitor(self, token: str = TOKEN) -> Visitor:
        """Somebody who is signed in."""
        made = Visitor(self.base)
        assert made.sign_in(token).status == 200
        return made

    def ask(self, path: str, body: Any = None, token: str = TOKEN, kind: str = "application/json") -> tuple[int, Any]:
        """What a program gets."""
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        answer = Visitor(self.base).get(path, sent, **headers)
        return answer.status, json.loads(answer.text)

    def publish(self, *titles: str, readers: str | None = None, id: str = "urn:item:{}") -> None:
        """Publish items with these titles, and wait until they are matched."""
        items = "".join(
            f'<item><guid isPermaLink="false">{html.escape(id.format(number))}</guid>'
            f"<title>{html.escape(title)}</title><link>http://example.org/{number}</link>"
            f"<description>about {number}</description></item>"
            for number, title in enumerate(titles)
        )
        head = "<title>c</title><link>http://example.org/</link><description>d</description>"
        feed = f'<?xml version="1.0"?><rss version="2.0"><channel>{head}{items}</channel></rss>'
        more = "" if readers is None else f"&readers={readers}"
        status, said = self.ask(f"/publish?wait=1{more}", feed.encode(), kind="application/rss+xml")
        assert status == 202, said


@contextlib.contextmanager
def served(url: str, settings: ServiceSettings | None = None) -> Iterator[Service]:
    """A service over a database, at a free port of the loopback."""
    with Broker.open(url, SECRET) as broker:
        app = service(
            broker, settings or ServiceSettings(token=TOKEN, allow_private_addresses=True, wait_seconds=300.0)
        )
        with at_a_port(app) as base:
            yield Service(broker, app, base)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Chromium as the system has it; skips the test where it is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def row_of(table: sa.Table, **values: Any) -> dict[str, Any]:
    """A row with these values, and something empty in each other column that must have a value."""
    empty = {
        column.name: column.type.python_type()
        for column in table.columns
        if not column.nullable and not column.primary_key
    }
    return {**empty, **values}


def sqlite_in(folder: Path) -> str:
    """The address of a database in a folder."""
    return f"sqlite:///{folder / 'broker.db'}"
