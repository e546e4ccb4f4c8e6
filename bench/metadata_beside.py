"""The registry of metadata beside what one would do without it.

That is systems that are asked all rules again, lists of resources that are compared, bare inserts, a bare exchange.
They are ratios of one run, in which other load of the machine counts on both sides. The rules are of the four types of
the paper in equal parts, over documents like its figure 1.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.peers import pathway
from bench.peers.postgres import server
from bench.report import Figure
from bench.workloads.catalogue import Place
from bench.workloads.mdv_documents import SPACE, document, mixed, name_of
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.metadata import filter as matching
from triplewire.metadata.batches import Batch
from triplewire.metadata.follow import Follower
from triplewire.metadata.messages import Change, Put, RuleText, Told
from triplewire.metadata.provider import Provider
from triplewire.metadata.registry import Registry
from triplewire.metadata.remote import RemoteProvider
from triplewire.metadata.repository import Repository
from triplewire.read import read_document

NAME = "metadata"
RULES, DOCUMENTS, BATCH = 40_000, 1_000, 100
LISTS, PEERS, POSTGRES, INSERTS, VISIBLE = 0.5, 50, 0.7, 3.0, 5.0
_ASKED = 200  # rules that a peer is asked, of all that it would have to be
_VALUE = 10  # so many COMP rules fit each document
_RUNS = 5
_SEEN = 40  # changes that a repository is watched for
_LMR = "lmr"
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def figures(place: Place) -> Iterator[Figure]:
    """All figures that set the registry beside something else."""
    full = place.size is None
    rules, count = mixed(place.sized(RULES)), place.sized(DOCUMENTS)
    base = [document(number, _VALUE) for number in range(count)]
    url = f"sqlite:///{place.work / 'beside.db'}"
    with Provider.open(url) as provider:
        provider.subscribe(_LMR, rules)
        provider.snapshot(_LMR)
        provider.apply(base)
        seconds = _updates(provider.registry.apply)
        for peer, ask in (("pyoxigraph", _oxigraph), ("PostgreSQL", _postgres)):
            yield _asked_again(provider.registry, peer, ask, rules, base, seconds, full)
        yield _pathway(provider.registry, rules, base, full)
        sqlite = _registered(provider, count)
    three, listed, _ = updated_three_ways(place.work / "lists.db", rules, count)
    name = f"a batch of {BATCH} updates / lists of resources compared"
    yield Figure(NAME, name, three / listed, "x", LISTS if full else None)
    yield _by_the_engine(place.work / "engine.db", rules)
    bare = _inserts(place.work / "beside.db", place.work / "bare.db", count)
    name = f"{len(rules):,} rules, new documents in batches of {BATCH}"
    yield Figure(NAME, f"{name}: SQLite / bare inserts", sqlite / bare, "x", INSERTS if full else None)
    yield _on_postgres(rules, base, sqlite, name, full)
    yield _visible(place.work / "visible", rules, base, full)


def _batches(first: int, value: int) -> Iterator[list[Change]]:
    """Batches of documents from a number on."""
    for run in range(_RUNS):
        yield [document(first + run * BATCH + place, value) for place in range(BATCH)]


def _updates(apply: Callable[[Sequence[Change]], object]) -> float:
    """The seconds of a batch in which each document gets another value: the median of some batches."""
    costs = []
    for run in range(_RUNS):
        batch = [document(place, _VALUE + 1 + run) for place in range(BATCH)]
        begun = time.perf_counter()
        apply(batch)
        costs.append(time.perf_counter() - begun)
    apply([document(place, _VALUE) for place in range(BATCH)])
    return statistics.median(costs)


# --- all rules asked again -------------------------------------------------------------------------------------------

_Asked = Callable[[Sequence[Change], Sequence[RuleText]], tuple[float, list[set[str]]]]


def _asked_again(
    registry: Registry,
    peer: str,
    ask: _Asked,
    rules: Sequence[RuleText],
    base: Sequence[Change],
    seconds: float,
    full: bool,
) -> Figure:
    """How many times longer a peer takes for all rules than the filter for a batch; a sample is asked, whose answers
    are ours."""
    name = f"{peer} asked {len(rules):,} rules again, over the filter of a batch of {BATCH}"
    sample = rules[:: max(len(rules) // _ASKED, 1)]
    try:
        spent, answers = ask(base, sample)
    except (ImportError, FileNotFoundError) as missing:
        return Figure(NAME, name, None, "x", None, at_least=True, note=str(missing))
    ours = [set(held) for _, _, held in registry.results(_LMR, [rule.id for rule in sample])]
    if ours != answers:
        raise TriplewireError(f"{peer} answers differently")
    again = spent / len(sample) * len(rules)
    return Figure(NAME, name, again / seconds, "x", PEERS if full else None, at_least=True)


def _pathway(registry: Registry, rules: Sequence[RuleText], base: Sequence[Put], full: bool) -> Figure:
    """How many times longer Pathway takes for a batch of updates, with the rules as tables, in memory."""
    name = f"Pathway with {len(rules):,} rules as tables, over a batch of {BATCH} updates, both from bytes"
    values = range(_VALUE + 1, _VALUE + 1 + _RUNS)
    try:
        theirs, answers = pathway.updates(rules, base, min(BATCH, len(base)), values)
    except ImportError as missing:
        return Figure(NAME, name, None, "x", None, at_least=True, note=str(missing))
    ours = []
    for value in values:
        batch = [document(place, value) for place in range(min(BATCH, len(base)))]
        begun = time.perf_counter()
        registry.apply(batch)
        ours.append(time.perf_counter() - begun)
    if {(rule, resource) for _, rule, held in registry.results(_LMR) for resource in held} != answers:
        raise TriplewireError("Pathway answers differently")
    return Figure(
        NAME, name, statistics.median(theirs) / statistics.median(ours), "x", 1.0 if full else None, at_least=True
    )


def _triples(base: Sequence[Change]) -> Iterator[tuple[str, str, str, bool]]:
    """Subject, property and value of all statements, and whether the value is a literal."""
    from triplewire.config import Settings
    from triplewire.metadata.documents import parsed
    from triplewire.metadata.messages import Put
    from triplewire.model.terms import Literal

    for change in base:
        assert isinstance(change, Put)
        for s, p, o in parsed(change.document, change.content, Settings()).triples:
            is_literal = isinstance(o, Literal)
            yield s.value, p.value, o.lexical if is_literal else o.value, is_literal  # type: ignore[union-attr]  # no blank node


def _oxigraph(base: Sequence[Change], rules: Sequence[RuleText]) -> tuple[float, list[set[str]]]:
    """Seconds for the rules as SPARQL, and their answers."""
    import pyoxigraph as ox  # a package that is no dependency of the engine

    node: Any = ox.NamedNode
    store: Any = ox.Store()
    store.extend(
        ox.Quad(node(s), node(p), ox.Literal(o) if literal else node(o)) for s, p, o, literal in _triples(base)
    )
    texts = [_SPARQL[_kind(rule)].format(n=_number(rule), iri=name_of(_number(rule))) for rule in rules]
    head = f"PREFIX : <{SPACE}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT DISTINCT ?c WHERE "
    begun = time.perf_counter()
    answers = [{row[0].value for row in store.query(head + text)} for text in texts]
    return time.perf_counter() - begun, answers


def _kind(rule: RuleText) -> str:
    return rule.id.rstrip("0123456789")


def _number(rule: RuleText) -> int:
    return int(rule.id[len(_kind(rule)) :])


_SPARQL = {
    "OID": "{{ ?c a :CycleProvider FILTER(?c = <{iri}#host>) }}",
    "COMP": "{{ ?c a :CycleProvider ; :synthValue ?v FILTER(xsd:decimal(?v) > {n}) }}",
    "PATH": '{{ ?c a :CycleProvider ; :serverInformation/:memory "{n}" }}',
    "JOIN": (
        '{{ ?i :memory "{n}" ; :cpu "600" . ?c :serverInformation ?i ; a :CycleProvider ; :serverHost ?h '
        'FILTER(CONTAINS(?h, "uni-passau.de")) }}'
    ),
}


def _postgres(base: Sequence[Change], rules: Sequence[RuleText]) -> tuple[float, list[set[str]]]:
    """The same as SQL over an indexed table of statements."""
    import psycopg

    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute("CREATE TABLE statements (s text, p text, o text, n numeric)")
        with connection.cursor().copy("COPY statements FROM STDIN") as rows:
            for s, p, o, literal in _triples(base):
                rows.write_row((s, p, o, o if literal and o.isdigit() else None))
        for columns in ("s, p", "p, o", "p, n"):
            connection.execute(f"CREATE INDEX ON statements ({columns})")
        connection.execute("ANALYZE statements")
        texts = [_SQL[_kind(rule)].format(n=_number(rule), iri=name_of(_number(rule)), S=SPACE) for rule in rules]
        begun = time.perf_counter()
        answers = [{row[0] for row in connection.execute(text).fetchall()} for text in texts]
        return time.perf_counter() - begun, answers


_OF_CLASS = f"SELECT DISTINCT c.s FROM statements c %s WHERE c.p = '{_RDF_TYPE}' AND c.o = '{{S}}CycleProvider' AND "
_INFORMATION = "JOIN statements i ON i.s = c.s AND i.p = '{S}serverInformation' JOIN statements m ON m.s = i.o"
_MEMORY = "m.p = '{S}memory' AND m.n = {n}"
_MORE = " JOIN statements u ON u.s = i.o JOIN statements h ON h.s = c.s"
_SQL = {
    "OID": _OF_CLASS % "" + "c.s = '{iri}#host'",
    "COMP": _OF_CLASS % "JOIN statements v ON v.s = c.s" + "v.p = '{S}synthValue' AND v.n > {n}",
    "PATH": _OF_CLASS % _INFORMATION + _MEMORY,
    "JOIN": _OF_CLASS % (_INFORMATION + _MORE)
    + _MEMORY
    + " AND u.p = '{S}cpu' AND u.n = 600 AND h.p = '{S}serverHost' AND h.o LIKE '%uni-passau.de%'",
}


# --- lists of resources, and time-to-live (section 3.5) ---------------------------------------------------------------


def updated_three_ways(file: Path, rules: Sequence[RuleText], count: int) -> tuple[float, float, float]:
    """The seconds of a batch of updates, and what the paper names in place of filtering them three times, over a new
    registry in this file with so many documents.

    A list says of each resource which repositories cache it; whether one still has to, only its rules say: all of them
    are asked, and what they hold is compared. With a time-to-live, each repository is told all that it caches, again
    and again: the seconds of once."""
    base = [document(number, _VALUE) for number in range(count)]
    with Provider.open(f"sqlite:///{file}") as provider, Registry.open(f"sqlite:///{file}.lists") as unruled:
        registry = provider.registry
        registry.subscribe(_LMR, rules)
        for each in (registry, unruled):
            each.apply(base)
        before = {rule: set(held) for _, rule, held in registry.results(_LMR)}

        def update(batch: Sequence[Change]) -> None:
            unruled.apply(batch)
            now = {rule: set(held) for _, rule, held in registry.results(_LMR)}
            moved = {rule for rule, held in now.items() if held != before[rule]}
            before.update((rule, now[rule]) for rule in moved)

        seconds, listed = _updates(registry.apply), _updates(update)
        begun = time.perf_counter()
        told = sum(isinstance(item, Told) for item in provider.snapshot(_LMR).items)
        assert told >= min(count, len(rules) // 4)
        return seconds, listed, time.perf_counter() - begun


def _by_the_engine(file: Path, rules: Sequence[RuleText]) -> Figure:
    """All rules of the paper's types are decided by one document like figure 1: the engine can say which it satisfies.
    How long it takes for the two versions of a batch of updates, over what the filter's statements take for both."""
    filtered: list[float] = []

    def timed(*how: Any) -> None:
        begun = time.perf_counter()
        changed(*how)
        filtered.append(time.perf_counter() - begun)

    engine, changed = Engine(), matching.changed
    for rule in rules:
        engine.subscribe(rule.query, "mdv", id=rule.id, prefixes=rule.prefixes)
    with Registry.open(f"sqlite:///{file}") as registry:
        registry.subscribe(_LMR, rules)
        registry.apply([document(place, _VALUE) for place in range(BATCH)])
        batches = [[document(place, _VALUE + run) for place in range(BATCH)] for run in range(_RUNS + 1)]
        read = [
            [item for each in batch for item in read_document(each.content, each.document, base=each.document)]
            for batch in batches
        ]
        engine.match(read[0])
        matching.changed = timed  # type: ignore[assignment]  # whose arguments it hands on
        try:
            spent = []
            for before, batch, now in zip(read, batches[1:], read[1:], strict=False):
                begun = time.perf_counter()
                held, holds = ({(x.publication, x.subscription) for x in engine.match(each)} for each in (before, now))
                spent.append(time.perf_counter() - begun)
                notices = registry.apply(batch).notices[_LMR]
                begins = {(name, rule) for told in notices if isinstance(told, Told) for rule in told.rules
                          for name in [told.resource.partition("#")[0]]}  # fmt: skip
                if holds - held != begins:
                    raise TriplewireError("the engine answers differently")
        finally:
            matching.changed = changed
    name = f"the engine's matching of a batch of {BATCH} updates, before and after / the filter's statements"
    return Figure(NAME, name, statistics.median(spent) / statistics.median(filtered[-_RUNS:]), "x")


