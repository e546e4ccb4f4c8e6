"""A taxonomy that changes under an engine: an engine that was changed gives the answers of one that is made anew."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from amounts import MATCHERS, usually
from engine.samples import EX, read_while_writing
from triplewire import Engine, Publication
from triplewire.config import Settings
from triplewire.errors import ArgumentError, TaxonomyError
from triplewire.ir.nodes import And, AnyOf, Filter, InstanceOf, Label, Not, Pattern, Relation, Variable
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.operator import Argument, Operator, Parameter, Verdict
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Triple, made_iri

CLASSES = [EX + name for name in ("Puffin", "Auk", "Bird", "Animal", "sea bird", "Gannet")]
THINGS = [EX + name for name in ("ada", "bob")]
NAMES = ["Auk", "auk", "sea bird", "ada", "Puffin"]
PROPERTIES = [EX + name for name in ("saw", "met")]
X, Y = Variable("x"), Variable("y")


def random_taxonomy(chance: random.Random, most: int = 6) -> Taxonomy:
    """Some statements; a class is below those that come later in the list only, so there is no cycle."""

    def some(keys: list[str], values: list[str]) -> list[tuple[str, str]]:
        return [(chance.choice(keys), chance.choice(values)) for _ in range(chance.randrange(most))]

    below = [tuple(sorted(pair, key=CLASSES.index)) for pair in some(CLASSES, CLASSES)]
    return Taxonomy.build(
        [(cls, above) for cls, above in below],
        some(THINGS, CLASSES),
        some([*CLASSES, *THINGS], NAMES),
        classes=chance.sample(CLASSES, chance.randrange(2)),
        superproperties=[(PROPERTIES[0], PROPERTIES[1])][: chance.randrange(2)],
        domains=some(PROPERTIES, CLASSES)[:2],
        ranges=some(PROPERTIES, CLASSES)[:2],
    )


def random_class(chance: random.Random) -> IRI | Label:
    name = chance.choice(CLASSES)
    label = chance.choice(NAMES)
    return chance.choice(
        [made_iri(name), made_iri(name), Label(label, ""), Label(label, EX + label.replace(" ", "%20"))]
    )


def random_tree(chance: random.Random) -> And:
    """A pattern, and conditions on its nodes: some that an index answers, some that are evaluated."""
    predicate = chance.choice([IRI(PROPERTIES[0]), IRI(PROPERTIES[1]), RDF_TYPE])

    def test() -> InstanceOf:
        return InstanceOf(chance.choice((X, Y)), chance.choice(list(Relation)), random_class(chance))

    parts = [Pattern(X, predicate, Y), Filter(test())]
    if chance.random() < 0.3:
        parts.append(Filter(AnyOf((test(), test()))))
    if chance.random() < 0.3:
        parts.append(Not(And((Pattern(Y, predicate, X), Filter(test())))))
    return And(tuple(parts))


def texts(chance: random.Random) -> Iterable[tuple[str, str]]:
    """Texts whose meaning depends on the taxonomy, in several languages."""
    for _ in range(4):
        cls, predicate = chance.choice(CLASSES).replace(" ", "%20"), chance.choice(PROPERTIES)
        yield f"SELECT ?x WHERE {{ ?x <{predicate}> ?y . ?y a <{cls}> }}", "sparql"
        yield f"SELECT ?x WHERE {{ ?x <{predicate}> ?y . ?y rdf:type/rdfs:subClassOf* <{cls}> }}", "sparql"
        yield (
            f"SELECT ?y WHERE (?x, <{predicate}>, ?y) SUCHTHAT (?y ISA {chance.choice(('<=', '=', '>='))} <{cls}>)",
            "gql",
        )
        yield f"SELECT ?y WHERE (?x, <{predicate}>, ?y) SUCHTHAT (?y ISA <= '{chance.choice(NAMES)}')", "gql"


def random_publication(chance: random.Random, name: str) -> Publication:
    subjects = [*map(made_iri, THINGS), *map(made_iri, CLASSES), IRI(EX + "other")]
    objects = [*subjects, *map(Literal, NAMES)]
    triples = [
        Triple(chance.choice(subjects), IRI(chance.choice(PROPERTIES)), chance.choice(objects))
        for _ in range(chance.randrange(1, 6))
    ]
    triples += [
        Triple(chance.choice(subjects), RDF_TYPE, made_iri(chance.choice(CLASSES))) for _ in range(chance.randrange(3))
    ]
    return Publication(name, tuple(dict.fromkeys(triples)))


def told(engine: Engine, publications: list[Publication]) -> list[object]:
    """All that an engine says of publications, together and one by one, and of its subscriptions."""
    results = [engine.match(publications), *map(engine.match, publications[:2])]
    matches = [
        sorted((m.publication, m.subscription, m.revision, sorted(map(str, m.bindings))) for m in result)
        for result in results
    ]
    return [matches, [(one.id, one.text, one.where, one.warnings) for one in engine.subscriptions]]


class Scene:
    """Subscriptions and publications, and engines of them."""

    def __init__(self, chance: random.Random, matcher: str, entailment: str) -> None:
        self.matcher, self.entailment, self.chance = matcher, entailment, chance
        trees = [random_tree(chance) for _ in range(12)]
        self.subscriptions: list[Subscription | tuple[str, str]] = [
            *(Subscription("", "sparql", "", ("x", "y"), tree) for tree in trees),
            *texts(chance),
        ]
        self.publications = [random_publication(chance, f"p{number}") for number in range(12)]

    def engine(self, taxonomy: Taxonomy, count: int | None = None) -> Engine:
        settings = Settings(merge_subscriptions=16)  # several segments
        engine = Engine(matcher=self.matcher, taxonomy=taxonomy, entailment=self.entailment, settings=settings)
        self.fill(engine, 0, count)
        return engine

    def fill(self, engine: Engine, start: int, end: int | None = None) -> None:
        for number, one in list(enumerate(self.subscriptions))[start:end]:
            text, language = (one, "") if isinstance(one, Subscription) else one
            engine.subscribe(text, language or "sparql", id=f"s{number:02}")

    def change(self, engine: Engine, way: str) -> Engine:
        """The engine after a random change; where it is a derived one, the first keeps its answers."""
        chance, before = self.chance, engine.taxonomy
        if way == "set":
            engine.taxonomy = random_taxonomy(chance)
        elif way == "derive":
            expected = told(engine, self.publications)
            derived = engine.with_taxonomy(random_taxonomy(chance))
            told(derived, self.publications)
            assert told(engine, self.publications) == expected
            assert engine.taxonomy is before
            return derived
        else:
            drop = chance.sample([*CLASSES, *THINGS], chance.randrange(2))
            small = random_taxonomy(chance, 3)
            changed = before.changed(add=small, remove=random_taxonomy(chance, 3), drop=drop)
            assert engine.change_taxonomy(add=changed, remove=before) == engine.taxonomy == changed
        return engine


@pytest.mark.parametrize("entailment", ["none", "rdfs"])
@pytest.mark.parametrize("matcher", [*MATCHERS, "interpreted"])
def test_an_engine_that_was_changed_equals_one_made_anew(
    matcher: str, entailment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIPLEWIRE_TIER", "interpreted" if matcher == "interpreted" else "compiled")
    matches, different = 0, 0
    for seed in range(usually(4, 60)):
        chance = random.Random(f"{entailment} {seed}")
        scene = Scene(chance, "trie" if matcher == "interpreted" else matcher, entailment)
        count = len(scene.subscriptions) - chance.randrange(5)
        engine = scene.engine(random_taxonomy(chance), count)
        for step in range(3):
            if chance.random() < 0.8:
                before = told(engine, scene.publications)  # so that something is known of the taxonomy before
            engine = scene.change(engine, chance.choice(("set", "derive", "delta", "delta")))
            if chance.random() < 0.3:
                engine.settle()
            if step == 1:
                scene.fill(engine, count)
            now = told(engine, scene.publications)
            assert now == told(scene.engine(engine.taxonomy, None if step else count), scene.publications), seed
            matches, different = matches + len(now[0]), different + (now != before)
    assert matches > 10
    assert different > 2


def engine_of_birds(**more: object) -> Engine:
    engine = Engine(taxonomy=Taxonomy.build([(EX + "Puffin", EX + "Bird")]), **more)  # type: ignore[arg-type]
    engine.subscribe(f"SELECT ?b WHERE (<{EX}x>, <{EX}saw>, ?b) SUCHTHAT (?b ISA <= <{EX}Bird>)", "gql", id="birds")
    return engine


SEEN = Publication("p", (Triple(IRI(EX + "x"), IRI(EX + "saw"), IRI(EX + "Gannet")),))
GANNET = Taxonomy.build([(EX + "Gannet", EX + "Bird")])


@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_cycle_is_refused_with_its_path_and_the_one_before_stays(matcher: str) -> None:
    engine = engine_of_birds(matcher=matcher)
    before = engine.taxonomy
    with pytest.raises(TaxonomyError) as caught:
        engine.change_taxonomy(add=Taxonomy.build([(EX + "Bird", EX + "Animal"), (EX + "Animal", EX + "Puffin")]))
    path = [f"{EX}{name}" for name in ("Bird", "Animal", "Puffin", "Bird")]
    assert caught.value.what == f"the classes form a cycle: {' -> '.join(path)}"
    assert caught.value.remedy
    assert engine.taxonomy is before
    engine.change_taxonomy(add=GANNET)
    assert len(engine.match(SEEN)) == 1
    assert engine.taxonomy == before.changed(add=GANNET)


def test_a_path_of_a_file_and_what_is_no_taxonomy(tmp_path: Path) -> None:
    engine, file = engine_of_birds(), tmp_path / "birds.tsv"
    file.write_text(f"{EX}Gannet\t{EX}Bird\n", encoding="utf-8")
    engine.taxonomy = str(file)
    assert len(engine.match(SEEN)) == 1
    for wrong in (5, b"x"):
        with pytest.raises(ArgumentError, match=r"Engine\.taxonomy"):
            engine.taxonomy = wrong  # type: ignore[assignment]
    for more in ({"add": [("a", "b")]}, {"remove": "x"}, {"drop": 5}, {"drop": [5]}):
        with pytest.raises(ArgumentError, match=r"Taxonomy\.changed"):
            engine.change_taxonomy(**more)  # type: ignore[arg-type]
    assert len(engine.match(SEEN)) == 1
    engine.taxonomy = None
    assert len(engine.match(SEEN)) == 0
    assert engine.taxonomy == Taxonomy()


@pytest.mark.parametrize("tier", ["interpreted", "compiled"])
def test_what_runs_keeps_the_taxonomy_with_which_it_began(
    tier: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRIPLEWIRE_TIER", tier)
    engine = engine_of_birds()
    for name in ("a", "b"):
        (tmp_path / f"{name}.ttl").write_text(f"<{EX}x> <{EX}saw> <{EX}Gannet> .", encoding="utf-8")
    files = engine.match_files(tmp_path / "a.ttl", tmp_path / "b.ttl")
    engine.change_taxonomy(add=GANNET)
    found = engine.match(SEEN)
    running = engine.match_files(tmp_path / "a.ttl")
    first = next(running)
    engine.change_taxonomy(drop=[EX + "Gannet"])
    assert [len(result) for result in (first, *running)] == [1]
    assert sum(map(len, files)) == 0, "it begins with its first result"
    (match,) = found
    assert len(match.bindings) == 1
    assert engine.explain(match).matched, "by the taxonomy of the match"
    assert not engine.explain("birds", SEEN).matched
    assert len(engine.match(SEEN)) == 0


def test_changes_beside_match_calls() -> None:
    """Each call sees a whole taxonomy: the gannet is a bird and an animal, or neither."""
    engine = engine_of_birds()
    engine.subscribe(f"SELECT ?b WHERE (?x, <{EX}saw>, ?b) SUCHTHAT (?b ISA <= <{EX}Animal>)", "gql", id="animals")
    both = Taxonomy.build([(EX + "Gannet", EX + "Bird"), (EX + "Gannet", EX + "Animal")])

    def write(number: int) -> None:
        for turn in range(40):
            if turn % 2:
                engine.change_taxonomy(remove=both)
            else:
                engine.change_taxonomy(add=both)
            engine.subscribe("SELECT ?s { ?s a rss:item }", id=f"more {number} {turn}")

    def look() -> None:
        found = [match.subscription for match in engine.match(SEEN)]
        assert found in ([], ["animals", "birds"])

    read_while_writing(write, look, 2)
    engine.change_taxonomy(add=both)
    engine.settle()
    assert [match.subscription for match in engine.match(SEEN)] == ["animals", "birds"]


def test_a_saved_engine_keeps_the_taxonomy_that_it_had_last(tmp_path: Path) -> None:
    engine = engine_of_birds()
    engine.match(SEEN)
    engine.change_taxonomy(add=GANNET)
    engine.save(tmp_path / "saved")
    loaded = Engine.load(tmp_path / "saved")
    assert loaded.taxonomy == engine.taxonomy
    assert len(loaded.match(SEEN)) == 1
    loaded.taxonomy = None
    assert len(loaded.match(SEEN)) == 0


@pytest.mark.parametrize("matcher", MATCHERS)
def test_warnings_follow_the_taxonomy(matcher: str) -> None:
    engine = engine_of_birds(matcher=matcher)
    told = engine.subscribe(f"SELECT ?b WHERE (?x, ?p, ?b) SUCHTHAT (?b ISA <= <{EX}Auk>)", "gql", id="auks")
    assert [("Auk" in warning) for warning in told.warnings] == [True]
    engine.change_taxonomy(add=Taxonomy.build((), classes=[EX + "Auk"]))
    assert [one.warnings for one in engine.subscriptions] == [(), ()]
    engine.change_taxonomy(drop=[EX + "Auk"])
    assert [bool(one.warnings) for one in engine.subscriptions] == [False, True]


class Counted:
    """An operator that asks the taxonomy: does it have so many classes?"""

    name, parameters = "classes", (Parameter("count"),)

    def __init__(self, taxonomy: Taxonomy | None = None) -> None:
        self.taxonomy = taxonomy or Taxonomy()

    def with_taxonomy(self, taxonomy: Taxonomy) -> Operator:
        return Counted(taxonomy)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        (count,) = arguments
        return len(self.taxonomy.classes) == int(getattr(count, "lexical", 0))


class CountedElsewhere(Counted):
    """The same in a process of its own, whose outcomes are kept."""

    isolated, version, cacheable = True, "1", True

    def with_taxonomy(self, taxonomy: Taxonomy) -> Operator:
        return CountedElsewhere(taxonomy)


@pytest.mark.parametrize("operator", [Counted(), CountedElsewhere()], ids=["here", "isolated"])
def test_operators_ask_the_taxonomy_of_their_call(operator: Counted, tmp_path: Path) -> None:
    engine = Engine(operators={"classes": operator}, operator_cache=tmp_path / "outcomes")
    for count in (0, 2, 3):
        engine.subscribe(f"classes({count})", "predicates", id=f"{count}")
    other = engine.with_taxonomy(GANNET)
    for known, expected in ((engine, "0"), (other, "2"), (engine, "0"), (other, "2")):
        assert [match.subscription for match in known.match(SEEN)] == [expected]
    other.change_taxonomy(add=Taxonomy.build([(EX + "Bird", EX + "Animal")]))
    assert [match.subscription for match in other.match(SEEN)] == ["3"]
