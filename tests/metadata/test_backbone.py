"""Two providers with one log, repositories at both, and a network that loses, delays, doubles and reorders.

In the end each cache is the answer of its rules; a repository moves between the providers; local metadata never leave.
"""

from __future__ import annotations

import random
import time
import urllib.request
from collections.abc import Callable
from typing import TypeVar

import pytest

from amounts import usually
from metadata.metadata_serving import TOKEN, network, provider_at
from metadata.provider_histories import RULES, SCHEMA, Expected, changes
from triplewire.errors import BusyError, ServiceError, StoreError, TriplewireError
from triplewire.metadata.backbone import Peer, Writing
from triplewire.metadata.batches import Batch
from triplewire.metadata.follow import Follower, move
from triplewire.metadata.messages import Put, RuleText, Told
from triplewire.metadata.provider import Provider
from triplewire.metadata.remote import RemoteProvider
from triplewire.metadata.repository import Repository

T = TypeVar("T")
SECRET = "known-to-nobody-else"


def again(work: Callable[[], T], tries: int = 60) -> T:
    """What work returns once it is answered."""
    for _ in range(tries):
        try:
            return work()
        except TriplewireError:
            time.sleep(0.02)
    return work()


def quiet(follower: Follower) -> None:
    """Follow until nothing comes any more."""
    while again(lambda: follower.step(wait=0)):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(usually(2, 200)))
def test_caches_agree_over_a_network_that_fails(seed: int, new_database: Callable[[], str]) -> None:
    chance, expected = random.Random(seed), Expected()
    names = sorted(RULES.keys() - {"over"})
    with (
        Provider.open(new_database()) as first,
        Provider.open(new_database()) as second,
        Repository.open(new_database(), "north") as north,
        Repository.open(new_database(), "south") as south,
        provider_at(Writing(first)) as address,
        network(address, seed) as before_first,
    ):
        first.use_schema(SCHEMA.encode())
        with (
            Peer(second, RemoteProvider(before_first.url, TOKEN)) as writing,
            provider_at(writing) as other,
            network(other, seed + 1) as before_second,
            RemoteProvider(before_first.url, TOKEN) as to_first,
            RemoteProvider(before_second.url, TOKEN) as to_second,
        ):
            north.register([Put("urn:local:1", f"<urn:a> <urn:b> '{SECRET}' .".encode())])
            sides = []
            for repository, provider in ((north, to_first), (south, to_second)):
                ids = chance.sample(names, 5)
                expected.rules[repository.name] = {id: RULES[id] for id in ids}
                follower = Follower(repository, provider, [RULES[id] for id in ids])
                again(lambda follower=follower: follower.step(wait=0))
                sides.append(follower)
            for number in range(1, 9):
                batch = changes(chance)
                expected.apply(batch)
                to = chance.choice([to_first, to_second])
                again(lambda to=to, batch=batch, number=number: to.change(batch, "events", number))
                for follower in sides:
                    if chance.random() < 0.7:
                        again(lambda follower=follower: follower.step(wait=0))
            while second.version < first.version:
                time.sleep(0.02)
            for follower in sides:
                quiet(follower)
                assert follower.repository.cached() == expected.cache(follower.name)
            again(lambda: move(north, to_first, to_second))
            assert north.provider == before_second.url
            assert list(first.registry.rules("north")) == [] or before_first.happened.get("lost")
            batch = changes(chance)
            expected.apply(batch)
            again(lambda: to_first.change(batch, "events", 9))
            while second.version < first.version:
                time.sleep(0.02)
            quiet(Follower(north, to_second))
            assert north.cached() == expected.cache("north")
            assert sorted(north.query("search <urn:x> a register a")) == []
        traffic = b"".join(before_first.traffic + before_second.traffic)
        assert b"/batches" in traffic
        assert SECRET.encode() not in traffic
        assert sum(count for what, count in before_first.happened.items() if what) > 5