# --- the databases ---------------------------------------------------------------------------------------------------


def _registered(provider: Provider, first: int) -> float:
    """The seconds in which batches of new documents are registered."""
    batches = list(_batches(first, _VALUE))
    begun = time.perf_counter()
    for batch in batches:
        provider.apply(batch)
    return time.perf_counter() - begun


def _inserts(filled: Path, bare: Path, first: int) -> float:
    """The seconds in which the rows of these batches are inserted into the same tables of an empty file, with one
    synced commit a batch."""
    source, target = sqlite3.connect(filled), sqlite3.connect(bare, isolation_level=None)
    tables = "documents", "statements", "types", "terms", "holdings", "log", "outbox"
    names = [f"provider_{table}" if table in ("log", "outbox") else f"md_{table}" for table in tables]
    for kind in ("table", "index"):
        made = source.execute("SELECT sql, tbl_name FROM sqlite_master WHERE type = ? AND sql IS NOT NULL", (kind,))
        for statement in [sql for sql, table in made.fetchall() if table in names]:
            target.execute(statement)
    target.execute(f"PRAGMA journal_mode={source.execute('PRAGMA journal_mode').fetchone()[0]}")
    target.execute("PRAGMA synchronous=FULL")
    seconds, most = 0.0, _largest_term(source, first)
    for _ in range(_RUNS):
        low, high = first + 1, first + BATCH  # documents are numbered from 1 in their order
        (version,) = source.execute(
            "SELECT l.version FROM provider_log l JOIN md_documents d ON d.iri = l.document WHERE d.number = ?", (low,)
        ).fetchone()
        last_term = _largest_term(source, high)
        resources = f"SELECT resource FROM md_types WHERE document BETWEEN {low} AND {high}"
        where = {
            "documents": f"number BETWEEN {low} AND {high}",
            "statements": f"document BETWEEN {low} AND {high}",
            "types": f"document BETWEEN {low} AND {high}",
            "terms": f"number > {most} AND number <= {last_term}",
            "holdings": f"resource IN ({resources})",
            "log": f"version = {version}",
            "outbox": f"version = {version}",
        }
        rows = {
            name: source.execute(f"SELECT * FROM {name} WHERE {where[table]}").fetchall()
            for table, name in zip(tables, names, strict=True)
        }
        begun = time.perf_counter()
        target.execute("BEGIN IMMEDIATE")
        for name, here in rows.items():
            if here:
                target.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(here[0]))})", here)
        target.execute("COMMIT")
        seconds += time.perf_counter() - begun
        first, most = high, last_term
    source.close()
    target.close()
    return seconds


