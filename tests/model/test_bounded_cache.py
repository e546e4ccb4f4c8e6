"""The cache that drops by chance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from triplewire.bounded_cache import BoundedCache, cached_if_short
from triplewire.ir.entailment import Properties
from triplewire.ir.taxonomy import Taxonomy


def test_entries_weigh_no_more_than_allowed() -> None:
    kept: BoundedCache[int, str] = BoundedCache()
    assert not kept.put(1, "one", 3, 10)
    assert not kept.put(1, "another one", 5, 10)
    assert (kept.weight, len(kept), kept.get(1), kept.get(2)) == (5, 1, "another one", None)
    assert kept.put(2, "two", 6, 10)
    assert (kept.weight, len(kept)) in ((5, 1), (6, 1))
    assert kept.put(3, "too much", 20, 10)
    assert len(kept) == 1, "a single one may be too large"


def test_what_comes_in_turn_is_there_in_part() -> None:
    kept: BoundedCache[int, int] = BoundedCache()
    for turn in range(6):
        hits = 0
        for key in range(1_100):
            if kept.get(key) is None:
                kept.put(key, key, 1, 1_000)
            else:
                hits += 1
        assert turn == 0 or hits > 700
        assert kept.weight == len(kept) == 1_000


def test_threads_share_it() -> None:
    kept: BoundedCache[int, int] = BoundedCache()

    def work(first: int) -> bool:
        for key in range(first, first + 3_000):
            kept.put(key % 500, key % 500, key % 500 % 7, 600)
        return all(kept.get(key) in (None, key) for key in range(500))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))
    assert kept.weight <= 600
    assert kept.weight == sum(key % 7 for key in range(500) if kept.get(key) is not None)


def test_values_of_long_keys_are_made_each_time() -> None:
    made: list[str] = []

    @cached_if_short(2, 3)
    def shout(text: str, mark: str = "!") -> str:
        made.append(text)
        return text.upper() + mark

    assert [shout("abc"), shout("abc"), shout("abcd"), shout("abcd", "?")] == ["ABC!", "ABC!", "ABCD!", "ABCD?"]
    assert made == ["abc", "abcd", "abcd"]


def test_names_of_publications_are_not_remembered() -> None:
    """There is no end to them."""
    taxonomy, properties = (
        Taxonomy(superclasses={"urn:a": frozenset(["urn:b"])}),
        Properties(above={"urn:p": frozenset(["urn:q"])}),
    )
    assert taxonomy.at_or_above("urn:a") == {"urn:a", "urn:b"}
    assert properties._at_or_above("urn:p") == ("urn:p", "urn:q")
    before = len(taxonomy._closure), len(properties._closure)
    assert taxonomy.at_or_above("urn:new") == {"urn:new"}
    assert properties._at_or_above("urn:new") == ("urn:new",)
    assert (len(taxonomy._closure), len(properties._closure)) == before
