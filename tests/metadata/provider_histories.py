"""Generated histories of a provider, and what follows from its documents by plain evaluation (`metadata.naive`)."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from metadata.naive import Content, Naive
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.languages import parse
from triplewire.metadata.messages import Change, Put, RuleText, Withdraw
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Triple
from triplewire.read import read_document

TERMS, DOCUMENTS = "http://terms.example/", "http://docs.example/d"
CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "metadata" / "providers.toml").read_text("utf-8"))
PREFIX = f"PREFIX : <{TERMS}>\n"
RULES = {id: RuleText(id, PREFIX + text) for id, text in CASES["rules"].items()}
STRONG = frozenset(TERMS + name for name in CASES["properties"]["strong"])
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SCHEMA = (
    f"@prefix : <{TERMS}> . @prefix rdfs: <{_RDFS}> . @prefix mdv: <urn:triplewire:metadata:> .\n"
    + "".join(
        f"{name} a <http://www.w3.org/1999/02/22-rdf-syntax-ns#Property> {mark} .\n"
        for name, mark in [
            *((f":{name}", "; mdv:reference mdv:strong") for name in CASES["properties"]["strong"]),
            *((f":{name}", "") for name in (*CASES["properties"]["weak"], "name", "memory", "cpu", "since")),
        ]
    )
    + ":Host a rdfs:Class . :Server a rdfs:Class .\n"
)


@dataclass
class Expected:
    """The documents that there are, and the rules of each repository: what is plainly evaluated."""

    rules: dict[str, dict[str, RuleText]] = field(default_factory=dict)
    _naive: Naive = field(default_factory=lambda: Naive(STRONG))

    def apply(self, changes: Iterable[Change]) -> None:
        """A malformed document withdraws its version before."""
        self._naive.apply(changes)

    def results(self, repository: str) -> dict[str, list[str]]:
        """The resources of each rule of a repository."""
        self._naive.rules = {(name, id): rule for name, rules in self.rules.items() for id, rule in rules.items()}
        return {id: iris for (name, id), iris in self._naive.results().items() if name == repository}

    def cache(self, repository: str) -> Content:
        """What a repository has to cache."""
        self.results(repository)
        return self._naive.caches().get(repository, {})


def triples_of(put: Put) -> frozenset[Triple]:
    """What a document says; nothing if it is malformed."""
    refused: list[object] = []
    publications = read_document(put.content, put.document, on_refusal=refused.append)
    return frozenset(triple for publication in publications for triple in publication.triples)


def evaluated(rule: RuleText, triples: Iterable[Triple]) -> list[str]:
    """The resources that a rule registers, by the reference."""
    publication = Publication("http://all.example/", triples=tuple(triples))
    answer = evaluate(parse(rule.query, "mdv"), publication, World())
    terms = [term for binding in answer.bindings for term in dict(binding).values()]
    return sorted(term.value for term in terms if isinstance(term, IRI))


def document(chance: random.Random, number: int) -> Put:
    """A document with a few resources; of these some are of several documents. One in twelve is malformed."""
    lines = [f"@prefix : <{TERMS}> ."]
    for name in chance.sample("abcs", chance.randint(1, 3)):
        iri = f"<{DOCUMENTS}{chance.choice([number, number, 1])}#{name}>"
        others = [f"<{DOCUMENTS}{chance.randint(1, 4)}#{chance.choice('abcs')}>" for _ in range(3)]
        if name == "s":
            memory, cpu = chance.choice([32, 64, 64.5, 128]), chance.choice([450, 600])
            lines.append(f"{iri} a :Server ; :memory {memory} ; :cpu {cpu}")
        else:
            name_of = chance.choice(["'pirates.uni-passau.de'", "'uni'", "'a'", "'600'"])
            since = chance.choice(["2019-05-01", "2021", "2024-02-03"])
            lines.append(f"{iri} a :Host ; :name {name_of} ; :since '{since}'")
            lines[-1] += f" ; :server <{DOCUMENTS}{chance.randint(1, 4)}#s>" if chance.random() < 0.6 else ""
            lines[-1] += f" ; :peer {others[0]}" if chance.random() < 0.5 else ""
        lines[-1] += f" ; :next {others[1]}" if chance.random() < 0.4 else ""
        lines[-1] += " ." if chance.random() > 0.08 else " ; ."
    text = "\n".join(lines) + ("\n:broken" if chance.random() < 0.08 else "")
    return Put(f"{DOCUMENTS}{number}", text.encode())


def changes(chance: random.Random) -> list[Change]:
    """A batch of changes of documents."""
    numbers = chance.sample(range(1, 5), chance.randint(1, 3))
    return [Withdraw(f"{DOCUMENTS}{n}") if chance.random() < 0.2 else document(chance, n) for n in numbers]


def rules(chance: random.Random) -> list[RuleText]:
    """Rules to subscribe to; one that others name comes with them."""
    some = chance.sample(sorted(RULES), chance.randint(1, 3))
    ids = ["fast", *some] if "over" in some else some
    return [RULES[id] for id in dict.fromkeys(ids)]
