"""What the MDV paper leaves open and is settled: references, malformed documents, schemas that change."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from metadata.naive import Cache
from triplewire.errors import ArgumentError, Refusal, SubscriptionError, UnavailableError, UnsupportedQuery
from triplewire.metadata.messages import Dropped, Put, RuleText, Told, Withdraw
from triplewire.metadata.provider import Provider
from triplewire.metadata.registry import Registry
from triplewire.metadata.repository import Repository
from triplewire.store.database import Database

SPACE = "http://harbour.example/"
SCHEMA = """
PREFIX : <http://harbour.example/> PREFIX mdv: <urn:triplewire:metadata:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
:Ship a rdfs:Class . :Port a rdfs:Class .
:name rdfs:range xsd:string . :length rdfs:domain :Ship ; rdfs:range xsd:decimal .
:home rdfs:domain :Ship ; rdfs:range :Port ; mdv:reference mdv:strong .
:sister rdfs:domain :Ship ; rdfs:range :Ship ; mdv:reference mdv:strong .
:flag mdv:setValued true .
"""
SHIP, PORT = f"{SPACE}docs/ship", f"{SPACE}docs/port"
RULES = [RuleText("ships", "search Ship s register s where s.length > 10", {"": SPACE})]


def _put(document: str, text: str) -> Put:
    return Put(document, f"PREFIX : <{SPACE}>\n{text}".encode())


SAID = _put(SHIP, ":tern a :Ship ; :length 12.5 ; :home :cove .")
COVE = _put(PORT, ":cove a :Port ; :name 'Cove' .")


@pytest.fixture
def registry(database_url: str) -> Iterator[Registry]:
    """A registry with the schema and one repository."""
    with Registry.open(database_url) as registry:
        registry.use_schema(SCHEMA.encode())
        registry.subscribe("one", RULES)
        yield registry


def _cache(registry: Registry, *batches: list[Put | Withdraw]) -> Cache:
    cache = Cache()
    for batch in batches:
        cache.follow(registry.apply(batch).notices.get("one", ()))
    return cache


def test_a_strongly_referenced_resource_may_come_after_its_referrer(registry: Registry) -> None:
    """It goes to whoever holds the referrer, which is told that it is there."""
    first = registry.apply([SAID]).notices["one"]
    assert [(x.resource, x.strong) for x in first if isinstance(x, Told)] == [(SPACE + "tern", ())]
    second = registry.apply([COVE]).notices["one"]
    told = {x.resource: x.strong for x in second if isinstance(x, Told)}
    assert told == {SPACE + "cove": (), SPACE + "tern": (SPACE + "cove",)}
    assert not any(x.rules for x in second)


def test_a_strongly_referenced_resource_may_go_while_its_referrer_stays(registry: Registry) -> None:
    """It leaves the cache, and comes again with its document."""
    cache = _cache(registry, [SAID, COVE])
    assert set(cache.content()) == {SPACE + "tern", SPACE + "cove"}
    cache.follow(registry.apply([Withdraw(PORT)]).notices["one"])
    assert set(cache.content()) == {SPACE + "tern"}
    cache.follow(registry.apply([COVE]).notices["one"])
    assert set(cache.content()) == {SPACE + "tern", SPACE + "cove"}


def test_a_changed_resource_reaches_who_holds_a_referrer(registry: Registry) -> None:
    """No rule holds the port itself (the reverse strong closure)."""
    cache = _cache(registry, [SAID, COVE], [_put(PORT, ":cove a :Port ; :name 'New Cove' .")])
    assert (f"{SPACE}name", '"New Cove"') in cache.content()[SPACE + "cove"]


def test_a_circle_of_strong_references_lives_while_a_rule_holds_one_of_it(registry: Registry) -> None:
    """Across documents: each ship is the other's sister."""
    other = _put(f"{SPACE}docs/other", ":gull a :Ship ; :length 3 ; :sister :tern .")
    cache = _cache(registry, [_put(SHIP, ":tern a :Ship ; :length 12 ; :sister :gull ."), other])
    assert set(cache.content()) == {SPACE + "tern", SPACE + "gull"}
    cache.follow(registry.apply([_put(SHIP, ":tern a :Ship ; :length 2 ; :sister :gull .")]).notices["one"])
    assert cache.content() == {}


