"""The real workloads in full, by the matcher "trie": every expected result, and how few candidates a match costs.

100,000 queries of RTF with 0, 50 and 100 % full text over 5,000 publications; 100,000 graph subscriptions with their
taxonomy over 2,000; 40,000 MDV rules over 1,746 documents; 6,000 full-text expressions over 5,603 texts. `make full`
takes all of them; `make test` takes all graph subscriptions, whose expected results are by publication, and every n-th
of each other set (`EACH`). Subscriptions are loaded from files, as the command does.
Samples of the same, by the reference meaning: `test_workloads_expected`, `test_fulltext_expected`, which say how the
sets are written in the query languages.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from amounts import IN_FULL
from conformance.test_fulltext_expected import texts, written
from conformance.test_workloads_expected import (
    MDV_PREFIXES,
    digest,
    documents,
    graph_query,
    rtf_query,
    taxonomy,
)
from shared_data import lines, path
from triplewire import Engine, MatchResult
from triplewire.engine.stats import Stats
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

EACH = {"graph": 3, "ft000": 10, "ft050": 3, "ft100": 10, "mdv": 4, "full-text": 3}
"""Of which set every n-th subscription is tried by default. No set is in an order with such a period: each part has all
kinds."""


def part(kind: str, file: str) -> list[Any]:
    """The rows of a set that are tried."""
    return list(map(json.loads, islice(lines(f"{file}.jsonl.gz"), 0, None, 1 if IN_FULL else EACH[kind])))


def loaded(
    file: Path, rows: Iterable[tuple[str, str, str]], taxonomy: Taxonomy | None = None, matcher: str = "trie"
) -> Engine:
    """An engine with subscriptions (id, language, text), by way of a file."""
    with file.open("w", encoding="utf-8") as stream:
        for id_, language, text in rows:
            stream.write(json.dumps({"id": id_, "language": language, "query": text}) + "\n")
    engine = Engine(matcher=matcher, taxonomy=taxonomy)
    engine.load_subscriptions(file)
    file.unlink()
    return engine


Found: TypeAlias = dict[str, list[str]]
"""Publication to the ids of the subscriptions that match it."""


def collect(found: Found, result: MatchResult) -> None:
    """Add the pairs of a result, without an object a match."""
    for part in result.parts:
        ids, names = part.snapshot.ids(part.subscription), part.publications
        for number, id_ in zip(part.publication.tolist(), ids, strict=True):
            found[names[number]].append(id_)


def matched(engine: Engine, publications: str) -> tuple[Found, Stats]:
    """All pairs of a file of publications."""
    found: Found = defaultdict(list)
    stats = Stats()
    for result in engine.match_files(str(path(publications))):
        assert not result.refusals
        collect(found, result)
        stats.add(result.stats)
    return found, stats


def hashed(ids: list[str]) -> str:
    """The first 16 digits of SHA-256 over the ids, in the order of numbers, joined by blanks."""
    return hashlib.sha256(" ".join(sorted(ids, key=int)).encode()).hexdigest()[:16]


def stated(name: str) -> dict[str, tuple[int, str]]:
    """What the data set says of each publication that is matched."""
    rows = (line.rstrip("\n").split("\t") for line in list(lines(name))[1:])
    return {publication: (int(count), sha) for publication, count, sha in rows if int(count)}


def check(matches: Found, expected: dict[str, tuple[int, str]]) -> None:
    """Every publication has exactly the subscriptions that the data set states."""
    found = {name: (len(ids), hashed(ids)) for name, ids in matches.items()}
    wrong = [
        (name, expected.get(name), found.get(name))
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
    assert not wrong, f"{len(wrong)} publications are wrong: {wrong[:3]}"


@pytest.mark.parametrize("share", ["ft000", "ft050", "ft100"])
def test_rtf(share: str, tmp_path: Path) -> None:
    queries = part(share, f"10-workloads/rtf-queries-100k-{share}")
    engine = loaded(tmp_path / "queries.jsonl", ((str(key), "sparql", rtf_query(tuples)) for key, _, tuples in queries))
    assert len(engine.subscriptions) == len(queries)
    matches, stats = matched(engine, "10-workloads/mixed-5000.nq.gz")
    assert stats.publications == 5_000
    if IN_FULL:
        assert len(queries) == 100_000
        check(matches, stated(f"10-workloads/rtf-expected-{share}.tsv.gz"))
    counts = Counter(chain.from_iterable(matches.values()))
    assert counts == {str(key): count for key, count, _ in queries if count}
    assert stats.candidates <= 1.05 * stats.matches
    assert stats.join_steps <= 0.1 * stats.matches  # what the index proves is not joined


@pytest.mark.xdist_group("full-graph")
def test_graph_subscriptions(tmp_path: Path) -> None:
    queries = part("graph", "10-workloads/graph-subscriptions-100k")
    given = ((str(key), "gql", graph_query(edges, constraints)) for key, _, edges, constraints in queries)
    engine = loaded(tmp_path / "queries.jsonl", given, taxonomy())
    assert len(engine.subscriptions) == len(queries)
    matches, stats = matched(engine, "10-workloads/graph-publications.nq.gz")
    assert stats.publications == 2_000
    if IN_FULL:
        assert len(queries) == 100_000
        check(matches, stated("10-workloads/graph-expected.tsv.gz"))
    counts = Counter(chain.from_iterable(matches.values()))
    assert counts == {str(key): count for key, count, *_ in queries if count}
    assert stats.candidates <= 1.05 * stats.matches
    shared = 0.6 if IN_FULL else 0.8  # a subscription has 6.5 edges: nearly all steps are shared, the more so of many
    assert 0 < stats.join_steps <= shared * stats.matches


@pytest.mark.xdist_group("full-mdv")
def test_mdv_rules(tmp_path: Path) -> None:
    rules = part("mdv", "10-workloads/mdv-rules-40k")
    engine = loaded(tmp_path / "rules.jsonl", ((str(row[0]), "mdv", MDV_PREFIXES + row[2]) for row in rules))
    assert len(engine.subscriptions) == len(rules) == (40_000 if IN_FULL else 10_000)
    assert {kind for _, kind, *_ in rules} == {"OID", "COMP", "PATH", "JOIN"}
    result = engine.match(documents())
    assert result.publications == 1_746
    assert not result.refusals
    registered: dict[str, set[str]] = defaultdict(set)
    for match in result:
        registered[match.subscription] |= {
            value.value for row in match.bindings for value in row.values() if isinstance(value, IRI)
        }
    wanted = {str(row[0]): (row[3], row[4]) for row in rules}
    found = {name: (len(registered[name]), digest(registered[name])) for name in wanted}
    wrong = [(name, wanted[name], found[name]) for name in wanted if wanted[name] != found[name]]
    assert not wrong, f"{len(wrong)} rules are wrong: {wrong[:3]}"
    assert result.stats.candidates <= 1.05 * result.stats.matches
    assert 0 < result.stats.join_steps <= 1.0 * result.stats.matches


@pytest.mark.xdist_group("full-text")
def test_full_text(tmp_path: Path) -> None:
    rows = part("full-text", "06-fulltext/ft-expressions")
    query = "SELECT * {{ ?s ?p ?t FILTER ftcontains(?t, {}) }}"
    given = ((str(row["id"]), "sparql", query.format(written(row["expr"]))) for row in rows)
    engine = loaded(tmp_path / "expressions.jsonl", given)
    assert len(engine.subscriptions) == len(rows) == (6_000 if IN_FULL else 2_000)
    subject, predicate = IRI("http://example.org/s"), IRI("http://example.org/text")
    publications = (Publication(key, (Triple(subject, predicate, Literal(text)),)) for key, text in texts().items())
    matches: Found = defaultdict(list)
    result = engine.match(publications)
    collect(matches, result)
    stats = result.stats
    assert stats.publications == 5_603
    found: dict[str, list[str]] = defaultdict(list)
    for publication, ids in matches.items():
        for id_ in ids:
            found[id_].append(publication)
    wrong = []
    for row in rows:
        keys = found[str(row["id"])]
        sha = hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:16]
        if (len(keys), sha) != (row["matches"], row["sha"]):
            wrong.append((row["id"], row["expr"], row["matches"], len(keys)))
    assert not wrong, f"{len(wrong)} expressions are wrong: {wrong[:3]}"
    assert stats.candidates <= 1.25 * stats.matches  # the places of words are not in the index
