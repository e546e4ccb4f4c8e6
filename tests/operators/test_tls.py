"""Operators behind HTTPS: a real server with a certificate that the test makes; and names whose addresses change."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from operators.service import service
from operators.test_http import engine, publications, reasons

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="the command openssl, which makes certificates, is absent")


def openssl(*arguments: object) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *map(str, arguments)], check=True, capture_output=True, timeout=300)


def authority(folder: Path, name: str) -> Path:
    """The certificate of an authority of its own; the key lies beside it."""
    certificate = folder / f"{name}.pem"
    key = certificate.with_suffix(".key")
    openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2,
        "-subj", f"/CN={name}", "-keyout", key, "-out", certificate,
    )  # fmt: skip
    return certificate


def certified(folder: Path, signer: Path, host: str) -> Path:
    """A key and a certificate for a host, in one file."""
    key, request, certificate = (folder / f"{host}.{kind}" for kind in ("key", "csr", "crt"))
    names = folder / f"{host}.cnf"
    names.write_text(f"subjectAltName=DNS:{host}\n")
    openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={host}",
        "-keyout", key, "-out", request,
    )  # fmt: skip
    openssl(
        "x509", "-req", "-in", request, "-CA", signer, "-CAkey", signer.with_suffix(".key"), "-CAcreateserial",
        "-days", 2, "-extfile", names, "-out", certificate,
    )  # fmt: skip
    whole = folder / f"{host}.both.pem"
    whole.write_text(key.read_text() + certificate.read_text())
    return whole


@needs_openssl
def test_a_server_of_a_trusted_authority_is_asked(tmp_path: Path) -> None:
    mine, other = authority(tmp_path, "mine"), authority(tmp_path, "other")
    right, wrong = certified(tmp_path, mine, "localhost"), certified(tmp_path, mine, "elsewhere.example")
    with service(right, "localhost") as server:
        made = engine(server.toml("row", ca_file=str(mine), timeout=60.0))
        assert len(list(made.match(publications(3)))) == 3
        asked = len(server.asked)
        for given in ({"ca_file": str(other)}, {}):  # another authority, and those of the system
            (reason,) = reasons(server.toml("row", timeout=60.0, **given))
            assert "certificate verify failed" in reason
        assert len(server.asked) == asked == 3, "nothing is sent to a server that is not trusted"
    with service(wrong, "localhost") as server:
        (reason,) = reasons(server.toml("row", ca_file=str(mine), timeout=60.0))
        assert "certificate verify failed" in reason
        assert not server.asked, "its certificate is for another name"


@needs_openssl
def test_a_file_of_certificates_that_has_changed_is_read_again(tmp_path: Path) -> None:
    for _ in range(2):
        mine = authority(tmp_path, "mine")
        with service(certified(tmp_path, mine, "localhost"), "localhost") as server:
            result = engine(server.toml("row", ca_file=str(mine))).match(publications(2))
            assert len(result) == 2, list(map(str, result.refusals))


@needs_openssl
@pytest.mark.parametrize("path", ["twice", "one-and-a-half"])
def test_a_second_answer_that_comes_with_the_first_is_not_taken_for_the_next(path: str, tmp_path: Path) -> None:
    """TLS unpacks both at once and keeps what is not read, so that nothing is to be seen at the socket."""
    mine = authority(tmp_path, "mine")
    with service(certified(tmp_path, mine, "localhost"), "localhost") as server:
        toml = server.toml(path, ca_file=str(mine), concurrency=1)
        result = engine(toml).match(publications(4))
        assert len(result) == 4, list(map(str, result.refusals))
        assert len(server.asked) == 4


def answers(monkeypatch: pytest.MonkeyPatch, *addresses: list[str]) -> list[str]:
    """Have names resolved to these, one answer after the other. Returns the names that were looked up."""
    asked: list[str] = []
    numeric = socket.getaddrinfo

    def resolved(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
        if host[:1].isdecimal():  # an address, which is not looked up
            return list(numeric(host, port, *more, **named))
        asked.append(host)
        chosen = addresses[min(len(asked), len(addresses)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in chosen]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    return asked


@pytest.mark.parametrize("private", ["127.0.0.1", "169.254.169.254", "10.1.2.3"])
def test_a_name_with_a_private_address_is_refused(private: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with service(host="service.example") as server:
        toml = server.toml(allow_private_addresses=False)
        answers(monkeypatch, ["93.184.216.34", private])
        (reason,) = reasons(toml)
        assert f"service.example has the private address {private}" in reason
        assert not server.asked


def test_the_checked_address_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is public when it is checked, and private right afterwards."""
    asked = answers(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    connected: list[tuple[str, int]] = []

    def connect(_: socket.socket, address: tuple[str, int]) -> None:
        connected.append(address)
        raise ConnectionRefusedError("nobody is there")

    with service(host="service.example") as server:
        monkeypatch.setattr(socket.socket, "connect", connect)
        (reason,) = reasons(server.toml(allow_private_addresses=False, retries=0))
        assert "connection failed" in reason
        assert connected == [("93.184.216.34", server.port)]
        assert asked == ["service.example"], "it is looked up once a connection"
        assert not server.asked


def test_a_name_is_looked_up_once_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with service(host="service.example") as server:
        asked = answers(monkeypatch, ["127.0.0.1"], ["192.0.2.1"])
        assert len(list(engine(server.toml("row", concurrency=1)).match(publications(4)))) == 4
        assert asked == ["service.example"]


def test_another_address_is_tried_where_one_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with service(host="service.example") as server:
        answers(monkeypatch, ["127.0.0.2", "127.0.0.1"])  # the server listens on the second one
        assert len(list(engine(server.toml("row")).match(publications(1)))) == 1
