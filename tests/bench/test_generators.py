"""The generators keep the papers' parameters, and give the same data for the same seed."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench.workloads import catalogue as adversarial
from bench.workloads import catalogue as workloads
from bench.workloads import corpus, graphs, rtf
from bench.workloads import graphs as overlap
from bench.workloads import mixed as metadata
from bench.workloads.catalogue import SEED, WORKLOADS, Place, rtf_case
from bench.workloads.corpus import Pieces, SubscriptionRows, write_rows
from bench.workloads.mixed import write_documents
from bench.workloads.rtf import RtfQueries
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import raise_refusal
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import FullText, Pattern
from triplewire.ir.taxonomy import EMPTY
from triplewire.ir.walk import walk
from triplewire.languages.sources.files import read_rows
from triplewire.partition.containment import ContainmentPartitioner
from triplewire.partition.placement import SERVER
from triplewire.read import read

pytestmark = pytest.mark.xdist_group("generators")  # one worker makes what all share


@pytest.fixture(scope="module")
def documents() -> list[corpus.Document]:
    return rtf.publications(5_000, SEED)


@pytest.fixture(scope="module")
def articles(documents: list[corpus.Document]) -> corpus.Corpus:
    return corpus.build(documents)


def _queries(path: Path) -> list[str]:
    return [json.loads(line)["query"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_rtf_publications_have_the_stated_means(articles: corpus.Corpus) -> None:
    found = articles.describe()
    assert found["publications"] == 5_000
    assert found["mean triples"] == pytest.approx(13.3, rel=0.03)
    assert found["mean words"] == pytest.approx(58.2, rel=0.03)
    assert found["median words"] == pytest.approx(45, rel=0.05)
    assert found["most words"] == pytest.approx(10_656, abs=10)
    assert found["classes"] == pytest.approx(475, rel=0.05)
    assert found["properties"] == pytest.approx(436, rel=0.02)
    assert found["distinct words"] == pytest.approx(38_790, rel=0.03)


def test_words_are_used_as_in_languages(articles: corpus.Corpus) -> None:
    """Zipf: few words make most of a text, and half of all words occur once or twice."""
    counts = np.sort(np.bincount(articles.word))[::-1]
    assert 0.03 < counts[0] / counts.sum() < 0.09
    assert counts[:200].sum() / counts.sum() > 0.4
    assert np.count_nonzero(counts <= 2) / len(counts) > 0.5


def test_rtf_queries_have_the_stated_form(articles: corpus.Corpus, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    RtfQueries(articles, 0.5).write(path, 2_000, SEED)
    refused: list[object] = []
    found = [parsed.subscription for parsed in read_rows([path], on_refusal=refused.append)]
    assert not refused
    assert len(found) == len({subscription.id for subscription in found}) == 2_000
    sizes, words = Counter[int](), Counter[int]()
    for subscription in found:
        sizes[sum(isinstance(node, Pattern) for node in walk(subscription.where))] += 1
        texts = [node for node in walk(subscription.where) if isinstance(node, FullText)]
        words[len(texts)] += 1
    assert set(sizes) == {1, 2, 3, 4}
    assert words[1] / len(found) == pytest.approx(0.5, abs=0.03)
    assert all(query.count("ftAND") <= 2 for query in _queries(path))


def test_the_match_rate_is_that_of_the_real_queries(
    documents: list[corpus.Document], articles: corpus.Corpus, tmp_path: Path
) -> None:
    """1.466 % of the pairs match where half of the queries have words; alien queries match nothing."""
    path, publications = tmp_path / "q.jsonl", tmp_path / "p.nq"
    RtfQueries(articles, 0.5).write(path, 1_500, SEED, alien=300)
    publications.write_bytes(corpus.to_nquads(documents[:60]))
    engine = Engine(matcher="reference")
    engine.load_subscriptions(path)
    matched = [int(match.subscription[1:]) for match in engine.match(read(publications))]
    assert 0.008 < len(matched) / (1_500 * 60) < 0.024
    assert max(matched) < 1_500


def test_same_seed_same_bytes(articles: corpus.Corpus, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        RtfQueries(articles, 1.0).write(path, 500, seed)
    texts = [path.read_bytes() for path in paths]
    assert texts[0] == texts[1] != texts[2]
    assert rtf.publications(40, 7) == rtf.publications(60, 7)[:40] != rtf.publications(40, 8)


def test_small_publications_read_back_as_they_were(tmp_path: Path) -> None:
    documents = rtf.publications(30, SEED)
    path = tmp_path / "p.nq"
    path.write_bytes(corpus.to_nquads(documents))
    assert [(f"<{p.id}>", len(p.graph.triples)) for p in read(path)] == [(name, len(s)) for name, s in documents]
    assert corpus.from_nquads(path) == [(name, list(statements)) for name, statements in documents]


@pytest.mark.parametrize("parameters", [graphs.GTOPSS, graphs.CLUSTER, graphs.CLUSTER_MANY])
def test_graph_workloads(parameters: graphs.GraphWorkload, tmp_path: Path) -> None:
    """Each publication has its number of matches, whatever the number of subscriptions asked for."""
    path, publications = tmp_path / "s.jsonl", tmp_path / "p.nq"
    count = 600
    documents = graphs.write_graphs(parameters, path, count, SEED)
    publications.write_bytes(corpus.to_nquads(documents[:5]))
    assert all(parameters.edges - 2 <= len(statements) <= parameters.edges for _, statements in documents)
    queries = _queries(path)
    assert Counter(query.count(" AND ") + 1 for query in queries) == {5: count // 2, 10: count // 2}
    assert sum("?x1" in query for query in queries) / count == pytest.approx(graphs.WITH_STARS, abs=0.06)
    engine = Engine(matcher="reference")
    engine.load_subscriptions(path)
    found = Counter(match.publication for match in engine.match(read(publications)))
    assert set(found.values()) == {parameters.matches_of(count)}


@pytest.mark.parametrize("percent", [0, 50, 75])
def test_contained_subscriptions_match_in_proportion(percent: int, tmp_path: Path) -> None:
    """Each publication has 30 nodes, 90 edges but for repetitions, and its number of matches, of which as many are
    contained as of all subscriptions."""
    path, stories, count, matches = tmp_path / "s.jsonl", tmp_path / "p.nq", 400, 40
    workload = graphs.GraphWorkload(30, 90, count, matches)
    documents = overlap.write_overlap(workload, path, count, percent, SEED)
    stories.write_bytes(corpus.to_nquads(documents))
    publications = overlap.editions(read(stories), 23, workload.edges, SEED)
    assert len(documents) == count // matches
    assert len({publication.content_hash for publication in publications}) == len(publications)
    for publication in publications:
        assert len({term for s, _, o in publication.triples for term in (s, o)}) == 30
        assert 88 <= len(publication.triples) <= 90
    subscriptions = [parsed.subscription for parsed in read_rows([path], on_refusal=raise_refusal)]
    contained = {subscription.id for subscription in subscriptions if subscription.id.startswith("c")}
    assert len(contained) == count * percent // 100
    engine = Engine(matcher="reference")
    engine.load_subscriptions(path)
    found = list(engine.match(publications))
    assert set(Counter(match.publication for match in found).values()) == {matches}
    assert sum(match.subscription in contained for match in found) == len(found) * percent // 100
    made = ContainmentPartitioner(2, World(EMPTY, {}, Settings()))
    made.subscribe(subscriptions)
    at_server = {id for id, where in made.placement.place.items() if where == SERVER}
    assert not at_server & contained
    most = count - len(contained)
    assert 0.97 * most < len(at_server) <= most, "a few of those of one story are contained by chance"


def test_alien_subscriptions_of_the_graph_workload_match_nothing(tmp_path: Path) -> None:
    path, publications = tmp_path / "s.jsonl", tmp_path / "p.nq"
    own, alien = 60, 300
    publications.write_bytes(corpus.to_nquads(write_documents(path, own, SEED, alien=alien)[:200]))
    assert sum("<urn:alien:" in query for query in _queries(path)) == alien
    engine = Engine()
    engine.load_subscriptions(path)
    numbers = {int(match.subscription[1:]) for match in engine.match(read(publications))}
    assert numbers
    assert max(numbers) < own


def test_full_graph_workloads_have_the_papers_matches() -> None:
    assert graphs.GTOPSS.matches_of(30_000) == 30  # 0.1 %
    assert graphs.CLUSTER.published(100_000) == 500
    assert graphs.CLUSTER_MANY.published(100_000) == 50


@pytest.mark.parametrize(("count", "windows"), [(990, False), (1_980, False), (990, True)])
def test_same_structure_matches_stay_constant(count: int, windows: bool, tmp_path: Path) -> None:
    path, publications = tmp_path / "s.jsonl", tmp_path / "p.nq"
    graphs.write_same_structure(path, count, SEED, windows=windows)
    publications.write_bytes(corpus.to_nquads(graphs.mints(10, SEED)))
    forms = {re.sub(r"-?\d+\.\d{9}", "c", query) for query in _queries(path)}
    assert len(forms) == (1 if windows else 3), "one structure, three operators"
    engine = Engine(matcher="reference")
    engine.load_subscriptions(path)
    found = Counter(match.publication for match in engine.match(read(publications)))
    assert len(found) == 10
    assert sum(found.values()) / 10 == pytest.approx(graphs.SAME_MATCHES, rel=0.15 if windows else 0.02)


def test_each_provider_is_found_by_one_rule_of_each_type_and_a_tenth_of_comp(tmp_path: Path) -> None:
    path, publications = tmp_path / "s.jsonl", tmp_path / "p.nq"
    assert metadata.write_rules(path, 50) == 200
    publications.write_bytes(corpus.to_nquads(metadata.providers(6, 50)))
    engine = Engine(matcher="reference")
    engine.load_subscriptions(path)
    found = [(int(match.subscription[1:]) % 4, match.publication) for match in engine.match(read(publications))]
    counts = Counter(kind for kind, _ in found)
    assert counts == {0: 6, 1: 6 * 5, 2: 6, 3: 6}
    assert len({publication for _, publication in found}) == 6


def test_the_hard_cases_are_as_hard_as_they_say(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    ((_, large),) = adversarial.many_triples(path, 10, SEED)
    assert len(large) == 10_000
    ((_, facts),) = adversarial.long_literal(path, 10, SEED)
    assert max(len(value.split()) for _, _, value in facts) == 14_254
    adversarial.thresholds(path, 3_000, SEED)
    assert len(set(_queries(path))) == 3_000
    adversarial.one_word(path, 3_000, SEED)
    assert len(set(_queries(path))) == 3_000


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_subscription_of_a_workload_is_accepted(
    workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "RTF_PUBLICATIONS", 300)
    for case in WORKLOADS[workload](Place(tmp_path, 40)):
        refused: list[object] = []
        found = [parsed.subscription for parsed in read_rows([case.subscriptions], on_refusal=refused.append)]
        assert not refused
        assert len({subscription.id for subscription in found}) == len(found) > 0
        assert next(iter(read(case.publications))).graph.triples


def test_a_folder_of_real_data_takes_the_place_of_the_generator(tmp_path: Path) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    data.mkdir()
    work.mkdir()
    name = "<http://e.org/a>"
    line = f'{name} <http://e.org/title> "Olympic Games"@en {name} .\n'
    (data / "mixed-5000.nq.gz").write_bytes(gzip.compress(line.encode()))
    query = [7, 1, [["?p", "<http://e.org/title>", "?v0", ["games", "olympic"]]]]
    (data / "rtf-queries-100k-ft050.jsonl.gz").write_bytes(gzip.compress((json.dumps(query) + "\n").encode()))
    case = rtf_case(Place(work, 1, data), 50, 1)
    engine = Engine()
    engine.load_subscriptions(case.subscriptions)
    assert [m.subscription for m in engine.match(read(case.publications))] == ["7"]


def test_rows_are_made_of_pieces(tmp_path: Path) -> None:
    pieces, path = Pieces(), tmp_path / "rows"
    row = SubscriptionRows(pieces, "sparql", "q", 'a"', "z")
    words = pieces.add_all(["b", "c"])
    assert write_rows(path, pieces, [row.around(words[[[0, 1], [1, 1]]], 999)]) == 2
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [
        {"id": "q000000999", "language": "sparql", "query": 'a"bcz'},
        {"id": "q000001000", "language": "sparql", "query": 'a"ccz'},
    ]
