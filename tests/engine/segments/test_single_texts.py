"""Texts that are registered one at a time: of a known template none is parsed, and nothing else is different."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import tomllib
from pathlib import Path
from typing import Any

import pytest

from engine.samples import EX, item
from triplewire import Engine, Subscription, Taxonomy, TriplewireError
from triplewire.engine.compiler import Compiler
from triplewire.engine.segments.single_texts import SingleTexts

CASES = Path(__file__).parents[2] / "cases" / "engine" / "single_texts.toml"
SERIES: list[dict[str, Any]] = tomllib.loads(CASES.read_text("utf-8"))["series"]
TITLE = 'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "{}") }}'


def _engine(**options: Any) -> Engine:
    engine = Engine(**options)
    engine.settle()
    if not engine._snapshot.columnar:
        pytest.skip("kernels are not used")
    return engine


def _outcome(engine: Engine, text: str, language: str, **more: Any) -> tuple[object, ...]:
    """All that is told of a text."""
    try:
        made = engine.subscribe(text, language, **more)
    except TriplewireError as error:
        return error.what, error.remedy, error.source
    return made, made.warnings, made.revision, made.where, repr(made)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that engines have parsed in full, but for templates."""
    texts, compiled = list[str](), Compiler.compiled
    monkeypatch.setattr(
        Compiler, "compiled", lambda self, row, *a, **b: texts.append(row["query"]) or compiled(self, row, *a, **b)
    )
    return texts


@pytest.mark.parametrize("series", SERIES, ids=lambda series: series["what"])
@pytest.mark.parametrize("entailment", ["none", "rdfs"])
def test_as_parsed(series: dict[str, Any], entailment: str, parsed: list[str], tmp_path: Path) -> None:
    engine, reference = _engine(entailment=entailment), Engine(matcher="reference", entailment=entailment)
    texts, language = [series["form"].replace("{}", constant) for constant in series["constants"]], series["language"]
    told = [_outcome(engine, text, language) for text in texts]
    assert len(parsed) == series["parsed"]
    assert told == [_outcome(reference, text, language) for text in texts]
    assert engine.subscriptions == reference.subscriptions
    publications = [item("p", "red green two words beacon"), item("q", "skerry light")]
    assert list(engine.match(publications)) == list(reference.match(publications))
    engine.save(tmp_path / "saved")
    assert Engine.load(tmp_path / "saved").subscriptions == reference.subscriptions


@pytest.mark.parametrize("count", [3, 30, 300])
def test_many_and_few_are_matched_alike(count: int) -> None:
    """With a publication after each, after all, and in a batch."""
    engine, patient, reference = _engine(), _engine(), Engine(matcher="reference")
    forms = [TITLE, "SELECT ?s {{ ?s <" + EX + "year> ?y FILTER(?y > {}) }}", "ASK {{ ?s a ?c ; rss:title '{}' }}"]
    publications = [item("p", "7 12", 5), item("q", "8", 100)]
    for number in range(count):
        for one in (engine, patient, reference):
            one.subscribe(forms[number % 3].format(number), id=f"id {number}")
        assert bool(len(engine.match(publications[0]))) == bool(len(reference.match(publications[0])))
    assert list(engine.match(publications)) == list(patient.match(publications)) == list(reference.match(publications))


def test_what_a_template_does_not_know_is_parsed(parsed: list[str]) -> None:
    """A rule that is there, a prefix, an id that is taken, and a text with half of a surrogate pair."""
    engine, rule = _engine(), f"search {{}} t register t where t.<{EX}year> > {{}}"
    for year in range(3):
        assert not engine.subscribe(rule.format("T", year), "mdv", prefixes={"": EX}).rules
    assert len(parsed) == 1
    engine.subscribe(rule.format(f"<{EX}T>", 3), "mdv", id="T")
    assert engine.subscribe(rule.format("T", 4), "mdv", prefixes={"": EX}).rules
    assert len(parsed) == 3
    for prefix in (EX, EX, EX, "urn:other:"):
        made = engine.subscribe("SELECT * { ?s e:p <urn:x> }", prefixes={"e": prefix})
        assert prefix in repr(made.where)
    assert len(parsed) == 3 + 2
    for number in range(4):
        with pytest.raises(TriplewireError, match="taken"):
            engine.subscribe(TITLE.format(number), id="T")
    assert engine.subscribe(TITLE.format("new"), id="T", replace=True).select == ("t",)
    for _ in range(3):
        with pytest.raises(TriplewireError):
            engine.subscribe(TITLE.format("\ud800"))


def test_ids_are_given_in_order() -> None:
    engine = _engine()
    assert [engine.subscribe(TITLE.format(number)).id for number in range(4)] == ["s1", "s2", "s3", "s4"]


def test_another_taxonomy_warns_of_the_same_texts() -> None:
    engine = _engine(taxonomy=Taxonomy.build([(EX + "A", EX + "B")]))
    text = f"SELECT ?a WHERE ((?a, *, ?c) SUCHTHAT (?c ISA <= <{EX}{{}}>))"
    for name in "ABAB":
        assert not engine.subscribe(text.format(name), "gql").warnings
    engine.taxonomy = Taxonomy.build([(EX + "A", EX + "C")])
    assert [bool(one.warnings) for one in engine.subscriptions] == [False, True, False, True]
    assert [bool(engine.subscribe(text.format(name), "gql").warnings) for name in "ABAB"] == [False, True] * 2


def test_forms_are_forgotten(monkeypatch: pytest.MonkeyPatch, parsed: list[str]) -> None:
    monkeypatch.setattr("triplewire.engine.segments.single_texts.MOST_FORMS", 2)
    engine = _engine()
    for number in range(20):
        engine.subscribe(f"SELECT * {{ ?s <urn:p> ?v{number // 4} }}")
    assert len(parsed) == 5
    engine.subscribe("SELECT * { ?s <urn:p> ?v0 }")
    assert len(parsed) == 6


def test_a_deferred_subscription_is_one_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, made = _engine(), list[int]()
    for word in ("a", "b"):
        engine.subscribe(TITLE.format(word))
    asked = SingleTexts.subscription
    monkeypatch.setattr(SingleTexts, "subscription", lambda *of: made.append(1) or asked(*of))
    subscription = engine.subscribe(TITLE.format("c"), id="c")
    assert made == [1]
    assert "where" not in vars(subscription)
    fields = {field.name: getattr(subscription, field.name) for field in dataclasses.fields(subscription)}
    plain = Subscription(**fields)
    for same in (copy.copy(subscription), pickle.loads(pickle.dumps(subscription)), subscription.but(id="c")):
        assert same == plain == subscription
        assert hash(same) == hash(plain)
    assert dataclasses.replace(subscription, id="d") == plain.but(id="d") != plain
    assert not hasattr(subscription, "other")
    assert Engine().subscribe(subscription) == plain
