"""Bindings made of rows: each pair's own, in the order of their terms, shared where they are the same."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from triplewire.ir.evaluation.evaluate import Answer
from triplewire.model.match import Binding, SharedBinding, term_key
from triplewire.model.terms import BlankNode, Literal, Term, made_iri
from triplewire.verify import bindings as module
from triplewire.verify.bindings import objects, of_few, shared
from triplewire.verify.kernels import rows as kernels
from triplewire.verify.rows import Bindings
from verify.columns import terms_of

NAMES = "zyxwv"
Row = tuple[int, ...]


def terms(count: int) -> list[Term]:
    """Terms whose order is not that of their numbers."""
    kinds: list[Callable[[str], Term]] = [made_iri, Literal, BlankNode]
    return [kinds[number % 3](f"{number * 7919 % count:05}") for number in range(count)]


def found_of(lists: list[tuple[int, list[Row]]]) -> Bindings:
    """The bindings of pairs whose rows are these, with their width; each pair is a group of its own."""
    count = np.array([len(rows) for _, rows in lists], np.int64)
    width = np.array([width for width, _ in lists], np.int32)
    start = np.cumsum(count * width) - count * width
    flat = np.array([number for _, rows in lists for row in rows for number in row], np.int32)
    group = np.arange(len(lists), dtype=np.int32)
    return Bindings(flat, start, count, width, count < 0, group, {})


def expected(width: int, rows: list[Row], known: list[Term]) -> list[list[tuple[str, Term]]]:
    """The same in the order of their terms, unbound ones first."""
    if not width:
        return [[] for _ in rows]
    found = sorted(rows, key=lambda row: [("",) if one < 0 else term_key(known[one]) for one in row])
    return [[(NAMES[k], known[one]) for k, one in enumerate(row) if one >= 0] for row in found]


def random_lists(seed: int, known: int) -> list[tuple[int, list[Row]]]:
    rng = random.Random(seed)
    out: list[tuple[int, list[Row]]] = [(0, [()])]
    for _ in range(60):
        width = rng.randrange(1, 5)
        lowest, some = -(seed % 2), rng.choice((2, 5, known))
        count = rng.choice((0, 1, 2, 7, kernels.FEW, kernels.FEW + 1, 200))
        rows = {tuple(rng.randrange(lowest, some) for _ in range(width)) for _ in range(count)}
        out.append((width, rng.sample(sorted(rows), len(rows))))
    rng.shuffle(out)
    return out


def made(portions: Iterator[list[tuple[Binding, ...]]]) -> list[list[list[tuple[str, Term]]]]:
    return [[list(row.items()) for row in rows] for portion in portions for rows in portion]


@pytest.mark.parametrize(("seed", "count"), [(0, 9), (1, 9), (2, 300), (3, 300), (4, 5000), (5, 5000)])
def test_bindings_are_in_the_order_of_their_terms(monkeypatch: pytest.MonkeyPatch, seed: int, count: int) -> None:
    known, lists = terms(count), random_lists(seed, count)
    found, selects = found_of(lists), [NAMES[:width] for width, _ in lists]
    wanted = [expected(*one, known) for one in lists]
    every = np.arange(len(lists))
    assert made(objects(found, every, selects, terms_of(known))) == wanted
    assert made(objects(found, every[::-1], selects[::-1], terms_of(known))) == wanted[::-1]
    assert made(iter([of_few([rows for _, rows in lists], selects, terms_of(known))])) == wanted
    monkeypatch.setattr(module, "_TERMS", 50)
    monkeypatch.setattr(module, "_ROWS", 3)
    assert made(objects(found, every, selects, terms_of(known))) == wanted


def test_answers_take_the_place_of_rows() -> None:
    known = terms(9)
    lists: list[tuple[int, list[Row]]] = [(1, [(3,)]), (2, [(1, 2), (0, 3)]), (0, []), (1, [(5,), (4,)])]
    found = found_of(lists)
    answers = {1: Answer((SharedBinding(q=known[0]),), True), 2: Answer((SharedBinding(),), False)}
    found.answers.update(answers)
    selects = [NAMES[:width] for width, _ in lists]
    for order in (np.arange(4), np.arange(4)[::-1]):
        some = [
            rows
            for portion in objects(found, order, [selects[at] for at in order], terms_of(known))
            for rows in portion
        ]
        for at, rows in zip(order.tolist(), some, strict=True):
            if at in answers:
                assert rows is answers[at].bindings
            else:
                assert [list(row.items()) for row in rows] == expected(*lists[at], known)


def test_a_row_that_is_there_twice_stays() -> None:
    known = terms(9)
    lists: list[tuple[int, list[Row]]] = [(2, [(1, 2), (0, 3), (1, 2)]), (1, [(4,), (4,)])]
    rows = made(objects(found_of(lists), np.arange(2), ["zy", "z"], terms_of(known)))
    assert rows == [expected(*one, known) for one in lists]
    assert [len(some) for some in rows] == [3, 2]


@pytest.mark.parametrize("is_few", [False, True], ids=["many", "few"])
@pytest.mark.parametrize("most", [1, 4, 1000])
def test_the_same_bindings_are_one_object(monkeypatch: pytest.MonkeyPatch, most: int, is_few: bool) -> None:
    monkeypatch.setattr(module, "_ROWS", most)
    rng, known = random.Random(most), terms(30)
    rows = [(2, [(one, other) for other in range(one % 4 + 1)]) for one in range(12)]
    lists = [rows[rng.randrange(len(rows))] for _ in range(200)]
    selection = np.array([rng.randrange(2) for _ in lists], np.int32)
    if is_few:
        found = of_few([rows for _, rows in lists], [["ab", "cd"][place] for place in selection], terms_of(known))
    else:
        found = list(shared(found_of(lists), selection, ["ab", "cd"], terms_of(known)))
    first: dict[tuple[int, int], object] = {}
    for pair, (one, select) in enumerate(zip(lists, selection.tolist(), strict=True)):
        names = ["ab", "cd"][select]
        wanted = [dict(zip(names, (term for _, term in row), strict=True)) for row in expected(*one, known)]
        assert list(found[pair]) == wanted
        assert all(type(row) is SharedBinding and list(row) == list(names) for row in found[pair])
        assert first.setdefault((one[1][0][0], select), found[pair]) is found[pair]
    assert len({id(some) for some in first.values()}) == len(first) > 12


def test_bindings_are_made_while_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 2)
    portions: list[int] = []
    make = module._made

    def counted(*given: object) -> object:
        portions.append(len(portions))
        return make(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_made", counted)
    lists: list[tuple[int, list[Row]]] = [(1, [(number,)]) for number in range(20)]
    found = shared(found_of(lists), np.zeros(20, np.int32), ["a"], terms_of(terms(20)))
    assert portions == []
    next(found)
    assert len(portions) == 1
    assert len(list(found)) == 19
    assert len(portions) >= 10


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_collector_is_left_as_it_was(is_enabled: bool) -> None:
    lists: list[tuple[int, list[Row]]] = [(1, [(number,)]) for number in range(20)]
    try:
        if not is_enabled:
            gc.disable()
        for _ in objects(found_of(lists), np.arange(20), ["a"] * 20, terms_of(terms(20))):
            assert gc.isenabled() is is_enabled
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()
