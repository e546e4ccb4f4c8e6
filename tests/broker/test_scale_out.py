"""A broker whose matches the pipeline finds.

The index follows the store, and each match is told once, as the engine finds them. With Spark, Kafka and PostgreSQL:
`tests/pipeline/connect/test_broker_on_spark.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.scale_out.from_pipeline import Outside
from triplewire.broker.scale_out.pipeline_matches import rows_at
from triplewire.engine import Engine
from triplewire.errors import StoreError, TriplewireError
from triplewire.model.publication import Publication
from triplewire.net.addresses import address
from triplewire.notify import MATCH, MatchRecord, Part, SqliteSink
from triplewire.pipeline.index.build import build
from triplewire.pipeline.index.open_version import opened
from triplewire.pipeline.index.versions import load
from triplewire.read import read
from waiting import until

SUBJECT = 'SELECT ?title {{ ?item <urn:title> ?title FILTER ftcontains(?title, "{}") }}'


class Pipeline:
    """What `pipeline run` does with the index and the inbox of a broker, without Spark."""

    def __init__(self, folder: Path) -> None:
        self.index, self.inbox, self.matches = folder / "index", folder / "inbox", f"sqlite:{folder}/matches.db#matches"
        self._sink = SqliteSink(address(self.matches), MATCH)
        self._sink.check("stream")
        self._batch = 0

    def outside(self) -> Outside:
        return Outside(self.index, self.inbox, self.matches)

    def engine(self) -> Engine:
        return opened(self.index, load(self.index).name).server()

    def ids(self) -> set[str]:
        if not (self.index / "current").exists():
            return set()
        return {subscription.id for subscription in self.engine().subscriptions}

    def run(self, *publications: Publication, again: bool = False) -> None:
        """One micro-batch: these publications, or the files of the inbox. `again`: the last one is repeated."""
        self._batch += not again
        given = list(publications) or [one for file in sorted(self.inbox.glob("[!.]*.nq")) for one in read(file)]
        part = Part("stream", self._batch, MATCH, replaces=True)
        self._sink.deliver(map(MatchRecord.of, self.engine().match(given)), part)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path)


@pytest.fixture
def broker(database_url: str, pipeline: Pipeline) -> Iterator[Broker]:
    with Broker.open(database_url, b"secret", outside=pipeline.outside()) as made:
        yield made


def item(number: int, title: str) -> Publication:
    (publication,) = read(f'<urn:item:{number}> <urn:title> "{title}" <urn:graph:{number}> .\n'.encode())
    return publication


def told(broker: Broker) -> list[tuple[str, str, str | None]]:
    return [(event.id, event.type, event.publication) for event in broker.events(None, 0)]


def test_the_index_has_what_is_active(broker: Broker, pipeline: Pipeline) -> None:
    made = [broker.subscribe(Wanted(SUBJECT.format(word), id=word), "ann") for word in ("puffin", "gull", "tern")]
    numbers = [one.number for one in made]
    until(lambda: pipeline.ids() == {f"{number}.1" for number in numbers})
    broker.change(numbers[0], query=SUBJECT.format("kestrel"))
    broker.change(numbers[1], state="paused")
    broker.unsubscribe(numbers[2])
    until(lambda: pipeline.ids() == {f"{numbers[0]}.2"})
    broker.change(numbers[1], state="active")
    until(lambda: pipeline.ids() == {f"{numbers[0]}.2", f"{numbers[1]}.1"})


def test_each_match_is_told_once(broker: Broker, pipeline: Pipeline) -> None:
    for owner in ("ann", "bob"):
        broker.subscribe(Wanted(SUBJECT.format("puffin"), id=f"of-{owner}"), owner)
    until(lambda: len(pipeline.ids()) == 2)
    pipeline.run(item(1, "A puffin"), item(2, "A gull"))
    wanted = [(f"of-{owner}", "matched", "urn:graph:1") for owner in ("ann", "bob")]
    until(lambda: len(told(broker)) >= 2)
    assert sorted(told(broker)) == wanted
    pipeline.run(item(1, "A puffin"), item(2, "A gull"), again=True)
    pipeline.run(item(1, "A puffin"), item(3, "Another puffin"))
    until(lambda: len(told(broker)) >= 4)
    assert sorted(told(broker)) == sorted([*wanted, *((id, kind, "urn:graph:3") for id, kind, _ in wanted)])
    (entry, *_) = broker.newest_events(1, 1)
    assert entry.title == "Another puffin"


def test_a_content_that_changes_and_comes_again(broker: Broker, pipeline: Pipeline) -> None:
    broker.subscribe(Wanted(SUBJECT.format("puffin"), id="puffin"), "ann")
    until(pipeline.ids)
    for number, title in enumerate(("A puffin", "A puffin chick", "A puffin", "A puffin, old"), 1):
        pipeline.run(item(1, title))
        until(lambda: not rows_at(pipeline.matches).next(1))
        assert len(told(broker)) == min(number, 2) + (number == 4)
    assert [kind for _, kind, _ in told(broker)] == ["matched", "changed", "changed"]


def test_what_comes_through_a_door_is_handed_on(broker: Broker, pipeline: Pipeline) -> None:
    for owner in ("ann", "bob"):
        broker.subscribe(Wanted(SUBJECT.format("puffin"), id=f"of-{owner}"), owner)
    until(lambda: len(pipeline.ids()) == 2)
    document = b'<> <urn:title> "A puffin" ; <http://purl.org/dc/elements/1.1/title> "Its title" .'
    (one,) = read(document)
    named = [Publication(id, one.triples) for id in ("http://a.example/1", "no iri", "http://a.example/2")]
    taken = broker.publish(named[:2]) + broker.publish(named[2:], readers=["ann"])
    until(lambda: len(list(pipeline.inbox.glob("[!.]*.nq"))) >= 1 and _state(broker, taken[-1].number) == "handed")
    assert told(broker) == []
    pipeline.run()
    counts = broker.wait([one.number for one in taken], 300)
    assert counts == {taken[0].number: 2, taken[1].number: 2, taken[2].number: 1}
    assert {id for id, _, publication in told(broker) if publication == "http://a.example/2"} == {"of-ann"}
    assert {event.title for event in broker.events("ann", 0)} == {"Its title"}
    again = broker.publish(named[:2]) + broker.publish(named[2:], readers=["ann"])
    assert [one.is_new for one in again] == [False, False, False]


def _state(broker: Broker, number: int) -> str:
    import sqlalchemy as sa

    from triplewire.store.tables import publications

    with broker.database.reading() as connection:
        here = sa.select(publications.c.state).where(publications.c.number == number)
        return str(connection.execute(here).scalar_one())


def test_a_broker_that_starts_again_goes_on(database_url: str, pipeline: Pipeline) -> None:
    with Broker.open(database_url, b"secret", outside=pipeline.outside()) as broker:
        number = broker.subscribe(Wanted(SUBJECT.format("puffin"), id="puffin"), "ann").number
        broker.subscribe(Wanted(SUBJECT.format("gull"), id="gull"), "ann")
        until(lambda: len(pipeline.ids()) == 2)
    with Broker.open(database_url, b"secret") as broker:  # nobody follows meanwhile
        broker.change(number, query=SUBJECT.format("tern"))
    pipeline.run(item(1, "A gull"), item(2, "A tern"))
    with Broker.open(database_url, b"secret", outside=pipeline.outside()) as broker:
        until(lambda: f"{number}.2" in pipeline.ids() and len(told(broker)) == 1)
        assert told(broker) == [("gull", "matched", "urn:graph:1")]


def test_an_index_of_somebody_else_is_left_alone(
    database_url: str, pipeline: Pipeline, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mine.rq").write_text("ASK { ?s ?p ?o }")
    build(pipeline.index, [tmp_path / "mine.rq"])
    with Broker.open(database_url, b"secret", outside=pipeline.outside()) as broker:
        broker.subscribe(Wanted(SUBJECT.format("puffin")), "ann")
        until(lambda: "is no index of this broker" in caplog.text)
    assert pipeline.ids() == {"mine"}


@pytest.mark.parametrize("text", ["https://a.example/", "jdbc:postgresql://h/d#t", "matches", "postgresql:h"])
def test_other_addresses_of_matches_are_refused(text: str) -> None:
    with pytest.raises(TriplewireError) as refused:
        rows_at(text)
    assert not isinstance(refused.value, StoreError)
