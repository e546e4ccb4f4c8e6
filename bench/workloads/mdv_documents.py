"""Documents and rules of the MDV paper's experiments (section 4.1, figures 1 and 10).

A document has two resources. A rule of type OID, PATH or JOIN fits one document; of COMP rules a document fits a share.
`contains` is ours.
"""

from __future__ import annotations

from collections.abc import Callable

from triplewire.metadata.messages import Put, RuleText

SPACE = "http://og.example/schema#"
TYPES = ("OID", "COMP", "PATH", "JOIN")
_PREFIXES = {"": SPACE}


def name_of(number: int) -> str:
    """The IRI of a document."""
    return f"http://og.example/docs/{number}"


def document(number: int, value: int) -> Put:
    """A document like figure 1. `number` makes it unlike all others; a COMP rule fits it whose constant is below
    `value`."""
    text = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="{SPACE}">
<CycleProvider rdf:ID="host"><serverHost>host{number:06}.uni-passau.de</serverHost><serverPort>5874</serverPort>
<synthValue>{value}</synthValue><serverInformation><ServerInformation rdf:ID="info"><memory>{number}</memory>
<cpu>600</cpu></ServerInformation></serverInformation></CycleProvider></rdf:RDF>"""
    return Put(name_of(number), text.encode())


_RULES: dict[str, Callable[[int], str]] = {
    "OID": lambda n: f"c = <{name_of(n)}#host>",
    "COMP": lambda n: f"c.synthValue > {n}",
    "PATH": lambda n: f"c.serverInformation.memory = {n}",
    "JOIN": lambda n: (
        f"c.serverHost contains 'uni-passau.de' and c.serverInformation.cpu = 600 and c.serverInformation.memory = {n}"
    ),
    "contains": lambda n: f"c.serverHost contains 'host{n:06}.uni'",
}


def rules(kind: str, number: int) -> list[RuleText]:
    """So many rules of a type (figure 10 of the paper; `contains` is ours)."""
    head = "search CycleProvider c register c where "
    return [RuleText(f"{kind}{n}", head + _RULES[kind](n), _PREFIXES) for n in range(number)]


def mixed(number: int) -> list[RuleText]:
    """So many rules, of the paper's four types in equal parts."""
    return [rule for kind in TYPES for rule in rules(kind, max(number // len(TYPES), 1))]
