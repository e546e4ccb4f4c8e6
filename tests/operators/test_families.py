"""The operators on optional libraries, by cases (`tests/cases/operators/families.toml`), and what is not in a case:
absent libraries, files of places, shapes and axioms, other processes, bounds."""

from __future__ import annotations

import base64
import importlib.util
import json
import pickle
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from operators.pictures import drawn
from shared_data import ROOT
from triplewire.errors import LanguageError
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.languages import parse
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.operator import Argument, Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Triple
from triplewire.operators import built_in_operators, with_taxonomy
from triplewire.operators.families import library
from triplewire.operators.families.graphs import conforms, entails
from triplewire.operators.families.spatial import in_place
from triplewire.operators.families.texts import MENTIONS
from triplewire.read import read_document
from triplewire.read.taxonomy import load_taxonomy

CASES = tomllib.loads((ROOT / "tests/cases/operators/families.toml").read_text(encoding="utf-8"))["case"]
MORE = {
    "": "http://example.org/",
    "gsp": "http://www.opengis.net/ont/geosparql#",
    "georss": "http://www.georss.org/georss/",
}
PREFIXES = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in {**MORE, **PREDECLARED}.items())
CALLS = [
    pytest.param(case, call, wanted, id=f"{case['name']}: {call[:60]}")
    for case in CASES
    for call, wanted in case["calls"].items()
]
FAMILIES = [
    operator for name, operator in built_in_operators().items() if isinstance(operator, library.LibraryOperator)
]