def _largest_term(source: sqlite3.Connection, last: int) -> int:
    """The largest number of a term of the documents up to this one."""
    query = "SELECT max(max(resource), max(value)) FROM md_statements WHERE document <= ?"
    return int(source.execute(query, (last,)).fetchone()[0])


def _on_postgres(rules: Sequence[RuleText], base: Sequence[Change], sqlite: float, name: str, full: bool) -> Figure:
    name = f"{name}: PostgreSQL / SQLite"
    try:
        options = dict(part.split("=", 1) for part in server().split())
    except FileNotFoundError as missing:
        return Figure(NAME, name, None, "x", None, at_least=True, note=str(missing))
    with Provider.open(f"postgresql://{options['user']}@{options['host']}:{options['port']}/postgres") as provider:
        provider.subscribe(_LMR, rules)
        provider.snapshot(_LMR)
        provider.apply(base)
        _updates(provider.apply)
        postgres = _registered(provider, len(base))
    return Figure(NAME, name, sqlite / postgres, "x", POSTGRES if full else None, at_least=True)


# --- a following repository ------------------------------------------------------------------------------------------


class _Watched(Repository):
    """A repository that says when it has a batch."""

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self.came = threading.Event()

    def receive(self, stream: str, batch: Batch) -> bool:
        """As the repository does, and then `came` is set."""
        is_new = super().receive(stream, batch)
        self.came.set()
        return is_new


