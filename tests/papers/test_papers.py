"""The worked examples of the five papers give the papers' answers. The cases are data: `tests/cases/papers/*.toml`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from papers.cases import Case, Table, load, load_tables
from triplewire.engine import Engine
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.model.publication import Publication
from triplewire.read import read
from triplewire.read.taxonomy import load_taxonomy

CASES = list(load())


def _publication(case: Case) -> Publication:
    found = list(read(case.document(), base=case.base, split=case.split))
    if case.item:
        found = [publication for publication in found if publication.id == case.item]
    assert len(found) == 1, f"the case names one publication, found {[publication.id for publication in found]}"
    return found[0]


def _taxonomy(case: Case, folder: Path) -> Taxonomy:
    text = case.taxonomy_turtle()
    if not text:
        return EMPTY
    file = folder / "taxonomy.ttl"
    file.write_text(text, encoding="utf-8")
    return load_taxonomy(file)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_example(case: Case, tmp_path: Path) -> None:
    operators = {name: Table.of(name, stub) for name, stub in case.operators.items()}
    engine = Engine(taxonomy=_taxonomy(case, tmp_path), operators=operators or None)
    engine.subscribe(case.subscription())
    result = engine.match(_publication(case))
    matches = list(result)
    assert not result.refusals
    assert ("match" if matches else "miss") == case.expected
    wanted = case.expected_bindings()
    if matches and wanted is not None:
        got = [frozenset(binding.items()) for binding in matches[0].bindings]
        assert len(got) == len(set(got)), "a solution is told twice"
        assert set(got) == wanted


@pytest.mark.parametrize(("file", "default", "entry"), load_tables("containment"))
def test_containment(file: str, default: dict[str, object], entry: dict[str, list[object]]) -> None:
    """What matches the inner subscription matches the outer one, and not the other way round."""
    base = str(default["base"])
    engine = Engine()
    for name in ("outer", "inner"):
        engine.subscribe(str(entry[name]), "gql", id=name, base=base, prefixes={"": f"{base}terms#"})
    found: dict[str, list[int]] = {"outer": [], "inner": []}
    for number, edges in enumerate(entry["publications"]):
        assert isinstance(edges, list)
        text = "".join(f"<{base}{s}> <{base}terms#{p}> <{base}{o}> .\n" for s, p, o in map(str.split, edges))
        for match in engine.match(read(text.encode())):
            found[match.subscription].append(number)
    assert found == {"outer": entry["matches_outer"], "inner": entry["matches_inner"]}
    assert set(found["inner"]) < set(found["outer"])


def test_every_paper_has_its_cases() -> None:
    """Each paper has examples that match and examples that do not."""
    count = Counter((case.paper, case.expected) for case in CASES)
    assert set(count) == {(paper, end) for paper in ("000", "001", "002", "003", "004") for end in ("match", "miss")}
    assert all(case.bindings is not None for case in CASES if case.expected == "match"), "say what a match binds"