def test_a_malformed_document_withdraws_its_version_before_and_says_so(registry: Registry) -> None:
    """It stops nothing: others of the batch are taken."""
    registry.apply([SAID])
    applied = registry.apply([_put(SHIP, ":tern a :Ship ; "), COVE])
    (refusal,) = applied.refused
    assert refusal.subject == SHIP
    assert "withdrawn" in refusal.reason
    assert refusal.where.startswith(f"{SHIP}:2")
    assert applied.notices["one"] == (Dropped(SPACE + "tern", ("ships",)),)
    assert registry.resources([SPACE + "cove", SPACE + "tern"]).keys() == {SPACE + "cove"}


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (":tern a :Boat .", "no class", 2),
        (":tern a :Ship ;\n :speed 3 .", "no property", 3),
        (":tern :length 3 .", "says no class", 2),
        (":cove a :Port ;\n :length 3 .", "is none", 3),
        (":tern a :Ship ;\n :length 'long' .", "is none", 3),
        (":tern a :Ship ; :home 'Cove' .", "is none", 2),
        (":tern a :Ship ; :home :gull . :gull a :Ship .", "is none", 2),
        (":tern a :Ship ; :length 3, 4 .", "two values", 2),
    ],
)
def test_a_document_that_violates_the_schema_is_refused(text: str, reason: str, line: int, registry: Registry) -> None:
    """With its position; its version before stays."""
    registry.apply([SAID])
    applied = registry.apply([_put(SHIP, text)])
    (refusal,) = applied.refused
    assert reason in refusal.reason
    assert refusal.where.startswith(f"{SHIP}:{line}:")
    assert [held for _, _, held in registry.results()] == [[SPACE + "tern"]]


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("search Boat b register b", "new:1:8"),
        ("search Ship s register s where s.speed > 3", "new:1:32"),
        ("search Ship s register s where s.flag = 'x'", "new:1:32"),
        ("search Ship s register s where s.length? > 3", "new:1:32"),
    ],
)
def test_a_rule_that_the_schema_does_not_know_is_refused(query: str, where: str, registry: Registry) -> None:
    """Also for `?` where it does not belong, or its lack."""
    (refusal,) = registry.subscribe("one", [RuleText("new", query, {"": SPACE})]).refused
    assert refusal.where == where


def test_a_new_schema_lists_what_violates_it_and_removes_nothing(registry: Registry) -> None:
    """Whoever holds a resource is told of references that are strong no more."""
    registry.apply([SAID, COVE])
    text = SCHEMA.replace(":name rdfs:range xsd:string .", ":name rdfs:range xsd:integer .")
    applied = registry.use_schema(text.replace("; mdv:reference mdv:strong", "").encode())
    (violation,) = applied.refused
    assert isinstance(violation, Refusal)
    assert violation.subject == PORT
    assert set(registry.resources([SPACE + "cove", SPACE + "tern"])) == {SPACE + "cove", SPACE + "tern"}
    (told,) = applied.notices["one"]
    assert isinstance(told, Told)
    assert told.strong == ()


def test_rules_that_nothing_refers_to_are_gone(registry: Registry) -> None:
    """Of two rules that share atomic rules, each keeps what it needs; a rule that searches another one keeps it."""
    more = [
        RuleText("homes", "search Ship s register s where s.length > 10 and s.home.name = 'Cove'", {"": SPACE}),
        RuleText("over", "search ships s register s where s.home.name contains 'ov'", {"": SPACE}),
    ]
    registry.subscribe("one", more)
    registry.apply([SAID, COVE])
    registry.unsubscribe("one", ["ships"])
    assert {name: held for _, name, held in registry.results()} == {x.id: [SPACE + "tern"] for x in more}
    registry.unsubscribe("one", ["homes", "over"])
    with registry.database.reading() as connection:
        for table in ("md_rules", "md_triggers", "md_joins", "md_subscriptions", "md_holdings"):
            assert connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar() == 0, table
    with pytest.raises(SubscriptionError, match="no rule 'ships'"):
        registry.unsubscribe("one", ["ships"])


def test_a_rule_means_what_it_said_of_rules_that_are_gone(registry: Registry, new_database: Callable[[], str]) -> None:
    """Also for a rule that names it later, and in another registry, whatever comes first there."""
    registry.apply([SAID, COVE])
    registry.subscribe("one", [RuleText("over", "search ships s register s where s.home.name = 'Cove'", {"": SPACE})])
    registry.unsubscribe("one", ["ships"])
    registry.subscribe("one", [RuleText("above", "search over s register s where s.length < 20", {"": SPACE})])
    held = {"over": [SPACE + "tern"], "above": [SPACE + "tern"]}
    assert {name: resources for _, name, resources in registry.results()} == held
    rules = sorted((rule for _, rule in registry.rules("one")), key=lambda rule: rule.id)
    with Registry.open(new_database()) as other:
        other.use_schema(SCHEMA.encode())
        other.apply([SAID, COVE])
        assert not other.subscribe("one", rules).refused
        assert {name: resources for _, name, resources in other.results()} == held


def test_rules_that_name_rules_too_deep_are_refused_alone(registry: Registry) -> None:
    chain = [RuleText(f"r{n}", f"search {f'r{n - 1}' if n else 'Ship'} s register s", {"": SPACE}) for n in range(102)]
    applied = registry.subscribe("one", [*chain[:101], RuleText("other", "search Ship s register s", {"": SPACE})])
    assert [(refusal.subject, refusal.is_warning) for refusal in applied.refused] == [("r100", False)]
    assert "more than 100 deep" in applied.refused[0].reason
    assert applied.ids[-1] == "other"


