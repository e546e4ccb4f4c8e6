"""Rows of subscription files that are loaded in parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.samples import EX

WORDS = 'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{n}") }}'
CLASSES = "SELECT ?a WHERE ((?a, *, ?c) SUCHTHAT (?c ISA <= <{ex}{name}>))"


def rows() -> list[dict[str, str]]:
    """Good ones, some of which have warnings, such as have no template, and such as are refused; rules that name rules
    of the other part."""
    every = []
    for n in range(60):
        every.append({"id": f"w{n}", "language": "sparql", "query": WORDS.format(n=n)})
        if n % 5 == 0:
            every.append({"id": f"c{n}", "language": "gql", "query": CLASSES.format(ex=EX, name="ABZ"[n % 3])})
        if n % 7 == 0:
            every.append({"id": f"wrong{n}", "language": "sparql", "query": f"SELECT {n}"})
        if n % 11 == 0:
            construct = f"CONSTRUCT {{ ?s <{EX}x{n}> ?t }} WHERE {{ ?s rss:title ?t OPTIONAL {{ ?t ?p {n} }} }}"
            every.append({"id": f"made{n}", "language": "sparql", "query": construct})
    first = {"id": "of T", "language": "mdv", "query": f"search T t register t where t.<{EX}year> < 9"}
    last = {"id": "T", "language": "mdv", "query": f"search <{EX}T> t register t where t.<{EX}year> > 3"}
    return [first, *every, last]


def written(stated: Sequence[dict[str, str]], path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(stated)), path, row_group_size=10)
    else:
        path.write_text(
            "".join(json.dumps(row) + "\n\n" * (number % 9 == 0) + "\n" for number, row in enumerate(stated))
        )
    return path
