"""The log of a provider says what it has, also where documents are refused, and where several write at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from amounts import usually
from metadata.metadata_serving import TOKEN, provider_at
from triplewire.errors import ArgumentError
from triplewire.metadata.backbone import Peer, Writing
from triplewire.metadata.batches import Batch
from triplewire.metadata.messages import Applied, Put, RuleText, Withdraw
from triplewire.metadata.provider import Provider
from triplewire.metadata.remote import RemoteProvider
from triplewire.metadata.repository import Repository
from triplewire.metadata.tables import documents

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SCHEMAS = [
    f"@prefix : <http://terms.example/> . @prefix rdfs: <{_RDFS}> . {classes} :n rdfs:range :A .".encode()
    for classes in (":A a rdfs:Class . :B a rdfs:Class .", ":A a rdfs:Class .", ":B a rdfs:Class .")
]
CONTENTS = [
    *(f"@prefix : <http://terms.example/> . <#r> a :{name} ; :n <#{name}> .".encode() for name in "ABC"),
    *(f"@prefix : <http://terms.example/> . <#r> a :{name} .".encode() for name in "AB"),
    b"<#r> a",
]
DOCUMENT = "http://docs.example/1"
A_AND_B = CONTENTS[3], CONTENTS[4]


def _there(provider: Provider) -> dict[str, str]:
    """The documents that a provider has, with digests of their contents."""
    return {row.iri: row.digest for row in provider.database.rows(sa.select(documents.c.iri, documents.c.digest))}


@contextmanager
def _following(provider: Provider, address: str) -> Iterator[Peer]:
    with RemoteProvider(address, TOKEN) as remote:
        yield Peer(provider, remote)


@pytest.mark.parametrize("seed", range(usually(2, 100)))
def test_who_follows_a_log_has_the_same_documents(seed: int, new_database: Callable[[], str]) -> None:
    """Step by step, or all at once later: a document that was refused is not in the log."""
    chance, refused = random.Random(seed), 0
    with (
        Provider.open(new_database()) as first,
        Provider.open(new_database()) as second,
        Provider.open(new_database()) as late,
        provider_at(Writing(first)) as address,
        _following(second, address) as close_behind,
        _following(late, address) as far_behind,
    ):
        for _ in range(20):
            if chance.random() < 0.2:
                first.use_schema(chance.choice(SCHEMAS))
            else:
                names = [f"http://docs.example/{number}" for number in chance.sample(range(3), chance.choice((1, 2)))]
                applied = first.apply(
                    [Withdraw(x) if chance.random() < 0.2 else Put(x, chance.choice(CONTENTS)) for x in names]
                )
                refused += len(applied.refused)
            while close_behind.step(0):
                pass
            assert (_there(second), second.version) == (_there(first), first.version)
        while far_behind.step(0):
            pass
        assert (_there(late), late.version) == (_there(first), first.version)
    assert refused


def _together(provider: Provider, *calls: Callable[[], Applied]) -> list[Applied]:
    """Each of these calls reads what there is before the first of them writes; they write in their order."""
    begun, go = threading.Event(), threading.Event()
    first = provider.database.begin(lambda connection: (begun.set(), go.wait(60)))
    assert begun.wait(60)
    with ThreadPoolExecutor() as pool:
        running = []
        for number, call in enumerate(calls, 1):
            running.append(pool.submit(call))
            while provider.database._queue.qsize() < number:
                assert not running[-1].done(), running[-1].result()
                time.sleep(0.01)
        go.set()
        first.result()
        return [each.result() for each in running]


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        (A_AND_B[0], (Put(DOCUMENT, A_AND_B[1]), Put(DOCUMENT, A_AND_B[0]))),  # the second says what was there
        (None, (Put(DOCUMENT, A_AND_B[0]), Withdraw(DOCUMENT))),  # the second found none
        (A_AND_B[0], (Withdraw(DOCUMENT), Put(DOCUMENT, A_AND_B[0]))),
    ],
)
def test_the_log_is_what_there_is_where_two_write_at_once(
    before: bytes | None, changes: tuple[Put | Withdraw, ...], new_database: Callable[[], str]
) -> None:
    with Provider.open(new_database()) as provider, Provider.open(new_database()) as late:
        if before is not None:
            provider.apply([Put(DOCUMENT, before)])
        _together(provider, *(lambda change=change: provider.apply([change]) for change in changes))
        for entry in provider.entries(0):
            late.apply([entry.change], version=entry.version)
        assert _there(late) == _there(provider)


def test_a_document_conforms_to_the_schema_with_which_it_is_written(new_database: Callable[[], str]) -> None:
    """It was read when there was another one."""
    with Provider.open(new_database()) as provider:
        provider.use_schema(SCHEMAS[0])
        put = Put(DOCUMENT, A_AND_B[1])
        _, applied = _together(provider, lambda: provider.use_schema(SCHEMAS[1]), lambda: provider.apply([put]))
        assert [refusal.subject for refusal in applied.refused] == [DOCUMENT]
        assert _there(provider) == {}


def test_a_list_is_applied_in_its_order_where_two_send_it_at_once(new_database: Callable[[], str]) -> None:
    """Who sends the list again, as no answer came, may overtake the first."""
    with Provider.open(new_database()) as provider:
        later, earlier = (
            (lambda: provider.apply([Put(DOCUMENT, A_AND_B[1])], "list", 20)),
            (lambda: provider.apply([Put(DOCUMENT, A_AND_B[0])], "list", 10)),
        )
        _together(provider, later, earlier)
        assert provider.applied_of("list") == 20
        assert [entry.content for entry in provider.entries(0)] == [A_AND_B[1]]


def test_a_rule_takes_the_place_of_another_in_one_batch(new_database: Callable[[], str]) -> None:
    """There is no moment at which the repository has neither of the two; what both hold is not dropped."""
    classes = {name: RuleText("rule", f"search <http://terms.example/{name}> r register r") for name in "AB"}
    both = "search <http://terms.example/A> r register r where r.<http://terms.example/none> != 1"
    others = [RuleText("over", "search rule r register r"), RuleText("rule", both.partition(" where")[0] + "\n")]
    with Provider.open(new_database()) as provider, Repository.open(new_database(), "north") as repository:
        provider.apply([Put("urn:1", A_AND_B[0].replace(b"#r", b"#a")), Put("urn:2", A_AND_B[1].replace(b"#r", b"#b"))])
        provider.subscribe("north", [classes["A"]])
        repository.restore(provider.snapshot("north"))
        stream = repository.position.stream
        for number, (rules, held) in enumerate(
            [([classes["B"]], ["urn:2#b"]), ([classes["A"], others[0]], ["urn:1#a"]), ([others[1]], ["urn:1#a"])], 1
        ):
            assert not provider.subscribe("north", rules).refused
            assert provider.subscribe("north", rules).notices == {}  # they are there
            (line,) = provider.batches("north", stream, number - 1) or ()
            assert repository.receive(stream, Batch.of_line(line))
            assert dict(repository.results())["rule"] == held
            assert list(repository.cached()) == held
            assert {id: iris for _, id, iris in provider.results()} == dict(repository.results())
        assert '"dropped"' not in line
        refused = provider.subscribe("north", [RuleText("rule", "search ("), others[0]])
        assert ([x.subject for x in refused.refused], refused.ids) == (["rule"], ("over",))
        assert ["urn:1#a"] in [iris for _, id, iris in provider.results() if id == "rule"]


def test_names_are_not_empty(new_database: Callable[[], str]) -> None:
    """A schema stands in the log, and a cache among local documents, under an empty one."""
    with Provider.open(new_database()) as provider, Repository.open(new_database()) as repository:
        provider.apply([Put(DOCUMENT, A_AND_B[0])])
        provider.subscribe("north", [RuleText("rule", "search <http://terms.example/A> r register r")])
        repository.restore(provider.snapshot("north"))
        for what, call in (
            ("document", lambda: provider.apply([Put("", b"")])),
            ("document", lambda: repository.register([Put("", b"")])),
            ("repository", lambda: provider.subscribe("", [])),
            ("repository", lambda: provider.snapshot("")),
        ):
            with pytest.raises(ArgumentError, match=f"the name of the {what} is empty"):
                call()
        assert [refusal.subject for refusal in repository.withdraw([""])] == [""]
        assert list(repository.cached()) == [f"{DOCUMENT}#r"]
        applied = provider.subscribe("north", [RuleText("", "search <urn:a> a register a")])
        assert [refusal.reason for refusal in applied.refused] == ["the name of the rule is empty: ''..."]
