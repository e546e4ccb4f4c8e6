"""The four rule types of the MDV paper (figure 10): OID, COMP, PATH and JOIN, each over documents of two resources.

Every provider matches one OID, one PATH and one JOIN rule, and a tenth of the COMP rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from triplewire.bench.workloads.corpus import TYPE, Document
from triplewire.bench.workloads.pieces import CHUNK, Pieces, Rows, SubscriptionRows, quoted, write_rows
from triplewire.bench.workloads.vocabulary import NAMESPACE, iri, word

RULE_TYPES = ("OID", "COMP", "PATH", "JOIN")
COMP_SHARE = 0.1
_SCHEMA = "schema"
_INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


def providers(count: int, rules: int) -> list[Document]:
    """Documents as in figure 1: a cycle provider and what is known of its server. With `rules` rules of each type."""
    out: list[Document] = []
    for number in range(count):
        rule = number * rules // count  # the rule of each type that matches it
        provider, server = iri("provider", f"p{rule}"), iri("provider", f"p{rule}#info")
        facts = (
            (provider, TYPE, iri(_SCHEMA, "CycleProvider")),
            (provider, iri(_SCHEMA, "serverHost"), f'"{word(3_000 + rule)}.uni-passau.de"'),
            (provider, iri(_SCHEMA, "serverPort"), f'"5874"{_INTEGER}'),
            (provider, iri(_SCHEMA, "synthValue"), f'"{round(rules * COMP_SHARE)}"{_INTEGER}'),
            (provider, iri(_SCHEMA, "serverInformation"), server),
            (server, TYPE, iri(_SCHEMA, "ServerInformation")),
            (server, iri(_SCHEMA, "memory"), f'"{rule}"{_INTEGER}'),
            (server, iri(_SCHEMA, "cpu"), f'"600"{_INTEGER}'),
        )
        out.append((provider, facts))
    return out


def write_rules(path: Path, rules: int, *, types: tuple[str, ...] = RULE_TYPES) -> int:
    """Write `rules` rules of each type. Returns their number."""
    pieces = Pieces()
    head = f"PREFIX s: <{NAMESPACE}{_SCHEMA}/>\nsearch s:CycleProvider c register c where c"
    row = SubscriptionRows(pieces, "mdv", "m", head)
    middle = {
        "OID": f" = <{NAMESPACE}provider/p",
        "COMP": ".s:synthValue > ",
        "PATH": ".s:serverInformation.s:memory = ",
        "JOIN": ".s:serverHost contains 'uni-passau.de' and c.s:serverInformation.s:cpu = 600"
        " and c.s:serverInformation.s:memory = ",
    }
    before = pieces.add_all(quoted(middle[kind]) for kind in types)
    after = pieces.add_all(">" if kind == "OID" else "" for kind in types)
    number = pieces.add_all(str(n) for n in range(rules))

    def chunks() -> Iterator[Rows]:
        for first in range(0, rules * len(types), CHUNK):
            at = np.arange(first, min(first + CHUNK, rules * len(types)))
            kind, rule = at % len(types), at // len(types)
            yield row.around(np.stack([before[kind], number[rule], after[kind]], axis=1), first)

    return write_rows(path, pieces, chunks())
