"""Engines that another version has saved, or a matcher that is not ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.samples import EX, item
from engine.store.manifests import change, make_old
from triplewire import Engine, plugins
from triplewire.errors import StoreError
from triplewire.select.everything import EverythingMaker
from triplewire.select.index import IndexMaker
from triplewire.verify import network
from triplewire.verify import network as shared_joins


def saved(folder: Path, matcher: str) -> Engine:
    engine = Engine(matcher=matcher)
    for number in range(20):
        engine.subscribe(f'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{number}") }}', id=f"w{number}")
    engine.subscribe(f"search <{EX}T> t register t where t.<{EX}year> > 3", "mdv", id="T")
    engine.subscribe(f"search T t register t where t.<{EX}year> < 9", "mdv", id="of T")
    engine.save(folder)
    return engine


@pytest.mark.parametrize("version", [1, 2])
def test_an_earlier_version_is_compiled_from_its_texts(matcher: str, tmp_path: Path, version: int) -> None:
    engine = saved(tmp_path, matcher)
    make_old(tmp_path, version)
    for index in tmp_path.glob("index.*"):
        index.write_bytes(b"of another form")
    loaded = Engine.load(tmp_path)
    assert loaded.subscriptions == engine.subscriptions
    assert list(loaded.match(item("p", "w3 w4"))) == list(engine.match(item("p", "w3 w4")))
    loaded.save(tmp_path)
    assert Engine.load(tmp_path).subscriptions == engine.subscriptions


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("part", ["subscriptions", "taxonomy"])
def test_damage_of_an_earlier_version_is_found(tmp_path: Path, part: str, version: int) -> None:
    saved(tmp_path, "reference")
    make_old(tmp_path, version)
    (file,) = tmp_path.glob(f"{part}.*")
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="the SHA-256 differs"):
        Engine.load(tmp_path)


def test_a_newer_version_is_refused_by_its_number(matcher: str, tmp_path: Path) -> None:
    saved(tmp_path, matcher)
    change(tmp_path, lambda manifest: manifest.update(version=4))
    with pytest.raises(StoreError, match="it has version 4, and this Triplewire reads up to 3"):
        Engine.load(tmp_path)


def _networks(engine: Engine) -> list[Mapping[str, Any]]:
    """The arrays of the join networks of the segments."""
    layers = engine._current.snapshot._all_layers  # type: ignore[attr-defined]
    return [layer.segment.verifier_arrays() for layer in layers]


@pytest.mark.parametrize("matcher", ["everything", "trie"])
@pytest.mark.parametrize("version", [network.VERSION, network.VERSION + 1, None])
def test_a_network_is_opened_where_it_is_of_this_version(
    matcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int | None
) -> None:
    engine, made, make = saved(tmp_path, matcher), [], network.made_network
    matches, (before,) = list(engine.match(item("p", "w3 w4"))), _networks(engine)
    monkeypatch.setattr(shared_joins, "made_network", lambda *given: made.append(given) or make(*given))
    change(tmp_path, lambda manifest: manifest["index"].update(network=version))
    loaded = Engine.load(tmp_path)
    assert list(loaded.match(item("p", "w3 w4"))) == matches
    (after,) = _networks(loaded)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert len(made) == (version != network.VERSION)


# --- matchers of somebody else ---------------------------------------------------------------------------------------


class Index:
    """As "everything", with an array of its own: the numbers of the clauses."""

    order = None
    proves_constants = False

    def __init__(self, inner: Any, numbers: Any) -> None:
        self.inner = inner
        self.numbers = numbers

    def prepare(self, view: Any) -> None:
        return None

    def select(self, view: Any, prepared: None, most: int, space: Any) -> Any:
        return self.inner.select(view, prepared, most, space)

    def arrays(self) -> dict[str, Any]:
        return {"numbers": self.numbers}


class Maker:
    name = "theirs"
    version = 1
    given: Mapping[str, Any] = {}

    def build(self, clauses: Any) -> Any:
        return Index(EverythingMaker().build(clauses), np.arange(clauses.count, dtype=np.int32))

    def open(self, clauses: Any, arrays: Mapping[str, Any]) -> Any:
        type(self).given = arrays
        return Index(EverythingMaker().build(clauses), arrays["numbers"])


THEIRS = Maker()


def test_their_index_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plugins.BUILT_IN["matcher"], "theirs", f"{__name__}:THEIRS")
    assert isinstance(THEIRS, IndexMaker)
    engine = saved(tmp_path, "theirs")
    loaded = Engine.load(tmp_path)
    assert len(THEIRS.given["numbers"]) == 22
    assert list(loaded.match(item("p", "w3 w4"))) == list(engine.match(item("p", "w3 w4")))
