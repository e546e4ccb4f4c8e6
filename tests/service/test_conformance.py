"""`triplewire conformance cms` against the real service: all points hold for a guest, and nothing is left.

A service or a site that is wrong is told so, with what to do.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.serving import Serving, serving

pytestmark = pytest.mark.xdist_group("conformance")  # one worker makes what all share


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("served") / "data", TRIPLEWIRE_ALLOW_PRIVATE_ADDRESSES="1") as made:
        yield made


def token_of(service: Serving, owner: str) -> str:
    return service.out("token", "create", "--data", str(service.folder), "--owner", owner).strip()


def test_all_points_hold_for_a_guest_and_nothing_is_left(service: Serving, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token_of(service, "guest"))
    done = service.run("conformance", "cms", "--service", service.url, "--token-file", str(file))
    lines = done.out.splitlines()
    assert (done.code, [line for line in lines if not line.startswith("ok ")]) == (0, []), done.err
    assert len(lines) >= 28
    assert json.loads(service.ask("GET", "/subscriptions", token=file.read_text())[1]) == []
    assert json.loads(service.ask("GET", "/sources", token=file.read_text())[1]) == []
    assert json.loads(service.ask("POST", "/try", {"query": "SELECT ?t { ?s ?p ?t }"})[1])["of"] == 0


def test_without_a_token_it_says_what_is_needed(service: Serving) -> None:
    done = service.run("conformance", "cms", TRIPLEWIRE_TOKEN="")
    assert (done.code, "--token-file" in done.err) == (2, True)


def test_what_does_not_hold_is_named_with_what_to_do(service: Serving) -> None:
    class Site(http.server.BaseHTTPRequestHandler):
        """A site that offers an address alone."""

        def do_GET(self) -> None:
            body = json.dumps({"service": service.url, "notify": f"http://{self.headers['Host']}/"}).encode()
            self.send_response(200 if self.path == "/triplewire/" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        done = service.run("conformance", "cms", "--site", f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
    assert done.code == 1
    of_site = [line for line in done.out.splitlines() if "ok site" in line]
    assert re.match(r"not ok site 1: .*missing: .*'feed'.*; to do: answer JSON at /triplewire/", of_site[0])
    assert of_site[1] == "ok site 2: it is a site of this service"
    assert all("; to do: " in line for line in of_site if line.startswith("not ok"))