def test_only_reading_needs_no_token(database_url: str) -> None:
    with (
        Provider.open(database_url) as provider,
        provider_at(Writing(provider)) as address,
        RemoteProvider(address, "a wrong token") as anybody,
    ):
        provider.subscribe("north", [RULES["all"]])
        for write in (
            lambda: anybody.change([Put("urn:d", b"")]),
            lambda: anybody.subscribe("north", [RULES["fast"]]),
            lambda: anybody.unsubscribe("north", ["all"]),
            lambda: anybody.snapshot("north"),
            lambda: anybody.forget("north"),
            lambda: anybody.acknowledge("north", "stream", 1),
        ):
            with pytest.raises(ServiceError, match="API token is needed") as refused:
                write()
            assert refused.value.status == 401
        assert [row["rule"] for row in anybody.results()] == ["all"]
        assert anybody.log(0) == []
        assert anybody.health() == {"healthy": True, "provider": provider.identity, "version": 0}
        assert anybody.batches("north", "none", 0) is None


def test_another_address_of_a_provider_is_no_other_provider(new_database: Callable[[], str]) -> None:
    with (
        Provider.open(new_database()) as provider,
        Repository.open(new_database(), "north") as repository,
        provider_at(Writing(provider)) as address,
        network(address, 0) as network_of_faults,
        RemoteProvider(address, TOKEN) as remote,
    ):
        network_of_faults.faults = False
        provider.apply([Put("urn:d", b"<urn:a> a <http://terms.example/Host> .")])
        quiet(Follower(repository, remote, [RULES["all"]]))
        with RemoteProvider(network_of_faults.url, TOKEN) as same:
            assert move(repository, remote, same) == []
            quiet(Follower(repository, same))
        assert dict(repository.results()) == {"all": ["urn:a"]}
        assert [rule.id for _, rule in provider.registry.rules("north")] == ["all"]


def test_a_rule_that_is_wrong_is_refused_with_its_place(database_url: str) -> None:
    with (
        Provider.open(database_url) as provider,
        provider_at(Writing(provider)) as address,
        RemoteProvider(address, TOKEN) as remote,
    ):
        said = remote.subscribe("north", [RuleText("wrong", "search A a\nregister b"), RULES["all"]])
        assert said[0]["title"].startswith("the search clause has no variable 'b'")
        assert said[0]["where"] == "wrong:2:10"
        assert said[1] == {"id": "all"}


def test_a_provider_takes_nothing_while_its_peer_is_away(new_database: Callable[[], str]) -> None:
    nobody = RemoteProvider("http://127.0.0.1:9", TOKEN)
    with (
        Provider.open(new_database()) as provider,
        Peer(provider, nobody) as writing,
        provider_at(writing) as address,
        RemoteProvider(address, TOKEN) as remote,
    ):
        with pytest.raises(BusyError, match=r"its peer \S+:9 does not answer: the connection failed"):
            remote.change([Put("urn:d", b"")])
        assert list(remote.results()) == []
        with pytest.raises(StoreError, match="its documents come from the log of http"):
            provider.apply([Put("urn:d", b"")])
        provider.state("peer", "")
        assert provider.apply([Put("urn:d", b"<urn:a> <urn:b> 1 .")]).version == 1


def test_a_stream_of_events_goes_on_where_it_was(database_url: str) -> None:
    """Server-Sent Events, as any client reads them."""
    with Provider.open(database_url) as provider, provider_at(Writing(provider)) as address:
        provider.subscribe("north", [RULES["all"]])
        stream = provider.snapshot("north").stream
        url = f"{address}/repositories/north/batches?stream={stream}&format=sse"
        for number in range(3):
            provider.apply([Put(f"urn:{number}", f"<urn:{number}> a <http://terms.example/Host> .".encode())])
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Last-Event-ID": "1"}), timeout=300) as events:
            lines = [next(events).decode().strip() for _ in range(7)]
        assert [line for line in lines if line.startswith("id:")] == ["id: 2", "id: 3"]
        batches = [Batch.of_line(line.removeprefix("data:")) for line in lines if line.startswith("data:")]
        told = [item.resource for batch in batches for item in batch.items if isinstance(item, Told)]
        assert told == ["urn:1", "urn:2"]
        provider.snapshot("north")  # another stream begins
        with urllib.request.urlopen(url, timeout=300) as events:
            assert [next(events) for _ in range(3)][2] == b"event: gone\n"
