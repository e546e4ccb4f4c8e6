"""Merging: what another subscription contains goes below it, mergers say what their members share, few are in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cluster import Cluster
from bench.workloads import corpus
from bench.workloads import graphs as overlap
from bench.workloads.graphs import GraphWorkload
from triplewire.config import Settings
from triplewire.errors import raise_refusal
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.normal_form import Clause
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY
from triplewire.languages import parse
from triplewire.languages.sources.files import read_rows
from triplewire.model.publication import Publication
from triplewire.partition.containment import form_of
from triplewire.partition.merging import MergingPartitioner, common, merger_of
from triplewire.partition.placement import SERVER
from triplewire.partition.sample import Sample
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
        (":a :p :b . :c :q :d", ":a :q :x . :y :r :d", "<urn:a> ?v0 ?v1 . ?v2 ?v3 <urn:d>"),
        (":a :p :b . :a :q :c", ":a :r ?x . :a :s ?y", "<urn:a> ?v0 ?v1"),
    ],
)
def test_what_two_have_in_common(first: str, second: str, merged: str) -> None:
    both = merger_of("merger", common([clause(first), clause(second)]), Settings())
    assert (both.text if both else "") == (f"ASK WHERE {{ {merged}  }}" if merged else "")


def test_what_is_in_vain_is_counted_or_estimated() -> None:
    sample = Sample([publication(str(n), f":a :p :b{n % 2} . :s{n} :q :o{n} .") for n in range(99)])
    unseen = 198 / 201  # of 201 nodes by their places, 198 were seen once
    general = clause(":a :p ?x")
    assert sample.in_vain(general, []) == 1
    assert sample.in_vain(general, [(1 << 99) - 1]) == pytest.approx(unseen**3 / 100), "each matches a member"
    assert sample.in_vain(clause(":a :p :b0"), [1]) == pytest.approx(49 / 99)
    one, two = sample.in_vain(clause(":new :q ?x"), []), sample.in_vain(clause(":new :q :other"), [])
    assert one == pytest.approx(unseen / 100 * ((99 + unseen) / 100) ** 2)
    assert two == pytest.approx(unseen / 100 * one), "two rare nodes together are rarer"


def test_where_no_node_is_seen_once_none_is_expected_to_be_new() -> None:
    sample = Sample([publication(str(n), f":a{n % 3} :p :b{n % 2} .") for n in range(60)])
    assert sample.in_vain(clause(":new :p ?x"), []) == 0
    of_first = sum(1 << n for n in range(0, 60, 3))
    assert sample.in_vain(clause(":a0 :p ?x"), [of_first]) == 0
    assert sample.in_vain(clause(":a0 :p ?x"), [of_first & ~1]) == pytest.approx(1 / 60), "one matches no member"
    assert Sample([]).in_vain(clause(":new :p :other"), []) == pytest.approx(0.5**4)


def placed(made: MergingPartitioner) -> set[str]:
    return {id_ for id_, where in made.placement.place.items() if where == SERVER}


def test_what_another_contains_goes_below_it_and_comes_back() -> None:
    given = [
        subscription("wide", ":a :p ?x"),
        subscription("narrow", ":a :p :b"),
        subscription("narrower", ":a :p :b, :c"),
    ]
    given += [subscription(f"other{n}", f"?s :q{n} ?o") for n in range(2)]
    sample = [publication("one", ":a :p :z .")]
    made = MergingPartitioner(2, WORLD, sample=sample, percent=40)
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
    made = MergingPartitioner(2, WORLD, sample=sample, percent=90)
    made.subscribe(given)
    assert placed(made) == {"seen0", "seen1"}
    (merger,) = made.placement.mergers
    assert set(made.members(merger)) == {"rare0", "rare1"}
    careless = MergingPartitioner(2, WORLD, sample=sample, percent=90, most_in_vain=10)
    careless.subscribe(given)
    assert not placed(careless)


def test_the_index_shrinks_as_more_is_to_be_merged(tmp_path: Path) -> None:
    """Figure 9(g) in small: 12 stories, each with 25 subscriptions, half of which others contain."""
    path, stories, count = tmp_path / "s.jsonl", tmp_path / "p.nq", 300
    documents = overlap.write_overlap(GraphWorkload(30, 90, count, 25), path, count, 50, 1)
    stories.write_bytes(corpus.to_nquads(documents))
    publications = overlap.editions(read(stories), 240, 90, 1)
    given = [parsed.subscription for parsed in read_rows([path], on_refusal=raise_refusal)]
    sizes = []
    for percent in (50, 70, 80, 99):
        made = MergingPartitioner(3, WORLD, sample=publications[:120], percent=percent)
        there = Cluster(made, given, WORLD, matcher="reference")
        sizes.append(there.placement.server_size)
        found = there.match(publications[120:150])
        assert len(found.matches) == 30 * 25
    assert sizes[:3] == [150, 90, 60]
    assert 3 < sizes[3] < 60
    assert len(placed(made)) < 15, "few are like no other"
