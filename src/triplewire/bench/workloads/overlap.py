"""The cluster paper's workload with a known share of contained subscriptions (001, figures 9(c) to 9(h)).

The first ones are those of the graph workload. Each further one is one of them with a
constant for a variable, or with one tuple more, so that it is contained in it.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

from triplewire.bench.workloads.corpus import Document
from triplewire.bench.workloads.graphs import LABELS, NODES, GraphWorkload, write_graphs
from triplewire.bench.workloads.vocabulary import iri, name

_VARIABLE = re.compile(r"\?x[0-9]")
_MAKE = "overlap-base.jsonl"


def write_overlap(workload: GraphWorkload, path: Path, subscriptions: int, percent: int, seed: int) -> list[Document]:
    """Write subscriptions to `path`, of which `percent` are contained in others; returns the publications."""
    dice = random.Random(seed)
    whole = subscriptions * (100 - percent) // 100
    base = path.with_name(f"{path.stem}-{_MAKE}")
    documents = write_graphs(workload, base, max(1, whole), seed)
    rows = base.read_text(encoding="utf-8").splitlines()
    base.unlink()
    with path.open("w", encoding="utf-8") as out:
        out.writelines(f"{row}\n" for row in rows)
        for number in range(subscriptions - len(rows)):
            row = json.loads(dice.choice(rows))
            row |= {"id": f"c{number}", "query": _narrower(row["query"], dice)}
            out.write(json.dumps(row) + "\n")
    return documents


def _narrower(query: str, dice: random.Random) -> str:
    """A query that the query contains."""
    names = sorted(set(_VARIABLE.findall(query)))
    node = iri("node", name(dice.randrange(NODES)))
    if names and dice.random() < 0.5:
        return query.replace(dice.choice(names), node)
    subject, label = dice.choice(names) if names else node, iri("property", name(dice.randrange(LABELS)))
    return f"{query} AND ({subject}, {label}, {node})"
