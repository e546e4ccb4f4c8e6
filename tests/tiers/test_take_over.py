"""Small work is answered interpreted, other work waits, and the compiled tier takes over while subscriptions change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.samples import Stub, item
from triplewire import Engine, MatchResult, Publication, Settings, TriplewireError, kernel_cache
from triplewire.encode.schema import to_batch
from triplewire.engine.compiler import Compiler
from triplewire.engine.tiers import interpreted
from triplewire.engine.tiers.interpreted import InterpretedSnapshot
from triplewire.engine.tiers.kernels import KERNELS, PUBLICATION_BYTES, TIER
from triplewire.errors import SubscriptionError
from triplewire.languages import parse
from triplewire.operators import built_in_operators
from triplewire.pipeline.index.build import saved_once
from triplewire.pipeline.index.versions import SERVER
from triplewire.read import to_nquads

PREFIX = "PREFIX : <http://example.org/> "
QUERIES = (
    ("sparql", "SELECT ?t { ?s rss:title ?t FILTER ftcontains(?t, 'winter') }"),
    ("sparql", PREFIX + "SELECT ?s ?y { ?s :year ?y FILTER(?y > 2003) }"),
    ("sparql", "ASK { ?s a rss:item }"),
    ("sparql", PREFIX + "CONSTRUCT { ?s :is ?t } WHERE { ?s rss:title ?t }"),
    ("sparql", "SELECT * { ?s ?p ?o . ?s ?q ?r }"),  # more bindings than are kept
    ("sparql", PREFIX + "SELECT * { { ?s :year 2005 } UNION { ?s rss:title 'games' } }"),
    ("gql", "SELECT ?y WHERE ((?s, <http://example.org/year>, ?y) SUCHTHAT (?y < 2004))"),
    ("mdv", "search <http://purl.org/rss/1.0/item> i register i where i.<http://example.org/year> = 2005"),
    ("predicates", "locIn(0, 0, 10, 10)"),
    ("predicates", "undecided(1)"),  # a refusal
)
ITEMS = [item(f"urn:i{n}", title, 2000 + n) for n, title in enumerate(("winter games", "games", "a winter", "", "x"))]
LIMITS = Settings(max_bindings=4)
OPERATORS = built_in_operators() | {"undecided": Stub("undecided", 1, {})}


def filled(matcher: str = "trie", count: int = len(QUERIES)) -> Engine:
    engine = Engine(matcher=matcher, settings=LIMITS, operators=OPERATORS)
    for number, (language, text) in enumerate(QUERIES[:count]):
        engine.subscribe(text, language, id=f"q{99 - number}")  # not in the order of the ids
    return engine


def told(result: MatchResult) -> tuple[list[object], set[tuple[str, str]]]:
    """All that a result says, but for the bindings of matches that are cut, which are any of them."""
    matches: list[object] = []
    for match in result:
        bindings = len(match.bindings) if match.truncated else set(map(repr, match.bindings))
        graph = None if match.construct is None else set(match.construct)
        matches.append((match.publication, match.subscription, match.truncated, bindings, graph))
    return matches, {(refusal.subject, refusal.reason) for refusal in result.refusals}


def tiers(result: MatchResult) -> tuple[int, int]:
    """How many publications were matched interpreted, and compiled."""
    return result.stats.tiers["interpreted"], result.stats.tiers["compiled"]


def test_ids_that_are_gone_are_forgotten(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreted, "_FORMER", 10)
    engine, made = filled(), parse("ASK { ?s ?p ?o }", "sparql")
    for number in range(100):
        engine.subscribe(made, id=f"made{number}")
        if number:
            engine.unsubscribe(f"made{number}")
    snapshot = engine._snapshot
    assert isinstance(snapshot, InterpretedSnapshot)
    unproven = snapshot._unproven
    assert "made0" in unproven
    assert len(unproven) <= 10 + 2 * (len(engine) + 1)


def test_small_work_is_interpreted_until_the_engine_has_settled(cold: None) -> None:
    engine = filled()
    before = engine.match(ITEMS)
    assert tiers(before) == (len(ITEMS), 0)
    engine.settle()
    after = engine.match(ITEMS)
    assert tiers(after) == (0, len(ITEMS))
    expected = told(filled("reference").match(ITEMS))
    assert expected[0]
    assert expected[1]
    assert told(before) == told(after) == expected
    assert tiers(filled().match(ITEMS)) == (0, len(ITEMS)), "a new engine of this process is compiled at once"


def test_the_compiled_tier_takes_over_by_itself(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplewire.engine.tiers.kernels.LOAD_SECONDS", 0)
    engine = filled()
    assert tiers(engine.match(ITEMS)) == (len(ITEMS), 0)
    engine._current.settle()  # waits for the thread that the match call has started
    assert tiers(engine.match(ITEMS)) == (0, len(ITEMS))


def test_many_subscriptions_are_compiled_before_the_first_publication(
    cold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their texts are not parsed again, but for that of a subscription that may not be what its text gives."""
    monkeypatch.setattr("triplewire.engine.tiers.kernels.SMALL_PAIRS", len(QUERIES) - 1)
    asked = []
    is_plain = Compiler.is_plain
    monkeypatch.setattr(Compiler, "is_plain", lambda self, one: (asked.append(one.id), is_plain(self, one))[1])
    engine = Engine(settings=LIMITS, operators=OPERATORS)
    engine.subscribe(parse(QUERIES[0][1]), id="by hand")
    for number, (language, text) in enumerate(QUERIES[1:]):
        engine.subscribe(text, language, id=f"q{number}")
    assert isinstance(engine._snapshot, InterpretedSnapshot)
    engine.subscribe("SELECT * { ?s ?p ?o }", id="one more")
    engine._current.settle()
    assert engine._snapshot.columnar
    assert asked == ["by hand"]
    assert [one.id for one in engine.subscriptions][::10] == ["by hand", "one more"]


