"""Taxonomies from files: cases as data (`tests/cases/taxonomy/files.toml`), damaged files, and real vocabularies."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path
from typing import Any

import pytest

from shared_data import ROOT, members, path
from triplewire.config import Settings
from triplewire.errors import TaxonomyError
from triplewire.ir.nodes import Label, Relation
from triplewire.ir.taxonomy import EMPTY
from triplewire.model.publication import Graph
from triplewire.model.terms import IRI, made_iri
from triplewire.read.taxonomy import load_taxonomy

CASES = tomllib.loads((ROOT / "tests/cases/taxonomy/files.toml").read_text(encoding="utf-8"))["case"]
DECLARES = {"http://www.w3.org/2002/07/owl#Class", "http://www.w3.org/2000/01/rdf-schema#Class"}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["title"])
def test_case(case: dict[str, Any], packed: bool, tmp_path: Path) -> None:
    file = tmp_path / (case["name"] + ".gz" * packed)
    data = case["text"].encode()
    file.write_bytes(gzip.compress(data) if packed else data)
    if "error" in case:
        with pytest.raises(TaxonomyError) as caught:
            load_taxonomy(file)
        assert str(caught.value) == f"{file}{case['error']}"
        return
    taxonomy = load_taxonomy(file)
    for line in case["holds"]:
        node, cls = line.split(" <= ")
        assert taxonomy.holds(made_iri(node), Relation.DESCENDANT, made_iri(cls), Graph(()))
    assert bool(taxonomy.superclasses) == bool(case["holds"])


DAMAGED: dict[str, tuple[bytes, str]] = {
    "Turtle": (b"<urn:a> <urn:b> ", "line 1"),
    "no UTF-8": (b"Dog\tMammal\nC\xff\tMammal\n", ":2: the text is no UTF-8; save it as UTF-8"),
    "no format at all": (b"\x00\x01\x02\x03", ""),
    "a feed": (
        b"<rss version='2.0'><channel><item><title>t</title></item></channel></rss>",
        "were publications meant?",
    ),
    "half a gzip file": (gzip.compress(b"Dog\tMammal\n" * 9)[:-12], ""),
    "an entity bomb": (b'<!DOCTYPE r [<!ENTITY a "aa"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]><r>&c;</r>', ""),
    "deep nesting": (b"<urn:a> <urn:b> " + b"[ <urn:c> " * 50_000 + b"1" + b"]" * 50_000 + b" .", ""),
    "a cell beyond the field limit of the csv module": (b'"' + b"x" * 200_000 + b'",y\n', "no CSV"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused(name: str, tmp_path: Path) -> None:
    data, reason = DAMAGED[name]
    file = tmp_path / ("classes.csv" if "csv" in name else "classes")
    file.write_bytes(data)
    with pytest.raises(TaxonomyError) as caught:
        load_taxonomy(file)
    assert str(caught.value).startswith(str(file))
    assert reason.removeprefix("line 1") in str(caught.value)


def test_what_has_no_end_is_read_no_further_than_a_file_may_be() -> None:
    with pytest.raises(TaxonomyError, match="/dev/zero: it has more than 10,000 bytes; raise max_input_bytes"):
        load_taxonomy("/dev/zero", Settings(max_input_bytes=10_000))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaxonomyError, match="cannot be read: No such file"):
        load_taxonomy(tmp_path / "absent.ttl")
    with pytest.raises(TaxonomyError, match="the folder holds no file"):
        load_taxonomy(tmp_path)


def test_a_folder_and_several_files_are_one_taxonomy(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "a.tsv").write_text("Robin\tBird\n")
    (below / "b.ttl").write_text(
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . <urn:Bird> rdfs:subClassOf <urn:Animal> ."
    )
    (tmp_path / "c.tsv").write_text("Bird\tThing\n")
    taxonomy = load_taxonomy([below, tmp_path / "c.tsv"])
    assert taxonomy.superclasses == {
        "Robin": frozenset(("Bird",)),
        "Bird": frozenset(("Thing",)),
        "urn:Bird": frozenset(("urn:Animal",)),
    }
    (tmp_path / "d.tsv").write_text("Thing\tRobin\n")
    with pytest.raises(TaxonomyError, match="cycle"):
        load_taxonomy([below, tmp_path / "c.tsv", tmp_path / "d.tsv"])
    (below / "wrong.tsv").write_text("Robin\tBird\n\tBird\n")
    with pytest.raises(TaxonomyError, match=r"wrong\.tsv:2"):
        load_taxonomy(below)


def test_a_taxonomy_may_be_larger_than_a_publication(tmp_path: Path) -> None:
    file = tmp_path / "classes.nt"
    sub = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    file.write_text("".join(f"<urn:c{n}> {sub} <urn:c{n // 2}> .\n" for n in range(1, 2_000)), encoding="utf-8")
    settings = Settings(max_triples=10, max_document_bytes=1_000)
    assert len(load_taxonomy(file, settings).superclasses) == 1_999
    with pytest.raises(TaxonomyError, match="max_input_bytes"):
        load_taxonomy(file, Settings(max_input_bytes=1_000))


# What the data's README states counts anonymous classes (OBI, SIO), which no subscription can name.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "declared", "several_parents"),
    [
        ("01-dbpedia/dbpedia-owl-2014-07-15.n3.gz", 685, 23),
        ("09-taxonomies/schema-org-v2.2-2015-11-05.n3.gz", 652, 33),
        ("09-taxonomies/sio-v1.016-2015-04-21.n3.gz", 1_471, 10),  # the stated 11th is its own superclass
        ("09-taxonomies/obi-2015-04-13.n3.gz", 2_864, 464),
    ],
)
def test_real_ontologies(name: str, declared: int, several_parents: int) -> None:
    taxonomy = load_taxonomy(path(name))
    assert sum(1 for classes in taxonomy.classes_of.values() if classes & DECLARES) == declared
    assert sum(1 for above in taxonomy.superclasses.values() if len(above) > 1) == several_parents


def test_names_of_a_real_ontology() -> None:
    taxonomy = load_taxonomy(path("01-dbpedia/dbpedia-owl-2014-07-15.n3.gz"))
    dbo = "http://dbpedia.org/ontology/"
    assert taxonomy.names["Stadt"] == {dbo + "City", dbo + "Town", dbo + "city"}
    assert taxonomy.resolve(Label("Stadt")) == {dbo + "City", dbo + "Town"}, "the third is a property"
    assert taxonomy.path(IRI(dbo + "City"), Relation.DESCENDANT, IRI(dbo + "Place"), Graph(())) == (
        dbo + "City", dbo + "Settlement", dbo + "PopulatedPlace", dbo + "Place",
    )  # fmt: skip


def test_a_hundred_vocabularies_load(tmp_path: Path) -> None:
    loaded = 0
    for name, content in members("09-taxonomies/w3c-bbc-foaf-vocabularies.tar.gz"):
        file = tmp_path / name.replace("/", "_")
        file.write_bytes(content)
        loaded += load_taxonomy(file) != EMPTY
    assert loaded == 101


def test_the_workload_in_both_forms(tmp_path: Path) -> None:
    """The classes of 10-workloads as a table, and as N-Triples with 20,000 typed instances."""
    table = load_taxonomy(path("10-workloads/graph-taxonomy-classes.tsv.gz"))
    assert len(table.classes) == 716
    lines = [
        f"<{sub}> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{sup}> .\n"
        for sub, above in table.superclasses.items()
        for sup in above
    ]
    with gzip.open(path("10-workloads/graph-taxonomy-instances.tsv.gz"), "rt", encoding="utf-8") as stream:
        for row in stream:
            instance, classes = row.rstrip("\n").split("\t")
            lines += [f"{instance} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> {c} .\n" for c in classes.split()]
    file = tmp_path / "taxonomy.nt"
    file.write_text("".join(lines), encoding="utf-8")
    loaded = load_taxonomy(file)
    assert loaded.superclasses == table.superclasses
    assert len(loaded.classes_of) == 19_488