def needs(*modules: str) -> None:
    """Pass over a test whose libraries are not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")


@cache
def _picture(text: str) -> str:
    return drawn(text)


def filled(text: str) -> str:
    """The text with pictures for what stands in braces."""
    return re.sub(r"\{((?:wave|slope|hash of|position|broken|bomb)[^}]*)\}", lambda match: _picture(match[1]), text)


@pytest.mark.parametrize(("case", "call", "wanted"), CALLS)
def test_family(case: Mapping[str, Any], call: str, wanted: Any, tmp_path: Path) -> None:
    """The whole way: a predicate subscription over a publication."""
    needs(*case["needs"])
    classes = EMPTY
    if "taxonomy" in case:
        (tmp_path / "taxonomy.ttl").write_text(PREFIXES + case["taxonomy"], encoding="utf-8")
        classes = load_taxonomy(tmp_path / "taxonomy.ttl")
    operators = with_taxonomy(built_in_operators(), classes)
    text = "PREFIX : <http://example.org/>\n" + filled(call)
    if isinstance(wanted, dict) and "refused" in wanted:
        with pytest.raises(LanguageError, match=re.escape(wanted["refused"])):
            parse(text, "predicates", operators=operators)
        return
    subscription = parse(text, "predicates", operators=operators)
    (publication,) = read_document((PREFIXES + filled(case["publication"])).encode(), "a.ttl")
    answer = evaluate(subscription, publication, World(classes, operators))
    if isinstance(wanted, dict):
        (failure,) = answer.failures
        assert wanted["fails"] in str(failure)
        return
    assert not answer.failures
    if isinstance(wanted, bool):
        assert bool(answer.bindings) == wanted
    else:
        rows = [",".join(getattr(t, "lexical", None) or t.value for t in b.values()) for b in answer.bindings]
        assert sorted(rows) == sorted(wanted)


@pytest.mark.parametrize("operator", FAMILIES, ids=lambda operator: operator.name)
def test_an_absent_library_is_named_when_a_call_is_registered(
    operator: library.LibraryOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "find_spec", lambda module: None)
    arguments = ", ".join("?a" if n else "1" for n in range(len(operator.parameters)))
    with pytest.raises(
        LanguageError, match=re.escape(f"is not installed; in a copy of the sources: pip install '.[{operator.extra}]'")
    ):
        parse(f"{operator.name}({arguments})", "predicates", operators=built_in_operators())
    with pytest.raises(ValueError, match="is not installed"):
        operator.evaluate(Publication("p", ()), (None,) * len(operator.parameters))


def test_the_extras_are_in_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = " ".join(project["dependencies"]).lower()
    for operator in FAMILIES:
        extra = " ".join(project["optional-dependencies"][operator.extra]).lower()
        for distribution, _ in operator.libraries:
            if distribution != "owlrl" or operator.extra == "reasoner":  # pySHACL brings it along
                assert distribution.lower() in extra
            assert distribution.lower() not in base


@pytest.mark.parametrize("operator", FAMILIES, ids=lambda operator: operator.name)
def test_an_operator_can_travel_to_a_worker(operator: library.LibraryOperator) -> None:
    classes = Taxonomy.build([("http://e/a", "http://e/b")])
    known = with_taxonomy({operator.name: operator}, classes)[operator.name]
    copy = pickle.loads(pickle.dumps(known))
    assert (copy.name, copy.version, copy.isolated) == (operator.name, operator.version, operator.isolated)
    assert getattr(copy, "taxonomy", classes) == classes


def test_classes_are_kept_once_whatever_their_language() -> None:
    mentions = MENTIONS.with_taxonomy(Taxonomy.build([("urn:bird", "urn:animal")], names=[("urn:bird", "Bird")]))
    for number in range(9):
        ask(mentions, Publication("p", ()), Literal("Bird", language=f"en-x-{number}"), None)
    assert len(mentions._below) == 1


# --- files -----------------------------------------------------------------------------------------------------------


def ask(operator: Operator, publication: Publication, *arguments: Argument) -> Any:
    """What the operator says of constants when they are registered, and then of the publication."""
    tuple(operator.check_constants(arguments))  # type: ignore[attr-defined]  # those here have it
    return operator.evaluate(publication, arguments)


def at(latitude: float, longitude: float) -> Publication:
    """A publication of one place."""
    geo = PREDECLARED["geo"]
    values = {"lat": latitude, "long": longitude}
    return Publication("p", tuple(Triple(IRI("urn:a"), IRI(geo + n), Literal(str(v))) for n, v in values.items()))


def test_named_places(tmp_path: Path) -> None:
    needs("shapely", "geographiclib")
    file = tmp_path / "places.geojson"
    file.write_text(
        """{"type": "FeatureCollection", "features": [{"type": "Feature", "id": "b", "properties": {"name": "Bronx"},
        "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}}]}""",
        encoding="utf-8",
    )
    operator = in_place(file, name="locIn")
    assert ask(operator, at(1, 1), Literal("Bronx"))
    assert ask(operator, at(1, 1), Literal("b"))
    assert not ask(operator, at(3, 1), Literal("Bronx"))
    with pytest.raises(ValueError, match=r"place is 'Brox', which .* does not have; did you mean 'Bronx'"):
        ask(operator, at(1, 1), Literal("Brox"))
    for text in ("", "{}", '{"features": [{}]}', '{"features": 5}', "[" * 100_000):
        other = tmp_path / f"{len(text)}.geojson"
        other.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="no GeoJSON collection of features"):
            ask(in_place(other), at(1, 1), Literal("Bronx"))


def test_shapes_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("pyshacl", "rdflib")
    (tmp_path / "located.ttl").write_text(
        "@prefix sh: <http://www.w3.org/ns/shacl#> . [] a sh:NodeShape ; sh:targetNode <urn:a> ; sh:property "
        f"[ sh:path <{PREDECLARED['geo']}lat> ; sh:maxCount 1 ; sh:minCount 1 ] .",
        encoding="utf-8",
    )
    assert ask(conforms(tmp_path), at(1, 1), Literal("located.ttl"))
    assert not ask(conforms(tmp_path), Publication("p", ()), Literal("located.ttl"))
    with pytest.raises(ValueError, match=r"shape 'other\.ttl' cannot be read: no such file"):
        ask(conforms(tmp_path), at(1, 1), Literal("other.ttl"))
    monkeypatch.setenv("TRIPLEWIRE_SHAPES", str(tmp_path))
    assert ask(built_in_operators()["conforms"], at(1, 1), Literal("located.ttl"))


def test_axioms_of_a_file(tmp_path: Path) -> None:
    needs("owlrl", "rdflib")
    file = tmp_path / "axioms.ttl"
    file.write_text("<urn:above> <http://www.w3.org/2002/07/owl#inverseOf> <urn:below> .", encoding="utf-8")
    publication = Publication("p", [(IRI("urn:a"), IRI("urn:above"), IRI("urn:b"))])
    triple = IRI("urn:b"), IRI("urn:below"), IRI("urn:a")
    assert ask(entails(file), publication, *triple)
    assert not ask(entails(), publication, *triple)
    for name, text in (("a.txt", ""), ("b.ttl", "<"), ("c.xml", "<a>"), ("none.ttl", None)):
        if text is not None:
            (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=f"the axioms .*{name} "):
            ask(entails(tmp_path / name), publication, *triple)


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_the_reasoner_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of owl:sameAs has a number of conclusions that grows with the square, and the time with more."""
    needs("owlrl", "rdflib")
    same = IRI(PREDECLARED["owl"] + "sameAs")
    chain = Publication("p", [(IRI(f"urn:{n}"), same, IRI(f"urn:{n + 1}")) for n in range(30)])
    monkeypatch.setattr("triplewire.operators.families.graphs.MOST_ENTAILED", 300)
    with pytest.raises(ValueError, match="more than 300 triples follow"):
        ask(entails(), chain, IRI("urn:0"), same, IRI("urn:30"))
    monkeypatch.setattr("triplewire.operators.families.graphs.MOST_SECONDS", 0.01)
    monkeypatch.setattr("triplewire.operators.families.graphs.MOST_ENTAILED", 50_000)
    with pytest.raises(ValueError, match=r"was not known within 0\.01 s"):
        ask(entails(), chain, IRI("urn:0"), same, IRI("urn:30"))
    monkeypatch.setattr("triplewire.operators.families.graphs.MOST_GIVEN", 20)
    with pytest.raises(ValueError, match="have 30 triples, more than 20"):
        ask(entails(), chain, IRI("urn:0"), same, IRI("urn:30"))


def test_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("shapely", "geographiclib")
    geo = PREDECLARED["geo"]
    triples = [(IRI("urn:a"), IRI(geo + name), Literal(str(n))) for name in ("lat", "long") for n in range(80)]
    monkeypatch.setattr("triplewire.operators.families.spatial.MOST_PLACES", 100)
    near = built_in_operators()["locWithin"]
    with pytest.raises(ValueError, match="more than 100 places"):
        ask(near, Publication("p", triples), Literal("0"), Literal("0"), Literal("1"))


def test_attached_pictures() -> None:
    needs("PIL")
    data = drawn("wave png 12 9").partition(",")[2].encode()
    publication = Publication("p", (), attachments={"a": base64.b64decode(data), "b": b"something else"})
    rows = built_in_operators()["imageSize"].evaluate(publication, (None, None))
    assert [[term.lexical for term in row] for row in rows] == [["12", "9"]]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("module", "read", "operator", "text"),
    [
        ("spatial", "_region", "within", "POLYGON(({0} 0, 9 0, 9 9, {0} 0))"),
        (
            "graphs",
            "_read_shapes",
            "conforms",
            "@prefix sh: <{1}> . <urn:{0}> a sh:NodeShape ; sh:targetNode <urn:a> .",
        ),
    ],
)
def test_what_all_subscriptions_ask_for_in_turn_is_read_once(
    module: str, read: str, operator: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("shapely" if module == "spatial" else "pyshacl", "rdflib")
    family = importlib.import_module(f"triplewire.operators.families.{module}")
    times: list[str] = []
    really_read = getattr(family, read)

    def counted(*arguments: str) -> Any:
        times.append(arguments[0])
        return really_read(*arguments)

    monkeypatch.setattr(family, read, counted)
    texts = [text.format(number / 100, "http://www.w3.org/ns/shacl#") for number in range(300)]
    holds = built_in_operators()[operator]
    assert isinstance(holds, library.LibraryOperator)
    for iri in ("urn:one", "urn:two"):
        for constant in texts:
            holds.function(Publication(iri, ()), (Literal(constant),))
    assert sorted(times) == sorted(texts)


def test_files_of_places_and_axioms_that_have_changed_are_read_again(tmp_path: Path) -> None:
    needs("shapely", "owlrl", "rdflib")
    places, axioms = tmp_path / "places.json", tmp_path / "axioms.nt"
    subject, geo = IRI("urn:s"), PREDECLARED["geo"]
    said = ((RDF_TYPE, IRI("urn:low")), (IRI(f"{geo}lat"), Literal("1")), (IRI(f"{geo}long"), Literal("1")))
    publication = Publication("urn:p", [Triple(subject, *rest) for rest in said])
    calls = (in_place(places), (Literal("here"),)), (entails(axioms), (subject, RDF_TYPE, IRI("urn:high")))
    for width, above, holds in ((2, "urn:high", True), (0.5, "urn:other", False), (2, "urn:high", True)):
        ring = [[0, 0], [width, 0], [width, 2], [0, 2], [0, 0]]
        here = {"type": "Feature", "id": "here", "geometry": {"type": "Polygon", "coordinates": [ring]}}
        places.write_text(json.dumps({"features": [here]}))
        axioms.write_text(f"<urn:low> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{above}> .")
        assert [operator.evaluate(publication, arguments) for operator, arguments in calls] == [holds, holds]