def test_a_short_time_of_interpreted_matching_loads_nothing(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplewire.engine.tiers.kernels.LOAD_SECONDS", 300)
    engine = filled()
    engine.match(ITEMS)
    engine._current.settle()
    assert KERNELS.spent > 0
    assert tiers(engine.match(ITEMS)) == (len(ITEMS), 0)


def test_an_iterator_is_looked_into_before_the_tier_is_chosen(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplewire.engine.current_snapshot.SMALL_PAIRS", 100 * len(QUERIES))
    some = [item(f"urn:i{n:03}", "winter games", 2000 + n % 9) for n in range(300)]
    engine = filled()
    for count, expected in ((100, (100, 0)), (101, (0, 101)), (300, (0, 300))):
        result = engine.match(iter(some[:count]))
        assert tiers(result) == expected
        assert told(result) == told(filled("reference").match(some[:count]))


def test_a_stream_that_turns_out_to_be_large_goes_on_compiled(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """From one result to the next, with the subscriptions that there were when the call began."""
    monkeypatch.setattr("triplewire.engine.current_snapshot.SMALL_PAIRS", 100 * len(QUERIES))
    some = [item(f"urn:i{n:03}", "winter games", 2000 + n % 9) for n in range(300)]
    data = "".join(to_nquads(one, number) for number, one in enumerate(some)).encode()
    engine, stream = filled(), BytesIO(data)
    results = engine.match_files(stream)
    first = next(results)
    engine.unsubscribe("q99")
    rest = list(results)
    assert tiers(first)[1] == 0
    assert sum(tiers(one)[1] for one in rest) > 100
    assert all(0 in tiers(one) for one in rest)
    expected = [one for result in filled("reference").match_files(data) for one in told(result)[0]]
    assert [one for result in (first, *rest) for one in told(result)[0]] == expected


def test_what_is_known_to_be_large_waits(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplewire.engine.current_snapshot.SMALL_PAIRS", 3 * len(QUERIES))
    data = "".join(to_nquads(one, number) for number, one in enumerate(ITEMS)).encode()
    results = list(filled().match_files(data * 20))
    assert sum(tiers(one)[0] for one in results) == 0
    monkeypatch.setattr(KERNELS, "_is_loaded", False)
    engine = filled(count=8)
    assert len(engine.match_batch(to_batch(ITEMS))) == len(filled("reference", 8).match(ITEMS))
    assert engine._snapshot.columnar


def test_a_run_on_spark_waits_where_its_work_is_known_to_be_large(
    cold: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the texts alone are saved, also where an index of the same subscriptions is there."""
    monkeypatch.setattr("triplewire.engine.current_snapshot.SMALL_PAIRS", 3 * 8)
    versions = []
    for publications in (2, 2, 4, 4, 2):
        monkeypatch.setattr(KERNELS, "_is_loaded", False)
        version = saved_once(tmp_path, filled(count=8), sources=[bytes(publications * PUBLICATION_BYTES)])
        assert bool(list((tmp_path / version.part(SERVER)).glob("index.*"))) == (publications == 4)
        versions.append((version.name, version.content.source))
    assert [name for name, _ in versions] == ["v1", "v1", "v2", "v2", "v3"]
    assert len({source for _, source in versions}) == 1, "the subscriptions are the same"


def test_a_large_file_of_subscriptions_waits(cold: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "one.rq"
    file.write_text(QUERIES[0][1])
    small = Engine()
    small.load_subscriptions(file)
    assert isinstance(small._snapshot, InterpretedSnapshot)
    monkeypatch.setattr("triplewire.engine.current_snapshot.SMALL_BYTES", 10)
    large = Engine()
    large.load_subscriptions(file)
    assert large._snapshot.columnar
    assert told(large.match(ITEMS)) == told(small.match(ITEMS))


def test_a_saved_index_is_compiled(cold: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = filled()
    engine.save(tmp_path / "texts", index=False)
    assert isinstance(engine._snapshot, InterpretedSnapshot), "texts are saved without kernels"
    assert isinstance(Engine.load(tmp_path / "texts", operators=OPERATORS)._snapshot, InterpretedSnapshot)
    engine.save(tmp_path / "index")
    monkeypatch.setattr(KERNELS, "_is_loaded", False)
    loaded = Engine.load(tmp_path / "index", operators=OPERATORS)
    assert loaded._snapshot.columnar
    assert told(loaded.match(ITEMS)) == told(filled("reference").match(ITEMS))


def test_where_no_folder_can_be_written_all_is_interpreted(
    cold: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "folder", lambda: None)
    monkeypatch.setattr("triplewire.engine.current_snapshot.SMALL_PAIRS", 1)
    engine = filled()
    engine.settle()
    engine.save(tmp_path)
    result = engine.match(ITEMS)
    assert tiers(result) == (len(ITEMS), 0)
    assert told(result) == told(filled("reference").match(ITEMS))
    assert told(Engine.load(tmp_path, operators=OPERATORS).match(ITEMS)) == told(result)


def test_a_tier_that_is_not_known_is_refused(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIER, "fastest")
    with pytest.raises(TriplewireError, match="known: auto, compiled, interpreted"):
        Engine()


# --- changes meanwhile -----------------------------------------------------------------------------------------------

QUERY = st.integers(0, len(QUERIES) - 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("subscribe"), st.integers(0, 5), QUERY),
        st.tuples(st.just("unsubscribe"), st.integers(0, 5), QUERY),
        st.tuples(st.sampled_from(("begin", "install", "match")), st.just(0), st.just(0)),
    ),
    max_size=30,
)


def subscribe(engine: Engine, name: int, number: int) -> None:
    language, text = QUERIES[number]
    with suppress(SubscriptionError):  # the id is taken, in both engines
        engine.subscribe(text, language, id=f"s{name}")


def ids(engine: Engine) -> Iterator[tuple[str, str]]:
    return ((one.id, one.text) for one in engine.subscriptions)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_changes_while_the_compiled_tier_takes_over(
    cold: None, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, int, int]]
) -> None:
    monkeypatch.setattr(KERNELS, "_is_loaded", False)  # again for each example
    engine, expected = filled(count=0), filled("reference", 0)
    install = None
    for step, name, number in [*steps, ("install", 0, 0), ("match", 0, 0)]:
        if step == "subscribe":
            subscribe(engine, name, number)
            subscribe(expected, name, number)
        elif step == "unsubscribe":
            assert engine.unsubscribe(f"s{name}") == expected.unsubscribe(f"s{name}")
        elif step == "begin":
            snapshot = engine._snapshot
            if isinstance(snapshot, InterpretedSnapshot):
                install = snapshot.take_over()
                monkeypatch.setattr(KERNELS, "_is_loaded", False)
        elif step == "install" and install is not None:
            engine._current._install(install)
            assert engine._snapshot.columnar
        else:
            assert told(engine.match(ITEMS)) == told(expected.match(ITEMS))
        assert list(ids(engine)) == list(ids(expected))


def test_a_result_outlives_the_tier_that_gave_it(cold: None) -> None:
    engine = filled()
    result = engine.match(ITEMS)
    engine.settle()
    engine.unsubscribe("q99")
    assert told(result) == told(filled("reference").match(ITEMS))


def test_one_publication_at_a_time(cold: None) -> None:
    engine, expected = filled(), filled("reference")
    some: list[Publication] = ITEMS
    for number, one in enumerate(some):
        if number == 2:
            engine.settle()
        assert told(engine.match(one)) == told(expected.match(one))
