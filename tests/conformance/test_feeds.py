"""All feed files of the shared data: no crash, and as many items, read or refused, as feedparser has entries."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import feedparser
import pytest

from shared_data import members
from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.model.references import id_iri
from triplewire.model.terms import IRI, Triple
from triplewire.read import read_document
from triplewire.read.feeds.vocabulary import CHANNEL_TITLE, IS_PART_OF, MODIFIED, PAGE

ARCHIVES = {  # feeds with a version and entries, all publications, documents refused
    "feedparser-tests": (1_186, 1_218, 3),
    "gofeed-testdata": (259, 403, 255),  # 252 are JSON that says nothing
    "rome-testfeeds": (169, 801, 7),
    "feedjira-sample-feeds-a": (18, 151, 3),
    "arxiv-derived-feeds": (36, 7_752, 0),
}
ARXIV = "arxiv-derived-feeds"
SUFFIXES = (".xml", ".rss", ".atom", ".rdf", ".json")


@lru_cache(maxsize=1)  # two tests that follow each other look at one archive
def documents(archive: str) -> list[tuple[str, bytes, list[Publication], list[Refusal]]]:
    """Each feed: its name, its bytes, and what reading it gives."""
    found = []
    for name, data in members(f"04-feeds/{archive}.tar.gz"):
        if name.endswith(SUFFIXES):
            refusals: list[Refusal] = []
            found.append((name, data, read_document(data, f"/{name}", on_refusal=refusals.append), refusals))
    return found


def archives() -> Iterator[object]:
    """The one that two tests look at is read once: by one worker of a test run."""
    for name in ARCHIVES:
        yield pytest.param(name, marks=pytest.mark.xdist_group("arxiv")) if name == ARXIV else name


@pytest.mark.parametrize("archive", list(archives()))
def test_item_counts_equal_feedparsers(archive: str) -> None:
    """The item in which a feed is cut off is refused; feedparser gives what there is of it."""
    counts: Counter[str] = Counter()
    differ = []
    for name, data, publications, told in documents(archive):
        refusals = [refusal for refusal in told if not refusal.is_warning]
        counts["publications"] += len(publications)
        counts["refused"] += len(refusals)
        if name.endswith(".json"):
            continue
        parsed = feedparser.parse(io.BytesIO(data))
        if parsed.get("version") and parsed["entries"]:
            counts["feeds"] += 1
            cut = sum("ends within this item" in refusal.reason for refusal in refusals)
            if len({id_iri(p.id) for p in publications if p.triples}) + cut != len(parsed["entries"]):
                differ.append((name, len(parsed["entries"]), len(publications), told))
    assert not differ
    assert (counts["feeds"], counts["publications"], counts["refused"]) == ARCHIVES[archive]


@pytest.mark.xdist_group("arxiv")
def test_three_syntaxes_give_the_same_graphs() -> None:
    """The arXiv feeds: an item is the same graph whichever syntax carried it, but for what one of them cannot say.

    These RSS 2.0 feeds do not say what the channel's IRI is, and these Atom feeds give it no link. Only Atom says when
    an item was updated. The content, by which a stream knows an item again, is the same.
    """
    months: dict[str, dict[str, dict[str, object]]] = {}
    for name, _, publications, told in documents(ARXIV):
        assert not told
        month, _, syntax = name.rpartition("/")[2].partition(".")
        months.setdefault(month, {})[syntax] = {
            p.id: (p.published, p.content_hash, _comparable(p)) for p in publications
        }
    assert len(months) == 12
    for of_syntax in months.values():
        assert of_syntax["rss10.rdf"] == of_syntax["rss20.xml"] == of_syntax["atom.xml"]
    assert sum(len(of_syntax["atom.xml"]) for of_syntax in months.values()) == 2584


def _comparable(publication: Publication) -> frozenset[Triple]:
    """The triples but for the channel's IRI and link, and the time of the last update."""
    (channel,) = (t.object for t in publication.triples if t.predicate == IS_PART_OF)
    triples = [t for t in publication.triples if t.predicate not in (IS_PART_OF, MODIFIED, PAGE)]
    assert [t.predicate for t in triples if t.subject == channel] == [CHANNEL_TITLE]
    unnamed = IRI("urn:channel")
    return frozenset(t._replace(subject=unnamed) if t.subject == channel else t for t in triples)


@pytest.mark.parametrize("split", ["document", "subject"])
def test_real_feeds_in_other_splits(split: str) -> None:
    for name, data in members("04-feeds/feedjira-sample-feeds-a.tar.gz"):
        try:
            found = read_document(data, f"/{name}", split=split)
        except ReadError:
            continue
        if split == "document":
            assert len(found) == 1
        whole = read_document(data, f"/{name}", split="document")[0]
        assert {t for p in found for t in p.triples} == set(whole.triples)
