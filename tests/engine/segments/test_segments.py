"""What snapshots of segments promise beside right answers: small changes, merges aside, no growth, saved indexes."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.samples import EX, full_disk, item, read_while_writing
from engine.store.manifests import change
from triplewire import Engine, Publication, Settings
from triplewire.clauses.clauses import VERSION
from triplewire.clauses.node_tests.columns import flat
from triplewire.engine import compiler
from triplewire.engine.segments import snapshot as snapshots
from triplewire.engine.segments.segment import Segment
from triplewire.engine.segments.snapshot import DELTA, SegmentSnapshot
from triplewire.engine.segments.texts import IN_MEMORY, Texts, TextWriter
from triplewire.engine.store import contents
from triplewire.errors import StoreError

SMALL = Settings(merge_subscriptions=16)


def query(number: int) -> str:
    return f"SELECT ?s {{ ?s <{EX}year> {2000 + number % 50} ; <{EX}p{number % 7}> ?o{number % 3} }}"


def titles(word: str) -> str:
    return f'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "{word}") }}'


def engine_with(count: int, settings: Settings = SMALL) -> Engine:
    engine = Engine(matcher="trie", settings=settings)
    for number in range(count):
        engine.subscribe(titles(f"w{number % 10}"), id=f"s{number:04}")
    return engine


def snapshot_of(engine: Engine) -> SegmentSnapshot:
    snapshot = engine._snapshot
    assert isinstance(snapshot, SegmentSnapshot)
    return snapshot


def found(engine: Engine, title: str) -> list[str]:
    return [match.subscription for match in engine.match(item("p", title))]


def test_one_subscription_is_a_small_change() -> None:
    """The layers before the last one are the same objects; nothing of them is made anew."""
    engine = engine_with(1_000)
    engine.settle()
    before = snapshot_of(engine)
    engine.subscribe(titles("new"), id="new")
    engine.unsubscribe("s0007")
    after = snapshot_of(engine)
    assert after.layers[0].segment is before.layers[0].segment
    assert len(after.delta) <= DELTA
    assert found(engine, "new w7") == ["new", *(f"s{n:04}" for n in range(17, 1_000, 10))]


def test_there_are_never_many_segments() -> None:
    engine = engine_with(3_000)
    engine.settle()
    sizes = [len(layer.segment) for layer in snapshot_of(engine).layers]
    assert sum(sizes) + len(snapshot_of(engine).delta) == 3_000
    assert len(sizes) <= 4
    assert sizes == sorted(sizes, reverse=True)


def test_changes_and_matches_in_many_threads() -> None:
    """While two threads change and merges go on, every match call sees each pair of subscriptions whole."""
    engine = Engine(matcher="trie", settings=Settings(merge_subscriptions=8))
    engine.subscribe(titles("word"), id="always")
    publication = item("p", "word")

    def work(number: int) -> None:
        for turn in range(150):
            engine.subscribe(titles("word"), id=f"{number}-{turn}")
            if turn >= 20:
                assert engine.unsubscribe(f"{number}-{turn - 20}")

    def look() -> None:
        ids = [match.subscription for match in engine.match(publication)]
        assert ids == sorted(set(ids))
        assert "always" in ids
        for number in range(2):
            turns = sorted(int(id_.split("-")[1]) for id_ in ids if id_.startswith(f"{number}-"))
            assert turns == list(range(turns[0], turns[-1] + 1)) if turns else True
            assert len(turns) <= 21

    read_while_writing(work, look, writers=2)
    engine.settle()
    expected = sorted(["always", *(f"{number}-{turn}" for number in range(2) for turn in range(130, 150))])
    assert found(engine, "word") == expected


def weight(engine: Engine) -> int:
    """Bytes of arrays and of texts, on disk or not."""
    snapshot = snapshot_of(engine)
    sources = {id(source): source.size for layer in snapshot.layers for source in layer.segment.texts.sources}
    return sum(nbytes(layer.segment) for layer in snapshot.layers) + sum(sources.values())


def nbytes(segment: Segment) -> int:
    texts, ids = segment.texts, segment.ids
    arrays = [segment.selection, segment.construct, texts.source, texts.start, texts.length, ids.rank]
    arrays += [*flat(ids.names).values(), *segment.index.arrays().values()]
    return segment.clauses.nbytes + sum(array.nbytes for array in arrays)


def objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_rounds_leave_no_growth() -> None:
    """1,000 subscriptions come and go, one after the other and in groups: arrays, texts and objects stay as many."""
    engine = engine_with(100)
    publication = item("p", "w3")

    def rounds(count: int, start: int) -> None:
        for number in range(start, start + count):
            engine.subscribe(titles(f"round{number}"), id=f"r{number}")
            if number % 50 == 49:
                engine.match(publication)
                for gone in range(number - 49, number + 1):
                    engine.unsubscribe(f"r{gone}")
        engine.settle()

    rounds(500, 0)
    before_weight, before_objects = weight(engine), objects()
    rounds(500, 500)
    rounds(500, 1_000)
    assert len(engine.subscriptions) == 100
    assert weight(engine) <= 1.2 * before_weight + 20_000
    assert objects() <= before_objects + 500


@pytest.mark.parametrize("expected", [0, 2 * IN_MEMORY], ids=["file when needed", "file from the start"])
def test_texts_are_on_disk_and_tidy(expected: int) -> None:
    writer = TextWriter(expected)
    rows = [(json.dumps({"n": number, "text": "x" * 1_000}) + "\n").encode() for number in range(3_000)]
    parts = [Texts.of(writer, rows[:1_500]), Texts.of(writer, rows[1_500:])]
    assert writer.size > 2 * IN_MEMORY
    joined = Texts.joined([parts[0].take(np.arange(0, 1_500, 5)), parts[1].take(np.arange(0, 1_500, 5))])
    assert len(joined.sources) == 1
    tidy = joined.tidied(0)
    assert sum(source.size for source in tidy.sources) == int(tidy.length.sum())
    for number in range(0, 600, 37):
        assert tidy.read(number) == joined.read(number) == rows[5 * number]
    assert b"".join(tidy.blocks()) == b"".join(joined.blocks()) == b"".join(rows[::5])


@pytest.mark.parametrize(("first", "there"), [(1_500, DELTA), (5_000, 3 * DELTA + 9)], ids=["in memory", "in a file"])
def test_a_full_disk_refuses_what_comes_and_leaves_the_rest(first: int, there: int, tmp_path: Path) -> None:
    engine = Engine(matcher="trie")
    for number in range(2 * DELTA):
        engine.subscribe(titles("w") + "#" * first, id=f"short {number}")
    for number in range(there):
        engine.subscribe(titles("w") + "#" * 9_000, id=f"s{number}")
    (source,) = snapshot_of(engine).layers[-1].segment.texts.sources
    assert (source.size > IN_MEMORY) == (there > DELTA)
    with full_disk(source.size + 10_000):
        for number in range(there, there + DELTA):  # of one of them, the delta is full
            try:
                engine.subscribe(titles("w") + "#" * 9_000, id=f"s{number}")
            except StoreError:
                break
        assert number < there + DELTA
        with pytest.raises(StoreError, match="written"):
            engine.subscribe(titles("w"), id="another")
        with pytest.raises(StoreError, match="written"):
            engine.save(tmp_path)
        assert len(found(engine, "w")) == len(engine) == 2 * DELTA + number
        assert engine.subscriptions[5].text == titles("w") + "#" * first
    for later in range(number, there + 2 * DELTA):
        engine.subscribe(titles("w") + "#" * 9_000, id=f"s{later}")
    engine.save(tmp_path)
    for one in (engine, Engine.load(tmp_path)):
        assert len(found(one, "w")) == 4 * DELTA + there
        texts = [len(subscription.text) - len(titles("w")) for subscription in one.subscriptions]
        assert texts == [first] * 2 * DELTA + [9_000] * (there + 2 * DELTA)


def test_saving_leaves_nothing_in_the_engine(tmp_path: Path) -> None:
    engine = engine_with(DELTA + 9, Settings())
    assert snapshot_of(engine).delta
    sizes = [layer.segment.texts.sources[-1].size for layer in snapshot_of(engine).layers]
    for _ in range(3):
        engine.save(tmp_path)
    assert [layer.segment.texts.sources[-1].size for layer in snapshot_of(engine).layers] == sizes


def test_texts_of_many_sources() -> None:
    parts = [Texts.of(TextWriter(), [b"%d\n" % number]) for number in range(300)]
    joined = Texts.joined(parts)
    assert [joined.read(number) for number in (0, 199, 299)] == [b"0\n", b"199\n", b"299\n"]


# --- saved indexes ----------------------------------------------------------------------------------------------------


def saved(folder: Path) -> Engine:
    engine = engine_with(200)
    engine.unsubscribe("s0003")
    engine.subscribe(f"search <{EX}T> t register t where t.<{EX}year> > 3", "mdv", id="T")
    engine.subscribe(f"search T t register t where t.<{EX}year> < 9", "mdv", id="of T")
    engine.subscribe(f"CONSTRUCT {{ ?s <{EX}x> ?t }} WHERE {{ ?s rss:title ?t }}", id="made")
    engine.save(folder)
    return engine


def test_an_index_is_opened_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = saved(tmp_path)
    parsed: list[str] = []
    compiled = Engine.load(tmp_path)._compiler.__class__.compiled

    def counted(self, row, *args, **more):  # type: ignore[no-untyped-def]
        parsed.append(row["id"])
        return compiled(self, row, *args, **more)

    monkeypatch.setattr("triplewire.engine.compiler.Compiler.compiled", counted)
    loaded = Engine.load(tmp_path)
    assert sorted(set(parsed)) == ["T", "of T"], "a rule that names another, and that other"
    assert len(loaded.subscriptions) == 202
    for title in ("w3", "w4 w5", "nothing"):
        assert found(loaded, title) == found(engine, title)
    assert loaded.match(item("p", "w3")).matches == engine.match(item("p", "w3")).matches
    assert loaded.subscriptions == engine.subscriptions
    loaded.subscribe(titles("w3"), id="s0003")
    loaded.unsubscribe("s0013")
    assert "s0013" not in found(loaded, "w3")
    assert "s0003" in found(loaded, "w3")
    loaded.save(tmp_path)
    assert Engine.load(tmp_path).subscriptions == loaded.subscriptions


def test_an_index_of_another_version_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = saved(tmp_path)
    change(tmp_path, lambda manifest: manifest["index"].update(version=VERSION + 1))
    monkeypatch.setattr(contents, "LOADED_TOGETHER", 50)
    monkeypatch.setattr(snapshots, "DELTA", 10)
    loaded = Engine.load(tmp_path)
    assert snapshot_of(loaded).background_work() is None
    assert loaded.subscriptions == engine.subscriptions
    assert found(loaded, "w3 w4") == found(engine, "w3 w4")


@pytest.mark.parametrize("made_by", ["trie 7", "everything 1", None])
def test_an_index_that_was_made_otherwise_is_made_anew_from_the_clauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_by: object
) -> None:
    engine = saved(tmp_path)
    change(tmp_path, lambda manifest: manifest["index"].update(made_by=made_by))
    parse, parsed = compiler.parse, []
    monkeypatch.setattr(compiler, "parse", lambda *given, **more: parsed.append(more["id"]) or parse(*given, **more))
    loaded = Engine.load(tmp_path)
    assert set(parsed) == {"T", "of T"}, "a rule that names another, and that other"
    assert found(loaded, "w3 w4") == found(engine, "w3 w4")


@pytest.mark.parametrize("others", ["everything", "reference"])
def test_the_texts_serve_other_matchers(tmp_path: Path, others: str) -> None:
    engine = saved(tmp_path)
    other = Engine.load(tmp_path, matcher=others)
    assert found(other, "w3 w4") == found(engine, "w3 w4")
    other.save(tmp_path)
    assert found(Engine.load(tmp_path, matcher="trie"), "w3 w4") == found(engine, "w3 w4")


def shape(name: str, value: list[int]) -> Callable[[Path], None]:
    return lambda folder: change(folder, lambda manifest: manifest["index"]["arrays"][name].__setitem__(1, value))


def renamed(name: str, other: str) -> Callable[[Path], None]:
    def edit(manifest: dict[str, Any]) -> None:
        arrays = manifest["index"]["arrays"]
        manifest["index"]["arrays"] = {other if key == name else key: arrays[key] for key in arrays}

    return lambda folder: change(folder, edit)


DAMAGE = {
    "no arrays": (lambda folder: change(folder, lambda m: m.update(index={"version": 1})), "what is in the index"),
    "an array beyond the end": (shape("start", [10**9]), "what is in the index"),
    "a missing array": (renamed("selection", "selected"), "its index does not fit together (KeyError: 'selection')"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_indexes_are_named(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    saved(tmp_path)
    damage(tmp_path)
    with pytest.raises(StoreError) as caught:
        Engine.load(tmp_path)
    assert said in str(caught.value)


def test_nothing_to_save(tmp_path: Path) -> None:
    Engine(matcher="trie").save(tmp_path)
    loaded = Engine.load(tmp_path)
    assert len(loaded.subscriptions) == 0
    assert len(loaded.match(Publication("p", ()))) == 0
