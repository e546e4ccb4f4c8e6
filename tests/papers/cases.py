"""The cases of `tests/cases/papers/*.toml`: worked examples of the papers, one publication and one subscription each.

The keys of a case are told at the head of `000-gtopss.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.model.operator import Argument, Operator, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Term, parse_term

FOLDER = Path(__file__).resolve().parents[1] / "cases" / "papers"
_KEYS = {
    "figure", "chosen", "publication", "publication_file", "split", "item", "base", "prefixes", "taxonomy", "instances",
    "language", "query", "rules", "operators", "expected", "bindings",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One worked example."""

    paper: str
    figure: str
    query: str
    language: str
    expected: str
    bindings: tuple[Mapping[str, str], ...] | None = None
    chosen: str = ""
    publication: str = ""
    publication_file: str = ""
    split: str = "item"
    item: str = ""
    base: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    taxonomy: str = ""
    instances: str = ""
    rules: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.paper} {self.figure}"

    def document(self) -> bytes:
        """The bytes that hold the publication."""
        if self.publication_file:
            return (FOLDER / self.publication_file).read_bytes()
        return self.publication.encode()

    def taxonomy_turtle(self) -> str:
        """The taxonomy with its instances, or "" where there is none."""
        if not self.taxonomy:
            return ""
        rdfs = "http://www.w3.org/2000/01/rdf-schema#"
        return f"@base <{self.base}> .\n@prefix rdfs: <{rdfs}> .\n{self.taxonomy}\n{self.instances}\n"

    def subscription(self) -> Subscription:
        """The query, compiled; so are the rules that it names, in the order of the file."""
        rules: dict[str, Subscription] = {}
        for name, text in self.rules.items():
            rules[name] = self._parse(text, name, rules)
        return self._parse(self.query, "case", rules)

    def _parse(self, text: str, id: str, rules: Mapping[str, Subscription]) -> Subscription:
        stubs: Mapping[str, Operator] = {name: Table.of(name, stub) for name, stub in self.operators.items()}
        return parse(
            text, self.language, id=id, prefixes=self.prefixes, base=self.base, rules=rules, operators=stubs or None
        )

    def expected_bindings(self) -> set[frozenset[tuple[str, Term]]] | None:
        """The solutions, or None where the case does not say."""
        if self.bindings is None:
            return None
        return {frozenset((name, self._term(text)) for name, text in row.items()) for row in self.bindings}

    def _term(self, text: str) -> Term:
        term = parse_term(text)
        return IRI(urljoin(self.base, term.value)) if isinstance(term, IRI) and self.base else term


def load() -> Iterator[Case]:
    """All cases, file by file."""
    for file in sorted(FOLDER.glob("*.toml")):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        default = data["default"]
        for entry in data["case"]:
            unknown = (set(entry) | set(default)) - _KEYS
            if unknown:
                raise ValueError(f"{file.name}: {entry.get('figure')}: unknown keys {sorted(unknown)}")
            merged = {**default, **entry}
            for table in ("operators", "rules"):
                merged[table] = {**default.get(table, {}), **entry.get(table, {})}
            if "bindings" in entry:
                merged["bindings"] = tuple(entry["bindings"])
            yield Case(paper=data["paper"], **merged)


def load_tables(name: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The entries of another table of the case files: file name, the file's defaults, the entry."""
    found = []
    for file in sorted(FOLDER.glob("*.toml")):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        found += [(file.stem, data["default"], entry) for entry in data.get(name, [])]
    return found


@dataclass(frozen=True)
class Table:
    """An operator that looks its answer up: false without a fitting row, else the rows that fit the inputs."""

    name: str
    parameters: tuple[Parameter, ...]
    rows: tuple[tuple[Term, ...], ...]

    @classmethod
    def of(cls, name: str, stub: Mapping[str, Any]) -> Table:
        """From its entry in a case: parameters are written as "name" or "name in unit"."""
        parts = [parameter.partition(" in ") for parameter in stub["parameters"]]
        rows = tuple(tuple(parse_term(text) for text in row) for row in stub["rows"])
        return cls(name, tuple(Parameter(name, unit) for name, _, unit in parts), rows)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> list[tuple[Term, ...]]:
        """The rows that agree with the inputs, which are repeated as they were given."""
        fitting = (row for row in self.rows if all(map(_agrees, arguments, row)))
        return [tuple(a if a is not None else b for a, b in zip(arguments, row, strict=True)) for row in fitting]


def _agrees(argument: Argument, cell: Term) -> bool:
    """Is the argument an output, the same term, or the same number?"""
    if argument is None or argument == cell:
        return True
    if not isinstance(argument, Literal) or not isinstance(cell, Literal):
        return False
    try:
        return Decimal(argument.lexical) == Decimal(cell.lexical)
    except InvalidOperation:
        return argument.lexical == cell.lexical