@contextmanager
def _served(store: str) -> Iterator[str]:
    """A provider in a process of its own, as its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "triplewire", "metadata", "serve", "--store", store, "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process, ExitStack() as ends:  # type: ignore[call-overload]  # files
        ends.callback(process.terminate)
        address, end = f"http://127.0.0.1:{port}", time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(TriplewireError), RemoteProvider(address) as provider:
                provider.health()
                break
            time.sleep(0.1)
        yield address


def _visible(folder: Path, rules: Sequence[RuleText], base: Sequence[Change], full: bool) -> Figure:
    """From a change that is written to a provider over HTTP to the repository that has it on its disk."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    store, stop = f"sqlite:///{folder / 'provider.db'}", threading.Event()
    with Provider.open(store) as provider:
        provider.subscribe(_LMR, rules)
        provider.apply(base)
    seen, floors = [], []
    with ExitStack() as running:
        address = running.enter_context(_served(store))
        writing, asking = (running.enter_context(RemoteProvider(address)) for _ in range(2))
        repository = running.enter_context(_Watched.open(f"sqlite:///{folder / 'repository.db'}", _LMR))
        assert isinstance(repository, _Watched)
        follower = Follower(repository, asking)
        follower.step(0)  # the snapshot
        thread = threading.Thread(target=follower.run, args=(stop,), daemon=True)
        running.callback(stop.set)
        thread.start()
        for number in range(_SEEN):
            floors.append(_floor(folder / "synced", writing))
            repository.came.clear()
            begun = time.perf_counter()
            writing.change([document(number % 20, _VALUE + 1 + number)])
            if not repository.came.wait(60):
                raise TriplewireError("a change was not seen within a minute")
            seen.append(time.perf_counter() - begun)
    name = "a change visible in a following repository / (one sync + one bare exchange)"
    value = statistics.median(seen) / statistics.median(floors)
    return Figure(NAME, name, value, "x", VISIBLE if full else None)


def _floor(file: Path, provider: RemoteProvider) -> float:
    """The seconds of one sync of a page, and of one exchange."""
    begun = time.perf_counter()
    with file.open("ab", buffering=0) as out:
        out.write(bytes(4096))
        os.fsync(out.fileno())
    provider.health()
    return time.perf_counter() - begun
