"""Merging: what another subscription contains goes below it, mergers say what their members share, few are in vain."""

from __future__ import annotations

import pytest

from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.normal_form.clauses import Clause
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.partition.cluster import Cluster
from triplewire.partition.containment import form_of
from triplewire.partition.mergers import common, merger_of
from triplewire.partition.merging import Merging
from triplewire.partition.placement import SERVER
from triplewire.partition.sampled import Sample
from triplewire.read import read

WORLD = World(EMPTY, {}, Settings())


def subscription(id_: str, where: str) -> Subscription:
    return parse(f"PREFIX : <urn:> ASK {{ {where} }}", "sparql", id=id_)


def clause(where: str) -> Clause:
    (only,) = form_of(subscription("clause", where), WORLD).clauses
    return only


def publication(name: str, triples: str) -> Publication:
    (only,) = read(f"@prefix : <urn:> . {triples}".encode())
    return Publication(f"urn:{name}", only.triples)


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (":a :p :b . :b :q :c", ":a :p :b . :x :q :y", "<urn:a> <urn:p> <urn:b>"),
        (":a :p :b . :c :q :d", ":a :p ?x . :c :q :d", "<urn:a> <urn:p> ?v0 . <urn:c> <urn:q> <urn:d>"),
        ("?s :p :b . ?s :q :c", ":a :p :b . :a :q :c", "?v0 <urn:p> <urn:b> . ?v0 <urn:q> <urn:c>"),
        ("?s :p :b . ?s :q :c", "?t :p :b . ?u :q :c", "?v0 <urn:p> <urn:b> . ?v1 <urn:q> <urn:c>"),
        (":a :p :b", ":c :p :d", ""),
    ],
)
def test_what_two_have_in_common(first: str, second: str, merged: str) -> None:
    both = merger_of("merger", common([clause(first), clause(second)]), Settings())
    assert (both.text if both else "") == (f"ASK WHERE {{ {merged}  }}" if merged else "")


def test_what_is_in_vain_is_counted_or_estimated() -> None:
    sample = Sample([publication(str(n), f":a :p :b{n % 2} . :s{n} :q :o{n} .") for n in range(99)])
    general = clause(":a :p ?x")
    assert sample.in_vain(general, []) == pytest.approx(99.5 / 100)
    assert sample.in_vain(general, [(1 << 99) - 1]) == pytest.approx(0.5 / 100), "each matches a member"
    assert sample.in_vain(clause(":a :p :b0"), [1]) == pytest.approx(49.5 / 100)
    one, two = sample.in_vain(clause(":new :q ?x"), []), sample.in_vain(clause(":new :q :other"), [])
    assert one == pytest.approx(0.005 * 0.995)
    assert two == pytest.approx(0.005 * one), "two rare nodes together are rarer"


def placed(made: Merging) -> set[str]:
    return {id_ for id_, where in made.placement.place.items() if where == SERVER}


def test_what_another_contains_goes_below_it_and_comes_back() -> None:
    given = [
        subscription("wide", ":a :p ?x"),
        subscription("narrow", ":a :p :b"),
        subscription("narrower", ":a :p :b, :c"),
    ]
    given += [subscription(f"other{n}", f"?s :q{n} ?o") for n in range(2)]
    sample = [publication("one", ":a :p :z .")]
    made = Merging(2, WORLD, sample=sample, percent=40)
    there = Cluster(made, given, WORLD)
    assert placed(made) == {"wide", "other0", "other1"}
    assert not made.placement.mergers
    asked = [publication("one", ":a :p :b ."), publication("two", ":a :p :b, :c .")]
    wanted = {("urn:one", "wide"), ("urn:one", "narrow")} | {("urn:two", n) for n in ("wide", "narrow", "narrower")}
    assert {(match.publication, match.subscription) for match in there.match(asked).matches} == wanted
    there.unsubscribe("wide")
    there.unsubscribe("narrower")
    assert {(match.publication, match.subscription) for match in there.match(asked).matches} == {
        ("urn:one", "narrow"),
        ("urn:two", "narrow"),
    }


def test_no_merger_that_many_would_match_in_vain() -> None:
    """Two pairs share a pattern. That of the first pair is in each publication of the sample, that of the other in
    none."""
    given = [subscription(f"seen{n}", f":a :p :b . :x{n} :q :y{n}") for n in range(2)]
    given += [subscription(f"rare{n}", f":c :p :d . :u{n} :q :v{n}") for n in range(2)]
    sample = [publication(str(n), ":a :p :b .") for n in range(200)]
    made = Merging(2, WORLD, sample=sample, percent=90)
    made.subscribe(given)
    assert placed(made) == {"seen0", "seen1"}
    (merger,) = made.placement.mergers
    assert set(made.members(merger)) == {"rare0", "rare1"}
    careless = Merging(2, WORLD, sample=sample, percent=90, most_in_vain=10)
    careless.subscribe(given)
    assert not placed(careless)
