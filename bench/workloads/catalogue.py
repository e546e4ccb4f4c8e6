"""The workloads by name. Each writes its subscriptions and publications to files, which the experiments read.

Generators: `rtf`, `graphs`, `metadata`, `mixed`, `adversarial`. What is measured: `experiments`.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from bench.workloads import corpus, graphs, mixed, rtf
from bench.workloads import mixed as documents
from bench.workloads import mixed as metadata
from bench.workloads.corpus import (
    CHUNK,
    TYPE,
    Document,
    Pieces,
    Rows,
    SubscriptionRows,
    ZipfDraws,
    iri,
    quoted,
    word,
    write_rows,
)
from bench.workloads.rtf import RtfQueries
from triplewire.errors import TriplewireError

# --- adversarial -----------------------------------------------------------------------------------------------------
# Workloads that are hard for an index: each case has publications and subscriptions of its own.


MANY_TRIPLES, MANY_WORDS = 10_000, 14_254
_VALUE, _TEXT = iri("hard", "value"), iri("hard", "text")


def thresholds(path: Path, count: int, seed: int) -> list[Document]:
    """`?v > c` with another c in each subscription; the values hold for a tenth, a half and nine tenths of them."""
    pieces = Pieces()
    head = f"SELECT ?s WHERE {{ ?s {_VALUE} ?v FILTER(?v > "
    _write(path, pieces, SubscriptionRows(pieces, "sparql", "t", head, ") }"), pieces.add_all(map(str, range(count))))
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    values = (count // 10, count // 2, count * 9 // 10)
    return [_single(f"v{n}", [(_VALUE, f'"{value}"{integer}')]) for n, value in enumerate(values)]


def variables(path: Path, count: int, seed: int) -> list[Document]:
    """One to four patterns of variables alone: chains, stars and pairs that share no variable, over 60 triples."""
    shapes = [
        "?a ?b ?c",
        "?a ?b ?c . ?c ?d ?e",
        "?a ?b ?c . ?a ?d ?e . ?a ?f ?g",
        "?a ?b ?c . ?d ?e ?f",
        "?a ?b ?c . ?c ?b ?d",
        "?a ?b ?c . ?d ?b ?e . ?f ?b ?g",
        "?a ?b ?c . ?c ?d ?e . ?e ?f ?a",
        "?a ?b ?a",
        "?a ?b ?c . ?c ?d ?e . ?e ?f ?g . ?g ?h ?i",
    ]
    pieces = Pieces()
    row = SubscriptionRows(pieces, "sparql", "v", "SELECT * WHERE { ", " }")
    _write(path, pieces, row, pieces.add_all(shapes)[np.arange(count) % len(shapes)])
    nodes = [iri("hard", f"n{n}") for n in range(20)]
    facts = [(nodes[n % 20], iri("hard", f"p{n % 3}"), nodes[(7 * n + n // 20) % 20]) for n in range(60)]
    return [(iri("hard", "variables"), list(dict.fromkeys(facts)))]


def many_triples(path: Path, count: int, seed: int) -> list[Document]:
    """RTF queries against one publication that holds what many others say."""
    documents = rtf.publications(1_500, seed)
    RtfQueries(corpus.build(documents), 0.5).write(path, count, seed)
    statements = dict.fromkeys(s for _, parts in documents for s in parts)
    return [(iri("hard", "triples"), list(statements)[:MANY_TRIPLES])]


def long_literal(path: Path, count: int, seed: int) -> list[Document]:
    """RTF queries, all of them with words, against one publication with one very long abstract."""
    documents = rtf.publications(500, seed)
    RtfQueries(corpus.build(documents), 1.0).write(path, count, seed)
    ranks = ZipfDraws(100_000, 1.04, 2.0).draw(np.random.default_rng(seed), MANY_WORDS)
    name, statements = next(d for d in documents if any(p == rtf.ABSTRACT for _, p, _ in d[1]))
    text = f'"{" ".join(map(word, ranks.tolist()))}"@en'
    return [(name, [(s, p, text if p == rtf.ABSTRACT else o) for s, p, o in statements])]


def one_word(path: Path, count: int, seed: int) -> list[Document]:
    """Subscriptions that are equal but for one word of two; the texts hold the common word and a few of the others."""
    pieces = Pieces()
    head = f'SELECT * WHERE {{ ?s {TYPE} {iri("hard", "Page")} . ?s {_TEXT} ?t FILTER ftcontains(?t, "common" ftAND "'
    other = pieces.add_all(quoted(word(n)) for n in range(1_000, 1_000 + count))
    _write(path, pieces, SubscriptionRows(pieces, "sparql", "w", head, '") }'), other)
    dice = np.random.default_rng(seed)
    out: list[Document] = []
    for number in range(20):
        chosen = dice.integers(1_000, 1_000 + count, 40).tolist()
        text = f'"common {" ".join(map(word, chosen))}"@en'
        out.append(_single(f"w{number}", [(TYPE, iri("hard", "Page")), (_TEXT, text)]))
    return out


CASES: dict[str, tuple[int, Callable[[Path, int, int], list[Document]]]] = {
    "100,000 distinct thresholds of one predicate": (100_000, thresholds),
    "patterns of variables alone": (900, variables),
    "a publication of 10,000 triples": (10_000, many_triples),
    "a literal of 14,254 words": (10_000, long_literal),
    "equal but for one word": (100_000, one_word),
}
"""Label -> the full number of subscriptions, and a function that writes them and returns the publications."""


def _single(local: str, facts: list[tuple[str, str]]) -> Document:
    subject = iri("hard", local)
    return subject, [(subject, predicate, value) for predicate, value in facts]


def _write(path: Path, pieces: Pieces, row: SubscriptionRows, queries: Rows) -> None:
    """Rows whose query is one piece between head and tail."""

    def chunks() -> Iterator[Rows]:
        for first in range(0, len(queries), CHUNK):
            yield row.around(queries[first : first + CHUNK, None], first)

    write_rows(path, pieces, chunks())


# --- catalogue ------------------------------------------------------------


SEED = 4
RTF_SUBSCRIPTIONS, RTF_PUBLICATIONS = 100_000, 5_000
GRAPH_SUBSCRIPTIONS = 100_000
MDV_RULES, MDV_DOCUMENTS = 10_000, 1_000
MIXED_SUBSCRIPTIONS, MIXED_PUBLICATIONS = 40_000, 1_000
SHARES = (0, 50, 100)
REAL_PUBLICATIONS = "mixed-5000.nq.gz"
_REAL_QUERIES = "rtf-queries-100k-ft{share:03d}.jsonl.gz"
_BYTES_A_ROW = 320  # of an RTF subscription file


@dataclass(frozen=True, slots=True)
class Case:
    """A named pair of files: subscriptions as JSON Lines, publications as N-Quads."""

    label: str
    subscriptions: Path
    publications: Path


@dataclass(frozen=True, slots=True)
class Place:
    """Where files are written. `size` replaces the workload's number of subscriptions. `data` is a folder with real
    publications and queries to use instead of generated ones. `only`: names of parts that are wanted, where others are
    not."""

    work: Path
    size: int | None = None
    data: Path | None = None
    only: tuple[str, ...] = ()

    def sized(self, full: int) -> int:
        """How many subscriptions a case of `full` gets."""
        return full if self.size is None else self.size

    def case(self, label: str, name: str, write: Callable[[Path], Iterable[Document]]) -> Case:
        """The case of this file name; `write` is called with the path of the subscriptions and returns the
        publications."""
        case = Case(label, self.work / f"{name}.jsonl", self.work / f"{name}.nq")
        if not case.publications.exists():  # it is written last
            case.publications.write_bytes(corpus.to_nquads(write(case.subscriptions)))
        return case


# --- RTF -------------------------------------------------------------------------------------------------------------


def rtf_publications(place: Place) -> Path:
    """The file of the RTF publications, generated or real."""
    path = place.work / "rtf.nq"
    if not path.exists():
        if place.data is None:
            path.write_bytes(corpus.to_nquads(rtf.publications(RTF_PUBLICATIONS, SEED)))
        else:
            real = place.data / REAL_PUBLICATIONS
            if not real.is_file():
                raise TriplewireError(f"{real} does not exist", remedy="leave --data out: all data can be generated")
            with gzip.open(real, "rb") as stream, path.open("wb") as out:
                shutil.copyfileobj(stream, out)
    return path


def rtf_case(place: Place, share: int, count: int, *, alien: int = 0, seed: int = SEED, label: str = "") -> Case:
    """RTF with `count` queries of which `share` percent have words, and `alien` further ones that match nothing."""
    publications = rtf_publications(place)
    path = place.work / f"rtf-{share}-{count}-{alien}-{seed}.jsonl"
    if not path.exists():
        part = path.with_suffix(".part")
        _room_for(part, (count + alien) * _BYTES_A_ROW)
        real = None if place.data is None or alien else place.data / _REAL_QUERIES.format(share=share)
        if real is None or not real.is_file() or _real_queries(real, part, count) < count:
            RtfQueries(_corpus(publications), share / 100).write(part, count, seed, alien=alien)
        part.rename(path)
    return Case(label or f"{share} % text", path, publications)


@lru_cache(maxsize=1)
def _corpus(publications: Path) -> corpus.Corpus:
    return corpus.build(corpus.from_nquads(publications))


def _room_for(path: Path, size: int) -> None:
    """Raises `TriplewireError` where the disk has too little space for a file of `size` bytes."""
    free = shutil.disk_usage(path.parent).free
    if free < 2 * size:
        raise TriplewireError(
            f"{path.parent} has {free:,} bytes left; the workload needs {2 * size:,}", remedy="point TMPDIR elsewhere"
        )


def _real_queries(source: Path, path: Path, most: int) -> int:
    """Write queries that are given as `[id, matches, [tuple, ...]]` as SPARQL; returns how many there were."""
    count = 0
    with gzip.open(source, "rt", encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
        for line in lines:
            id_, _, tuples = json.loads(line)
            body = " ".join(f"{' '.join(item[:3])} ." for item in tuples)
            for item in tuples:
                if len(item) > 3:
                    words = " ftAND ".join(f'"{w}"' for w in item[3])
                    body += f" FILTER ftcontains({item[2]}, {words})"
            query = f"SELECT * WHERE {{ {body} }}"
            row = {"id": str(id_), "language": "sparql", "query": query}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
            if count == most:
                break
    return count


def _rtf(place: Place) -> list[Case]:
    return [rtf_case(place, share, place.sized(RTF_SUBSCRIPTIONS)) for share in SHARES]


# --- the others ------------------------------------------------------------------------------------------------------


def _graph(label: str, name: str, parameters: graphs.GraphWorkload) -> Callable[[Place], Case]:
    def case(place: Place) -> Case:
        size = place.sized(parameters.subscriptions)
        return place.case(label, f"{name}-{size}", lambda path: graphs.write_graphs(parameters, path, size, SEED))

    return case


_GTOPSS = _graph("table 1", "gtopss", graphs.GTOPSS)
_CLUSTER = _graph("0.1 % match", "cluster", graphs.CLUSTER)
_CLUSTER_MANY = _graph("1 % match", "cluster-many", graphs.CLUSTER_MANY)


def document_case(place: Place, size: int, *, alien: int = 0) -> Case:
    """Subscriptions that are cut from documents, and `alien` further ones that match nothing."""
    return place.case(
        f"{size + alien:,} subscriptions",
        f"graph-{size}-{alien}",
        lambda path: documents.write_documents(path, size, SEED, alien=alien),
    )


def same_structure(place: Place, size: int, *, windows: bool = False) -> Case:
    """The subscriptions of figure 9(b) of the cluster paper."""

    def write(path: Path) -> list[Document]:
        graphs.write_same_structure(path, size, SEED, windows=windows)
        return graphs.mints(1_000, SEED)

    what = "windows" if windows else "same structure"
    return place.case(f"{what}, {size:,}", f"{what.replace(' ', '-')}-{size}", write)


def _mdv(place: Place) -> list[Case]:
    rules = max(1, place.sized(MDV_RULES))
    out = []
    for kind in metadata.RULE_TYPES:

        def write(path: Path, kind: str = kind) -> list[Document]:
            metadata.write_rules(path, rules, types=(kind,))
            return metadata.providers(min(MDV_DOCUMENTS, rules), rules)

        out.append(place.case(kind, f"mdv-{kind}-{rules}", write))
    return out


def _mixed(place: Place) -> list[Case]:
    size = place.sized(MIXED_SUBSCRIPTIONS)
    publications = min(MIXED_PUBLICATIONS, max(8, size))
    name = f"mixed-{size}"
    return [place.case("four languages", name, lambda path: mixed.write_mixed(path, size, publications, SEED))]


def _adversarial(place: Place) -> list[Case]:
    out = []
    for number, (label, (full, write)) in enumerate(CASES.items()):
        size = min(full, place.sized(full))
        out.append(
            place.case(label, f"adversarial-{number}-{size}", lambda path, w=write, n=size: w(path, n, SEED))  # type: ignore[misc]  # mypy cannot type the defaults
        )
    return out


WORKLOADS: dict[str, Callable[[Place], list[Case]]] = {
    "gtopss": lambda place: [_GTOPSS(place)],
    "cluster": lambda place: [_CLUSTER(place), _CLUSTER_MANY(place)],
    "mdv": _mdv,
    "adversarial": _adversarial,
    "mixed": _mixed,
    "rtf": _rtf,
}
"""Workload -> a function that gives its cases; short workloads come first."""
