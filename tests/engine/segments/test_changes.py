"""Subscriptions come and go, segments are merged, engines saved and loaded: the answers stay those of a plain table."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from amounts import MATCHERS, usually
from engine.generated import WORLD, groups, publications
from solutions import wrong_rows
from triplewire import Engine, Publication, Settings, Subscription, TriplewireError
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.nodes import And

SMALL = Settings(max_bindings=50, merge_subscriptions=4)
HERE = World(WORLD.taxonomy, {}, SMALL)
IDS = [f"{letter}{number}" for letter in "séa" for number in range(6)]
TEXTS = [
    ("sparql", "SELECT ?x ?y { ?x <urn:p> ?y }"),
    ("sparql", "ASK { ?x <urn:q> <urn:a> }"),
    ("sparql", "SELECT * { ?x ?p ?y FILTER ftcontains(?y, 'two') }"),
    ("sparql", "SELECT ?x { ?x <urn:p> ?y FILTER(?y > 1) }"),
    ("sparql", "SELECT ?x { { ?x <urn:p> ?y } UNION { ?x <urn:q> ?y } }"),
    ("sparql", "SELECT ?x { ?x <urn:p> ?y FILTER NOT EXISTS { ?y <urn:q> ?z } }"),
    ("sparql", "CONSTRUCT { ?y <urn:of> ?x } WHERE { ?x <urn:p> ?y }"),
    ("gql", "SELECT ?x WHERE ((?x, *, ?y) SUCHTHAT (?y ISA <= <urn:D>))"),
    ("mdv", "search <urn:C> c register c"),
    ("mdv", "search s1 c register c where c.<urn:p> = <urn:b>"),
]


class Changes(RuleBasedStateMachine):
    """An engine, and the subscriptions that it should have."""

    matcher = "reference"

    @initialize()
    def begin(self) -> None:
        self.engine = Engine(matcher=self.matcher, taxonomy=WORLD.taxonomy, operators={}, settings=SMALL)
        self.table: dict[str, Subscription] = {}
        self.by_hand: set[str] = set()
        self.folder = Path(tempfile.mkdtemp())

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @rule(id_=st.sampled_from(IDS), text=st.sampled_from(TEXTS))
    def subscribe(self, id_: str, text: tuple[str, str]) -> None:
        if id_ not in self.table:
            self.table[id_] = self.engine.subscribe(text[1], text[0], id=id_)
            if "search s1" in text[1]:
                self.by_hand.add(id_)  # its rule may be gone when it is saved

    @rule(id_=st.sampled_from(IDS), tree=groups)
    def subscribe_by_hand(self, id_: str, tree: And) -> None:
        if id_ not in self.table:
            try:
                self.table[id_] = self.engine.subscribe(Subscription(id_, "sparql", "", ("x", "y"), tree))
            except TriplewireError:  # nothing positive is asked for
                return
            self.by_hand.add(id_)

    @rule(id_=st.sampled_from(IDS))
    def unsubscribe(self, id_: str) -> None:
        assert self.engine.unsubscribe(id_) == (self.table.pop(id_, None) is not None)
        self.by_hand.discard(id_)

    @rule(some=st.lists(publications, min_size=1, max_size=3))
    def match(self, some: list[Publication]) -> None:
        named = [Publication(str(number), one.triples) for number, one in enumerate(some)]
        expected = {
            (one.id, id_): answer
            for one in named
            for id_, subscription in self.table.items()
            if (answer := evaluate(subscription, one, HERE)).bindings
        }
        result, by_id = self.engine.match(named), {one.id: one for one in named}
        assert [(match.publication, match.subscription) for match in result] == sorted(expected)
        for match in result:
            answer = expected[match.publication, match.subscription]
            assert match.truncated == answer.truncated
            assert (match.construct is None) == (self.table[match.subscription].construct is None)
            rows = (binding.items() for binding in match.bindings)
            assert wrong_rows(rows, answer, self.table[match.subscription], by_id[match.publication], HERE) == ""

    @rule()
    def settle(self) -> None:
        self.engine.settle()

    @rule()
    def save_and_load(self) -> None:
        if not self.by_hand:
            self.engine.save(self.folder)
            self.engine = Engine.load(self.folder, operators={})

    @invariant()
    def same_table(self) -> None:
        if not hasattr(self, "engine"):
            return
        assert len(self.engine.subscriptions) == len(self.table)
        assert list(self.engine.subscriptions) == list(self.table.values())
        for id_ in IDS[::5]:
            try:
                found = self.engine.explain(id_, Publication("p", ())).subscription
            except TriplewireError:
                found = ""
            assert (found == id_) == (id_ in self.table)


@pytest.mark.parametrize("matcher", MATCHERS)
def test_changes(matcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplewire.engine.segments.snapshot.DELTA", 2)
    monkeypatch.setattr("triplewire.engine.segments.snapshot.LEAST_CALLS", 2)
    monkeypatch.setattr("triplewire.engine.current_snapshot.LOOK", 1)
    machine: Any = type("Changes", (Changes,), {"matcher": matcher})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=usually(12, 30), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
