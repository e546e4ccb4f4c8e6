"""The workloads by the matchers of the papers: a part in `make test`, all in `make full`.

"naive" takes a sample: it looks at each pair.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest

from amounts import IN_FULL, OF_PAPERS
from conformance.test_full_workloads import check, loaded, matched, stated
from conformance.test_workloads_expected import graph_query, rtf_query, taxonomy
from shared_data import lines

EACH = 100
"""Every n-th subscription is tried by default; of "naive" always."""


def rows_of(name: str, matcher: str) -> list[Any]:
    """The subscriptions of a workload that a matcher tries."""
    step = 1 if IN_FULL and matcher != "naive" else EACH
    return list(map(json.loads, islice(lines(f"10-workloads/{name}.jsonl.gz"), 0, None, step)))


@pytest.mark.parametrize("matcher", OF_PAPERS)
def test_graph(matcher: str, tmp_path: Path) -> None:
    rows = rows_of("graph-subscriptions-100k", matcher)
    queries = ((str(key), "gql", graph_query(edges, constraints)) for key, _, edges, constraints in rows)
    engine = loaded(tmp_path / "queries.jsonl", queries, taxonomy(), matcher)
    matches, stats = matched(engine, "10-workloads/graph-publications.nq.gz")
    if len(rows) == 100_000:
        check(matches, stated("10-workloads/graph-expected.tsv.gz"))
    counts = Counter(chain.from_iterable(matches.values()))
    assert counts == {str(key): count for key, count, *_ in rows if count}
    if not matcher.startswith(("rtf", "ibroker")):
        left = len(engine.left_to_verification)
        assert left <= 0.02 * len(rows), "all but a few subscriptions are held"
        assert stats.verified <= 0.02 * stats.matches


@pytest.mark.parametrize("share", ["ft050", "ft100"])
@pytest.mark.parametrize("matcher", ["rtf-m", "rtf-s", "ibroker"])
def test_rtf(matcher: str, share: str, tmp_path: Path) -> None:
    rows = rows_of(f"rtf-queries-100k-{share}", matcher)
    queries = ((str(key), "sparql", rtf_query(tuples)) for key, _, tuples in rows)
    engine = loaded(tmp_path / "queries.jsonl", queries, matcher=matcher)
    matches, stats = matched(engine, "10-workloads/mixed-5000.nq.gz")
    if len(rows) == 100_000:
        check(matches, stated(f"10-workloads/rtf-expected-{share}.tsv.gz"))
    counts = Counter(chain.from_iterable(matches.values()))
    assert counts == {str(key): count for key, count, _ in rows if count}
    assert stats.verified == stats.candidates > 0
