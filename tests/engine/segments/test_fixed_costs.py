"""What a match call costs for one publication, whatever it has: counted, so that it does not creep back."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from engine.samples import EX, item
from triplewire import Engine
from triplewire.engine.segments import segment
from triplewire.ir.normal_form.clauses import normal_form
from triplewire.kernels.shared.compiled import IS_COMPILED
from triplewire.model.packed import pack
from triplewire.model.publication import Publication

CALLS, C_CALLS = 90, 90  # a few more than there are


def counted(engine: Engine, publication: Publication) -> tuple[int, int]:
    """Calls of functions in Python, and of functions in C, that matching a publication takes; kernels are neither."""
    calls = dict.fromkeys(("call", "c_call"), 0)

    def count(_: FrameType, event: str, __: object) -> None:
        if event in calls:
            calls[event] += 1

    for _ in range(3):  # the first ones make what stays
        engine.match([publication])
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        engine.match([publication])
    finally:
        sys.setprofile(before)
    return calls["call"], calls["c_call"]


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


def test_a_publication_without_checks(engine: Engine) -> None:
    publication = item("p", "w3 w4")
    assert len(engine.match([publication])) == 2
    calls, c_calls = counted(engine, publication)
    assert calls <= CALLS
    assert c_calls <= C_CALLS


def test_more_triples_take_no_more_calls(engine: Engine) -> None:
    one, many = item("p", "w3"), item("p", "w3 w4 w5 w6")
    more = Publication("p", (*many.triples, *(item(f"p{n}", f"w{n}").triples[0] for n in range(20))))
    assert abs(counted(engine, more)[0] - counted(engine, one)[0]) <= 2


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
