"""Names whose name server does not answer: a request ends by its deadline all the same."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from triplewire.errors import AddressError
from triplewire.net.client import Client
from triplewire.net.guard import target_of
from triplewire.net.resolver import Resolver

SILENT_SERVER = """
import fcntl, socket, struct, subprocess, sys
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
fcntl.ioctl(socket.socket(type=socket.SOCK_DGRAM), SET_FLAGS, struct.pack("16sh", b"lo", UP_AND_RUNNING))
subprocess.run(["mount", "--bind", sys.argv[1], "/etc/resolv.conf"], check=True)
server = socket.socket(type=socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
from triplewire.errors import AddressError
from triplewire.net.client import Client
from triplewire.net.guard import target_of
try:
    Client(target_of("https://service.example/")).request("GET", {}, seconds=1.0)
except AddressError as error:
    print(error)
server.settimeout(5)
print(b"service" in server.recv(512))
"""


def test_a_real_name_server_that_does_not_answer(tmp_path: Path) -> None:
    """In a network of its own, where the name server takes questions and says nothing."""
    apart = ["unshare", "--user", "--map-root-user", "--mount", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may make no network of its own")
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    command = [*apart, sys.executable, "-c", SILENT_SERVER, str(tmp_path / "resolv.conf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    said, asked = done.stdout.splitlines()
    assert "the address of 'service.example' was not found out within" in said
    assert asked == "True", "the name server was asked"


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, list[str]]]:
    """Look-ups that wait for an event, and the names that were asked for. It comes by itself after some seconds, so
    that a request that waits for it fails its test."""
    event, asked = threading.Event(), list[str]()

    def silent(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        event.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    yield event, asked
    event.set()


def test_a_request_does_not_wait_for_the_name_server(released: tuple[threading.Event, list[str]]) -> None:
    event, asked = released
    client = Client(target_of("https://service.example/"))
    for _ in range(2):
        with pytest.raises(AddressError, match=r"'service.example' was not found out within .*; look whether"):
            client.request("GET", {}, seconds=0.2)
    assert not event.is_set()
    assert asked == ["service.example"], "those that ask for a name at once share a look-up"


def test_what_a_name_server_says_is_told(released: tuple[threading.Event, list[str]]) -> None:
    event, asked = released
    event.set()
    for number in range(1, 3):
        with pytest.raises(AddressError, match=r"has no address: .*Temporary failure"):
            Client(target_of("https://other.example/")).request("GET", {}, seconds=300)
        assert len(asked) == number, "a failure is not kept"


def test_addresses_are_distinct_and_numbers_are_addresses() -> None:
    assert Resolver().addresses("127.0.0.1", 80, 300) == ["127.0.0.1"]
    assert Resolver().addresses("::1", 80, 300) == ["::1"]


def test_the_end_of_a_program_does_not_wait() -> None:
    code = """
import socket, time
socket.getaddrinfo = lambda *_, **__: time.sleep(600)
from triplewire.net.resolver import RESOLVER
try:
    RESOLVER.addresses("service.example", 443, 0.1)
except TimeoutError:
    print("late")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("late\n", "")
