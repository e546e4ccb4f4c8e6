"""Two sites of one service tell each other's readers, and do not repeat each other."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from conftest import Coast
from killed_site import send
from running import ROOT, Broker, free_port, until
from test_exchange import OLYMPIC, pulled

HERE = Path(__file__).parent


def told(folder: Path) -> list[str]:
    """The titles that the second site has told, and how many rows wait there."""
    with sqlite3.connect(folder / "site.db", timeout=180) as connection:
        return [title for (title,) in connection.execute("SELECT title FROM wagtail_triplewire_inbox ORDER BY id")]


def is_ready(folder: Path) -> bool:
    """Has the second site sent all, and is its request active?"""
    try:
        with sqlite3.connect(folder / "site.db", timeout=180) as connection:
            waiting = "SELECT count(*) FROM wagtail_triplewire_outbox WHERE state = 'waiting'"
            active = "SELECT count(*) FROM wagtail_triplewire_request WHERE title = 'mine' AND state = 'active'"
            return [connection.execute(text).fetchone()[0] for text in (waiting, active)] == [0, 1]
    except sqlite3.OperationalError:
        return False


def test_what_one_site_publishes_another_one_tells_once(joined: Coast, broker: Broker, tmp_path: Path) -> None:
    query, port = "SELECT ?t WHERE (?i, title, ?t) SUCHTHAT (?t CONTAINS 'light')", free_port()
    token = broker.token("lights", "--namespace", f"http://127.0.0.1:{port}/triplewire/")
    joined.request(query)
    send()
    command = [sys.executable, HERE / "second_site.py", tmp_path, str(port), broker.url, token, OLYMPIC]
    paths = {"PYTHONPATH": f"{HERE}:{ROOT / 'examples' / 'cms'}"}
    second = subprocess.Popen(list(map(str, command)), env=paths, start_new_session=True)
    try:
        until(lambda: second.poll() is not None or is_ready(tmp_path))
        assert until(joined.told) == ["The lights of the coast"], "a page of the other site"
        joined.post("Olympic here")
        send()
        assert until(lambda: told(tmp_path)) == ["Olympic here"]
        pulled()
        assert joined.told() == ["The lights of the coast"]
    finally:
        second.kill()
        second.wait(180)
