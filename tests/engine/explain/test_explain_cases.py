"""Explanations as people read them: the cases in `tests/cases/explain` hold the whole text, `#` where a time stands.

To add one, write it with an empty explanation, run the test, and take over what it says when it is right.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from engine.samples import EX
from triplewire import Engine, Literal, Taxonomy
from triplewire.extend import Argument, Parameter, Verdict
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.publication import Publication
from triplewire.model.terms import XSD
from triplewire.operators import built_in_operators
from triplewire.read import read_document

FOLDER = Path(__file__).parents[2] / "cases" / "explain"
PREFIXES = {**PREDECLARED, "": EX}
TURTLE = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items())


class Mob:
    """mob(?n): 60 people are there."""

    name = "mob"
    parameters = (Parameter("people"),)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """One row."""
        return [(Literal("60", XSD + "integer"),)]


class Broken:
    """broken(x): cannot tell."""

    name = "broken"
    parameters = (Parameter("x"),)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """Nothing."""
        raise ConnectionError("the gazetteer does not answer")


def cases() -> list[Any]:
    out = []
    for file in sorted(FOLDER.glob("*.toml")):
        content = tomllib.loads(file.read_text("utf-8"))
        pairs = [(sub.replace(":", EX), sup.replace(":", EX)) for sub, sup in content["taxonomy"]]
        out += [pytest.param(pairs, case, id=f"{file.stem}: {case['name']}") for case in content["case"]]
    return out


@pytest.mark.parametrize(("taxonomy", "case"), cases())
def test_explanation(taxonomy: list[tuple[str, str]], case: dict[str, str]) -> None:
    operators = {**built_in_operators(), "mob": Mob(), "broken": Broken()}
    engine = Engine(taxonomy=Taxonomy.build(taxonomy), operators=operators)
    language = case.get("language", "sparql")
    prefixes = {"": EX} if language == "sparql" else {}
    engine.subscribe(case["query"], language, id="query", prefixes=prefixes)
    found = list(read_document((TURTLE + case["publication"]).encode(), "text"))
    publication = Publication("text", found[0].triples if found else ())
    explanation = engine.explain("query", publication)
    text = re.sub(r"\d+\.\d ms", "# ms", str(explanation))  # what operators took
    assert text.strip() == case["explanation"].strip()
    assert explanation.matched == bool(engine.match(publication).matches)
