"""Addresses of other systems: what they name, and that no secret stands in them or in what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triplewire.errors import TriplewireError
from triplewire.net.addresses import Connections, address, shown
from triplewire.notify.webhook import WebhookSink

CASES = json.loads((Path(__file__).parents[1] / "cases" / "connect" / "addresses.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["given"])
def test_address(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(TriplewireError, match=case["refused"]) as raised:
            address(case["given"])
        assert "hidden" not in str(raised.value)
        return
    given = address(case["given"])
    assert (given.kind, given.name) == (case["kind"], case["name"])
    assert given.url == case.get("url", given.url)


def test_settings_are_those_of_the_longest_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("OF_THE_DATABASE", "from the environment")
    file = tmp_path / "connect.toml"
    file.write_text(
        '["jdbc:postgresql://db/"]\nuser = "all"\npassword = { env = "OF_THE_DATABASE" }\n'
        f'["jdbc:postgresql://db/found"]\nuser = "one"\npassword = {{ file = "{tmp_path}/secret" }}\n'
        "port = 3\nssl = true\n"
    )
    connections = Connections.read(file)
    assert connections.of("jdbc:postgresql://db/x") == {"user": "all", "password": "from the environment"}
    given = address("jdbc:postgresql://db/found#t", connections)
    assert given.settings == {"user": "one", "password": "from a file", "port": "3", "ssl": "true"}
    assert connections.of("jdbc:postgresql://other/") == {}
    for text in (repr(given), str(given), repr(connections)):
        assert "from" not in text


def test_a_beginning_ends_with_the_name_of_a_host() -> None:
    connections = Connections({"https://a.example": {"timeout": "1"}, "http://127.0.0.1:80": {"timeout": "2"}})
    for fits in ("https://a.example", "https://a.example/x", "https://a.example:8443/", "https://a.example?q"):
        assert connections.of(fits) == {"timeout": "1"}
    for other in ("https://a.example.org/", "https://a.examples/", "http://127.0.0.1:8080/", "http://127.0.0.1/"):
        assert connections.of(other) == {}
    assert Connections({"https://": {"timeout": "3"}}).of("https://b.example/") == {"timeout": "3"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('["ftp://x"]\na = 1', "beginning of an address"),
        ('["jdbc:x"]\npassword = { env = "NOT_THERE_AT_ALL" }', "no variable NOT_THERE_AT_ALL"),
        ('["jdbc:x"]\npassword = { file = "/not/there" }', "its file cannot be read"),
        ('["jdbc:x"]\npassword = { file = "a\\u0000b" }', "its file cannot be read"),
        ('["jdbc:x"]\npassword = ["hidden"]', "no text, number or boolean"),
        ('["jdbc:x"\npassword = "hidden"', "no TOML"),
        ('["https:"]\nallow_private_addresses = "hidden"', "allow_private_addresses is true or false"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "connect.toml").write_text(text)
    with pytest.raises(TriplewireError, match=what) as raised:
        Connections.read(tmp_path / "connect.toml")
    assert "hidden" not in str(raised.value)


def test_what_is_shown_holds_no_secret() -> None:
    for text in (
        "jdbc:x://me:hidden@h/d",
        "jdbc:x://me:hid/hidden@h/d",
        "jdbc:x://h/d?password=hidden&ssl=true",
        "jdbc:oracle:thin:scott/hidden@//db",
        "no route: PASSWORD=hidden; x",
        "keyStorePassword=hidden",
        "https://hooks.example/in?access_token=hidden&x=1",
    ):
        assert "hidden" not in shown(text)
    assert str(address("https://hooks.example/in?tenant=3&api_key=hidden")) == (
        "https://hooks.example/in?tenant=3&api_key=***"
    )
    assert str(address("https://hooks.example/services/T024BE7LD/xoxb1hidden9hidden8hidden7")) == (
        "https://hooks.example/services/T024BE7LD/***"
    )
    assert str(address("https://news.example/a-name-of-some-length/2024")).endswith("/a-name-of-some-length/2024")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"attempts": "many"}, r"attempts must be an integer from 1 to 100, not 'many'"),
        ({"concurrency": "65"}, r"concurrency must be an integer from 1 to 64, not '65'"),
        ({"timeout": "nan"}, r"timeout must be a number of seconds above 0, at most 3,600, not 'nan'"),
    ],
)
def test_a_setting_of_a_webhook_that_is_wrong_is_named(settings: dict[str, str], told: str) -> None:
    with pytest.raises(TriplewireError, match=f"https://a.example/in: {told}"):
        WebhookSink(address("https://a.example/in", Connections({"https:": settings})))
