"""Three brokers in a line, each of which is killed: nothing is lost, nothing is told twice, nothing crosses in vain."""

from __future__ import annotations

import json
import random
import signal
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pipeline.connect.servers import free_port
from service.serving import TOKEN, Serving, serving
from triplewire import Engine, Publication
from triplewire.model.terms import IRI, Literal
from triplewire.read.names import to_nquads

DOCUMENTS, VALUES = 36, 8
VALUE, TITLE = IRI("urn:v:value"), IRI("urn:v:title")
QUERIES = {f"value-{value}": f'SELECT ?s {{ ?s <urn:v:value> "{value}" }}' for value in range(VALUES // 2)}
QUERIES |= {
    f"titled-{value}": f'SELECT ?t {{ ?s <urn:v:value> "{value}" ; <urn:v:title> ?t }}' for value in range(VALUES // 2)
}
"""Half of them are contained in another one; half of the values are asked for by nobody."""

CRASHES = {"first": "events.committed:9", "middle": "network.published:1", "last": "network.asked:9"}
"""The broker -> a point of `triplewire.crash` at which it is killed; each is killed at another moment, too."""


def document(number: int) -> Publication:
    subject = IRI(f"urn:p:{number}")
    chance = random.Random(number)
    triples = [(subject, VALUE, Literal(str(chance.randrange(VALUES)))), (subject, TITLE, Literal(f"title {number}"))]
    return Publication(subject.value, triples)


class Line:
    """Three services, each an upstream of the next, that are started again where they ended."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self._folder, self._running = folder, running
        self._ports = {name: free_port() for name in CRASHES}
        self.services: dict[str, Serving] = {}
        self.ends = Counter[str]()  # how often each was killed
        for name, point in CRASHES.items():
            self._start(name, TRIPLEWIRE_CRASH_AT=point)

    def _start(self, name: str, **environment: str) -> None:
        names = list(CRASHES)
        place = names.index(name)
        options = ["--upstream", f"http://127.0.0.1:{self._ports[names[place - 1]]}"] if place else []
        service = serving(self._folder / name, *options, port=self._ports[name], **environment)
        self.services[name] = self._running.enter_context(service)

    def kill(self, name: str) -> None:
        self.services[name].process.kill()
        self.services[name].process.wait(300)

    def revive(self) -> None:
        """Start those again that were killed."""
        for name, service in list(self.services.items()):
            if service.process.poll() is not None:
                assert service.process.returncode == -signal.SIGKILL, service.said()
                self.ends[name] += 1
                self._start(name)

    def publish(self, publication: Publication) -> None:
        """Publish at the first one, again and again until it answers."""
        while True:
            try:
                status, said = self.services["first"].ask("POST", "/publish?wait=1", to_nquads(publication).encode())
                assert status == 202, said
            except (OSError, urllib.error.URLError):
                self.revive()
            else:
                return

    def told(self, name: str) -> list[tuple[str, str]]:
        """Publication and subscription of each event that is no other broker's."""
        body = self.services[name].get("/events?after=0", TOKEN)[1]
        events = map(json.loads, body.splitlines())
        return [(e["publication"], e["subscription"]) for e in events if not e["subscription"].startswith("net.")]

    def crossed(self, name: str) -> set[str]:
        """The publications that a broker has over its link."""
        body = self.services[name].get("/sparql?query=SELECT%20DISTINCT%20?s%20%7B%20?s%20?p%20?o%20%7D", TOKEN)[1]
        return {row["s"]["value"] for row in json.loads(body)["results"]["bindings"]}


@contextmanager
def line(folder: Path) -> Iterator[Line]:
    with ExitStack() as running:
        yield Line(folder, running)


def until(condition: Callable[[], bool], line: Line, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, {name: service.said()[-2_000:] for name, service in line.services.items()}
        line.revive()
        time.sleep(0.1)


@pytest.mark.slow
def test_each_of_three_brokers_is_killed(tmp_path: Path) -> None:
    engine = Engine(matcher="reference")
    for id, query in QUERIES.items():
        engine.subscribe(query, id=id)
    documents = [document(number) for number in range(DOCUMENTS)]
    wanted = Counter((match.publication, match.subscription) for match in engine.match(documents))
    with line(tmp_path) as brokers:
        body = [{"id": id, "query": query} for id, query in QUERIES.items()]
        assert brokers.services["last"].ask("POST", "/subscriptions", body)[0] == 201
        first = brokers.services["first"]
        until(lambda: len(json.loads(first.get("/subscriptions", TOKEN)[1])) == VALUES // 2, brokers)
        for number, each in enumerate(documents):
            brokers.publish(each)
            if number % 12 == 11:
                name = ("first", "middle", "last")[number // 12]
                until(lambda name=name: brokers.ends[name] > 0, brokers)  # its crash point comes first
                brokers.kill(name)
                brokers.revive()
        until(lambda: len(brokers.told("last")) >= wanted.total(), brokers)
        assert Counter(brokers.told("last")) == wanted
        behind = {publication for publication, _ in wanted}
        assert brokers.crossed("middle") == brokers.crossed("last") == behind
        last = brokers.services["last"]
        upstream = f"http://127.0.0.1:{brokers.services['middle'].url.rpartition(':')[2]}"
        findings = last.run("doctor", "--data", str(last.folder), "--upstream", upstream, "--json").out.splitlines()
        (finding,) = (row for row in map(json.loads, findings) if row["about"] == "upstreams")
        assert (finding["state"], finding["what"]) == ("fine", f"1 with {VALUES // 2} roots")
        assert f'triplewire_upstream_roots{{upstream="{upstream}"}} {VALUES // 2}.0' in last.get("/metrics")[1]
        assert all(brokers.ends[name] > 1 for name in CRASHES), brokers.ends
