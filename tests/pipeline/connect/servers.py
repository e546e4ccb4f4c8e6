"""Servers that tests start: PostgreSQL, a Kafka broker, a receiver of webhooks. None outlives the test session.

What is not there is fetched with Maven into the user's cache, once; where that cannot be done, tests are skipped.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

POMS = Path(__file__).with_name("poms")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_JAVA = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


def jars(name: str) -> list[Path]:
    """The jars of a pom in `poms`; skips the test where they cannot be had."""
    pom = POMS / f"{name}.xml"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "triplewire", "test-jars")
    folder = cache / hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    if not folder.is_dir():
        if shutil.which("mvn") is None:
            pytest.skip("mvn, which fetches the jars, is not on the path")
        part = folder.with_suffix(f".{os.getpid()}")
        command = ["mvn", "-B", "-q", "-f", str(pom), _PLUGIN, "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            shutil.rmtree(part, ignore_errors=True)
            pytest.skip(f"the jars of {pom.name} cannot be fetched: {done.stdout.strip()[-300:]}")
        with contextlib.suppress(OSError):  # another test session was faster
            os.rename(part, folder)
    return sorted(folder.glob("*.jar"))


def free_port() -> int:
    """A port that nobody listens at, below those that a system gives by itself: no connection takes it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with contextlib.suppress(OSError), socket.socket() as listening:
            listening.bind(("127.0.0.1", port))
            return port


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 300
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        is_late = process.poll() is not None or time.monotonic() > end
        assert not is_late, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)


@contextlib.contextmanager
def kafka(folder: Path) -> Iterator[str]:
    """A broker of one node, as HOST:PORT."""
    java, path = shutil.which("java"), ":".join(map(str, jars("broker")))
    if java is None:
        pytest.skip("the broker needs a java on the path")
    port, properties, log = free_port(), folder / "server.properties", folder / "broker.log"
    properties.write_text(_PROPERTIES.format(port=port, control=free_port(), folder=folder))
    start = [java, *_JAVA, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", path]
    id = base64.urlsafe_b64encode(b"T" + uuid.uuid4().bytes[1:]).decode().rstrip("=")  # an id -x would be an option
    command = [*start, "kafka.tools.StorageTool", "format", "-t", id, "-c", str(properties)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with log.open("wb") as said:
        process = subprocess.Popen([*start, "kafka.Kafka", str(properties)], stdout=said, stderr=said)
    try:
        _wait(port, process, log)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(300)


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """A server whose user `test` has the password `PASSWORD`, as the address of its database."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (str(found[-1]) if found else None)
    if initdb is None:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="triplewire-postgres-"))  # another user may have to enter it
    as_user: list[str] = []
    if os.geteuid() == 0:  # it refuses to run as root
        if shutil.which("setpriv") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no setpriv")
        as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        shutil.chown(folder, "nobody", "nogroup")
    data, log, port, secret = folder / "data", folder / "postgres.log", free_port(), folder / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    made = [*as_user, initdb, "-D", str(data), "-U", "test", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    subprocess.run([*made, "-E", "UTF8"], check=True, timeout=300, **quiet)  # type: ignore[call-overload]  # both are files
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    options += " -c autovacuum=off"  # statistics that come at some moment change plans, and what a batch reads
    control = [*as_user, initdb.replace("initdb", "pg_ctl"), "-D", str(data), "-w", "-l", str(log)]
    subprocess.run([*control, "-o", options, "start"], check=True, timeout=300, **quiet)  # type: ignore[call-overload]  # as above
    try:
        yield f"jdbc:postgresql://127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, timeout=300, **quiet)  # type: ignore[call-overload]  # as above
        shutil.rmtree(folder, ignore_errors=True)


PASSWORD = "not-to-be-seen"


@dataclass
class Receiver:
    """A receiver of webhooks: what it got, and what it answers: the next of `answers`, or 200, and this body."""

    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    body: bytes = b""
    url: str = ""


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """An HTTP server on the loopback."""
    state, lock = Receiver(), threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                state.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                status, headers = state.answers.pop(0) if state.answers else (200, {})
            self.send_response(status)
            for name, value in {"Content-Length": str(len(state.body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the sender has seen enough
                self.wfile.write(state.body)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
