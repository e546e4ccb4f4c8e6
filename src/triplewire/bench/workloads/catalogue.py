"""The workloads by name. Each writes its subscriptions and publications to files, which the experiments read.

Generators: `rtf`, `graphs`, `metadata`, `mixed`, `adversarial`. What is measured: `experiments`.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from triplewire.bench.workloads import adversarial, corpus, documents, graphs, metadata, mixed, rtf
from triplewire.bench.workloads.corpus import Document
from triplewire.bench.workloads.rtf_queries import RtfQueries
from triplewire.errors import TriplewireError

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
    publications and queries to use instead of generated ones. Tables and pictures of the papers' figures go to the
    folder `figures`."""

    work: Path
    size: int | None = None
    data: Path | None = None
    figures: Path | None = None

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
    for number, (label, (full, write)) in enumerate(adversarial.CASES.items()):
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
