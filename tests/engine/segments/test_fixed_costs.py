"""What a match call leaves undone: terms that nobody asks for, and conditions that were taken apart before."""

from __future__ import annotations

import pytest

from engine.samples import EX, item
from triplewire import Engine
from triplewire.engine.segments import segment
from triplewire.ir.normal_form import normal_form
from triplewire.kernels.shared.compiled import IS_COMPILED
from triplewire.model.packed import pack
from triplewire.model.publication import Publication


@pytest.fixture(scope="module")
def engine() -> Engine:
    if not IS_COMPILED:
        pytest.skip("kernels run as Python")
    engine = Engine()
    for number in range(20):
        engine.subscribe(f'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{number}") }}', id=f"s{number}")
    engine.subscribe(f"SELECT ?a {{ ?s <{EX}year> ?a ; rss:title ?b ; <{EX}of> ?o . ?o <{EX}of> ?s }}", id="joined")
    engine.settle()
    return engine


def test_what_was_read_is_matched_without_its_terms(engine: Engine) -> None:
    """Rows, and which subscriptions match: no term of a publication is made for that, alone or with others."""
    made = [item("p", "w3 w4"), item("q", "w5")]
    read = [Publication.of_packed(one.id, pack(one.triples)) for one in made]
    for some in (read[:1], read):
        matched = engine.match(some)
        assert [(match.publication, match.subscription) for match in matched] == [
            (match.publication, match.subscription) for match in engine.match(made[: len(some)])
        ]
    assert all("triples" not in vars(publication) for publication in read)


def test_a_query_of_many_conditions_is_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(segment, "normal_form", lambda where, most: made.append(1) or normal_form(where, most=most))
    engine = Engine(matcher="trie")
    conditions = " ".join(f"FILTER(STRLEN(?t) + {number} > {number})" for number in range(40))
    for id_ in ("a", "b"):
        engine.subscribe(f"SELECT ?t {{ ?s rss:title ?t {conditions} FILTER(?t != '{id_}') }}", id=id_)
    engine.settle()
    made.clear()
    assert len(engine.match([item("p", "w3")])) == 2
    assert len(made) == 2