def test_what_is_written_with_a_change_is_there_exactly_if_the_change_is(registry: Registry) -> None:
    """An outbox that fails takes the batch with it."""

    def fails(connection: object, applied: object) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        registry.apply([SAID], fails)
    version = registry.version
    assert registry.resources([SPACE + "tern"]) == {}
    seen: list[int] = []
    assert registry.apply([SAID], lambda connection, applied: seen.append(applied.version)).version == version + 1
    assert seen == [version + 1]
    assert registry.apply([SAID]).version == version + 1  # it says what it said


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
def test_a_transaction_may_compute_longer_than_one_of_a_broker(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As parsing 40,000 rules does. The server ends one that seems to be forgotten."""
    monkeypatch.setattr("triplewire.store.database.PAUSE", 4.0)
    with Registry.open(new_database()) as registry:
        registry.apply([COVE], lambda connection, applied: time.sleep(8))
        assert list(registry.classes())
    with Database.open(new_database()) as database, pytest.raises(UnavailableError, match="idle-in-transaction"):
        database.write(lambda connection: time.sleep(8))


def _statements(registry: Registry, call: Callable[[], object]) -> int:
    count = 0

    def executed(*_: object) -> None:
        nonlocal count
        count += 1

    sa.event.listen(registry.database.engine, "before_cursor_execute", executed)
    call()
    sa.event.remove(registry.database.engine, "before_cursor_execute", executed)
    return count


def test_statements_of_a_batch_do_not_depend_on_rules_or_documents(new_database: Callable[[], str]) -> None:
    """Only on how deep rules are: here each has two levels of joins."""
    counts = []
    for number in (1, 60):
        with Registry.open(new_database()) as registry:
            rules = [
                RuleText(
                    f"{number}.{x}",
                    f"search A a register a where a.p > {x} and a.q.r.s < {x} and a.n contains '{x}b{x}'",
                )
                for x in range(number)
            ]
            registry.subscribe("one", rules)
            batch = [
                Put(
                    f"{SPACE}{x}",
                    f"PREFIX : <http://purl.org/rss/1.0/> <{SPACE}{number}/{x}> a :A ; :p {x + 1} ; :n '{x}b{x}' ; "
                    f":q [ :r [ :s -1 ] ] .".encode(),
                )
                for x in range(number)
            ]
            counts.append(_statements(registry, lambda: registry.apply(batch)))  # noqa: B023  # called at once
    assert counts[0] == counts[1]


LONG = SPACE + "".join(random.Random(1).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=3_000))
"""PostgreSQL cannot make it shorter: no index takes it."""


def test_what_some_database_does_not_take_is_refused_in_all(new_database: Callable[[], str]) -> None:
    """U+0000 in texts, and names that no index has room for; the rest goes on."""
    nul = "search Ship s register s where s.length = 'a\\u0000b'"
    rules = [RuleText("nul", nul, {"": SPACE}), RuleText(LONG, "search Ship s register s", {"": SPACE}), *RULES]
    rules.append(RuleText("long", f"search <{LONG}> s register s where s = <{LONG}>"))
    texts = ":a a :Ship ; :length 'a\\u0000b' .", f":b a <{LONG}> .", ":c a :Ship ; :length 20 ."
    documents = [_put(f"urn:{number}", text) for number, text in enumerate(texts)]
    with Provider.open(new_database()) as provider, Repository.open(new_database(), "one") as repository:
        applied = provider.subscribe("one", rules)
        assert applied.ids == ("ships", "long")
        assert [(x.where, x.subject) for x in applied.refused] == [("nul:1:32", "nul"), ("", LONG)]
        assert [x.subject for x in provider.apply(documents).refused] == ["urn:0", "urn:1"]
        assert [x[1:] for x in provider.results()] == [("ships", [f"{SPACE}c"]), ("long", [])]
        for refused in (lambda: Put(LONG, b""), lambda: Withdraw("a\x00"), lambda: provider.subscribe(LONG, RULES),
                        lambda: provider.snapshot(LONG), lambda: provider.apply((), LONG, 1)):  # fmt: skip
            with pytest.raises(ArgumentError, match="has more than 1,024 bytes, or holds U\\+0000"):
                refused()
        assert [x.subject for x in repository.register(documents)] == ["urn:0", "urn:1"]
        assert list(repository.query("search Ship s register s", {"": SPACE})) == [f"{SPACE}c"]
        with pytest.raises(UnsupportedQuery, match="query:1:32: a constant holds U\\+0000"):
            repository.query(nul, {"": SPACE})
