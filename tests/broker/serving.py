"""A broker with its service, as tests use it: in this process, or at a port of the loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from fastapi import FastAPI

from triplewire.broker.broker import Broker, Made, Wanted
from triplewire.broker.publications.kept_contents import read_body
from triplewire.config import Settings
from triplewire.service.app import ServiceSettings, service

SECRET, TOKEN = b"a secret of a service that is tested", "token-of-the-owner"
QUERY = "SELECT ?title { ?item rss:title ?title }"
OWNER = {"Authorization": f"Bearer {TOKEN}"}

on_sqlite_alone = pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
"""Marks a test of what is decided before a database is asked: it is the same with both."""


class _Server(uvicorn.Server):
    """One that looks ten times as often whether it is to end."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)


@contextlib.contextmanager
def broker_at(url: str) -> Iterator[tuple[Broker, FastAPI]]:
    """A broker over a database, and its service."""
    with Broker.open(url, SECRET) as broker:
        yield broker, service(broker, ServiceSettings(token=TOKEN, wait_seconds=300.0))


def subscribed(broker: Broker, **values: object) -> Made:
    """A subscription of the owner that matches each item."""
    return broker.subscribe(Wanted(QUERY, **values), "owner")  # type: ignore[arg-type]  # what `Wanted` takes


def published(broker: Broker, *items: tuple[str, str], text: str = "", readers: list[str] | None = None) -> None:
    """Publish items, each with an id and a title, and wait until they are matched."""
    head = {"version": "https://jsonfeed.org/version/1.1", "title": "A feed"}
    for id, title in items:  # one by one: those of one feed are told in any order
        item = {"id": id, "title": title, "url": "http://example.org/x", "content_text": text}
        came = read_body(json.dumps({**head, "items": [item]}).encode(), "", Settings())
        (taken,) = broker.publish(came.publications, readers=readers)
        assert not taken.is_new or taken.number in broker.wait([taken.number], 300)


@contextlib.contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The address of a service while it runs. It ends as `triplewire serve` does at a signal."""
    server = _Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.state.streams.end()
        server.should_exit = True
        thread.join(300)
        assert not thread.is_alive()
