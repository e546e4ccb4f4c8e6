"""Terms that a known vocabulary does not have, and the two namespaces of schema.org."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from triplewire.bounded_cache import cached_if_short
from triplewire.ir.alike import AlikeNames
from triplewire.model.namespaces import PREDECLARED

TERMS = Path(__file__).with_name("vocabularies.txt")
SCHEMAS = (PREDECLARED["schema"], PREDECLARED["schemas"])
_NAMESPACE = re.compile(r"[^#]*[/#]")
_MEMBER = re.compile(r"_[1-9][0-9]*")  # of a container of RDF
_ALIKE = 0.75  # of 1: how much of two names has to be the same


@dataclass(frozen=True)
class _Vocabulary:
    """`grows`: it has more terms than are listed, so only what is nearly one of these is taken for a mistake."""

    terms: frozenset[str]
    grows: bool

    def nearest(self, name: str) -> str:
        """The term that is nearly the name; "" where none is."""
        return self._folded.get(name.casefold()) or self._alike.nearest(name[:80])

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        return {term.casefold(): term for term in self.terms}

    @cached_property
    def _alike(self) -> AlikeNames:
        return AlikeNames(self.terms, _ALIKE)


@cache
def _vocabularies() -> Mapping[str, _Vocabulary]:
    """The known vocabularies by prefix."""
    text = re.sub(r"^#.*\n", "", TERMS.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\n  ", " ")
    known: dict[str, _Vocabulary] = {}
    for line in text.splitlines():
        prefix, _, terms = line.partition(": ")
        known[prefix.rstrip("~")] = _Vocabulary(frozenset(terms.split()), prefix.endswith("~"))
    known["schemas"] = known["schema"]
    return known


@cache
def _prefixes() -> Mapping[str, str]:
    return {PREDECLARED[prefix]: prefix for prefix in _vocabularies()}


@cached_if_short(1 << 16, 256)
def term_warning(iri: str) -> str:
    """What to say of an IRI that a known vocabulary does not have; "" of any other."""
    namespace = _NAMESPACE.match(iri)
    prefix = None if namespace is None else _prefixes().get(namespace[0])
    if namespace is None or prefix is None:
        return ""
    name, vocabulary = iri[namespace.end() :], _vocabularies()[prefix]
    if not name or name in vocabulary.terms or (prefix == "rdf" and _MEMBER.fullmatch(name)):
        return ""
    near = vocabulary.nearest(name)
    if not near and vocabulary.grows:
        return ""
    owner = next((other for other in ("dcterms", "dc", "rdfs") if name in _vocabularies()[other].terms), "")
    meant = f"{prefix}:{near}" if near else f"{owner}:{name}" if owner else ""
    return f"{prefix}:{name} is no term of that vocabulary" + (f"; did you mean {meant}?" if meant else "")


def schema_of(iri: str) -> int:
    """1 for a term of http://schema.org/, 2 for one of https://schema.org/, else 0."""
    return next((number for number, namespace in enumerate(SCHEMAS, 1) if iri.startswith(namespace)), 0)


def schema_warning(named: Iterable[int]) -> str:
    """What to say of a query that names terms of one of schema.org's namespaces only. `named` as `schema_of` gives."""
    only = set(named) - {0}
    if len(only) != 1:
        return ""
    mine, other = SCHEMAS if only == {1} else SCHEMAS[::-1]
    prefix = "schemas" if only == {1} else "schema"
    return (
        f"this names terms of {mine} only: publications that use {other} are missed, as these are different IRIs; "
        f"name both where both may come ({prefix}: stands for {other})"
    )
