"""A local metadata repository (MDV paper, sections 2.2 and 2.4): a cache of what its rules ask for, and local metadata.

    with Repository.open("sqlite:///repository.db", name="passau") as repository:
        repository.restore(snapshot)         # what a provider has for the rules of this repository
        repository.receive(batch)            # ... and what changed since
        repository.register(documents)       # local metadata, which never leave
        repository.query("search CycleProvider c register c where c.serverInformation.memory > 64")

`triplewire.metadata.follow` connects it to a provider. A batch is received whole or not at all, once, and in order;
so the cache is at every moment what the rules asked for at some version of the provider's documents.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire import crash
from triplewire.config import Settings
from triplewire.errors import GapError, ReadError, Refusal, StoreError
from triplewire.languages.context import Context
from triplewire.languages.mdv import parse_rule
from triplewire.metadata.batches import Batch, Ended, Item, Snapshot, rule_of
from triplewire.metadata.documents import Parsed, all_parsed
from triplewire.metadata.garbage import collect, forget, suspect
from triplewire.metadata.keys import Keys, check_constants, compared_by
from triplewire.metadata.messages import MOST_NAME, Dropped, Put, RuleText, Told, check_name
from triplewire.metadata.repository_query import named_rule, query
from triplewire.metadata.repository_tables import cached, changing, facts, held, metadata, rules, statements, strong
from triplewire.model.terms import IRI, BlankNode, Term, parse_term
from triplewire.store.database import Database, fact, insert_rows, state


class Position(NamedTuple):
    """How far a repository has followed: the stream of a provider, the number of its last batch, and the version of
    the documents then. Without a stream it has followed nobody."""

    stream: str = ""
    number: int = 0
    version: int = 0


class Repository:
    """A repository that is open. Make it with `open`. Any number of threads may use it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(
        cls,
        url: str,
        name: str = "",
        *,
        alone: bool = True,
        warn: Callable[[str], None] = lambda text: None,
        made: bool = True,
    ) -> Repository:
        """Open a repository, or make it, if it may be `made`. `url`: `sqlite:///FILE` or `postgresql://...`; `name`:
        what providers call it; one that has a name keeps it. Without `alone`, another process may follow a provider
        meanwhile. Raises what `Database.open` raises, and `StoreError` where it has another name."""
        repository = cls(Database.open(url, warn=warn, alone=alone, tables=metadata, made=made))
        try:
            if name and (known := repository.name or name) != name:
                remedy = "follow under that name, or give another store"
                raise StoreError(f"the repository has the name {known!r}", source=url, remedy=remedy)
            if name:
                repository.database.write(lambda connection: state(connection, facts, name=name))
        except BaseException:
            repository.close()
            raise
        return repository

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the repository."""
        self.database.close()

    # --- what a provider tells ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What providers call it; "" where it has followed none."""
        with self.database.reading() as connection:
            return fact(connection, facts, "name") or ""

    @property
    def provider(self) -> str:
        """The address of the provider that was followed last, or ""."""
        with self.database.reading() as connection:
            return fact(connection, facts, "provider") or ""

    @property
    def position(self) -> Position:
        """How far it has followed."""
        with self.database.reading() as connection:
            return _position(connection)

    def receive(self, stream: str, batch: Batch) -> bool:
        """Take a batch of a stream in, in one transaction; False where it was there. Raises `GapError` where one before
        it, or the snapshot of that stream, is missing."""

        def work(connection: Connection) -> bool:
            position = _position(connection)
            if position.stream == stream and batch.number <= position.number:
                return False
            if position.stream != stream or batch.number > position.number + 1:
                missing = "its snapshot" if position.stream != stream else f"batch {position.number + 1}"
                raise GapError(f"{missing} is missing before batch {batch.number}", remedy="ask for a snapshot")
            _take_in(connection, batch.items, batch.version)
            crash.point("repository.received")
            state(connection, facts, number=str(batch.number), version=str(batch.version))
            return True

        is_new = self.database.write(work)
        crash.point("repository.committed")
        return is_new

    def restore(self, snapshot: Snapshot, provider: str = "") -> None:
        """Put a snapshot in the place of the cache and the rules, in one transaction; local metadata stay. `provider`:
        the address that it came from."""

        def work(connection: Connection) -> None:
            for table in (cached, held, strong, rules):
                connection.execute(table.delete())
            connection.execute(statements.delete().where(statements.c.document == ""))
            _take_in(connection, snapshot.items, snapshot.version)
            crash.point("repository.restored")
            number, version = str(snapshot.number), str(snapshot.version)
            state(connection, facts, stream=snapshot.stream, number=number, version=version, provider=provider)

        self.database.write(work)

    # --- local metadata ---------------------------------------------------------------------------------------------

    def register(self, documents: Iterable[Put]) -> list[Refusal]:
        """Register local documents, or new versions of them: queries see them, and they never leave. Returns what was
        refused: a malformed document, whose version before goes as well; and warnings. Raises `ArgumentError` for a
        document without a name."""
        refusals: list[Refusal] = []
        contents = {put.document: put.content for put in documents}
        for iri in contents:
            check_name("document", iri)
        read = all_parsed(contents.items(), Settings(max_iri_bytes=MOST_NAME))
        versions = {iri: _local_rows(iri, document, refusals) for iri, document in zip(contents, read, strict=True)}

        def work(connection: Connection) -> None:
            _withdraw(connection, versions)
            for document, rows in versions.items():
                insert_statements(connection, document, rows)

        self.database.write(work)
        return refusals

    def withdraw(self, documents: Iterable[str]) -> list[Refusal]:
        """Delete local documents. Returns a warning for each that there is not."""
        documents, known = list(documents), set(self.local_documents())
        self.database.write(lambda connection: _withdraw(connection, known.intersection(documents)))
        return [
            Refusal("warning", document, "", "there is no such document: nothing is deleted")
            for document in documents
            if document not in known
        ]

    def local_documents(self) -> list[str]:
        """The IRIs of the local documents."""
        column = statements.c.document
        with self.database.reading() as connection:
            return list(connection.execute(sa.select(column).where(column != "").distinct().order_by(column)).scalars())

    # --- what is in it -----------------------------------------------------------------------------------------------

    def rules(self) -> list[RuleText]:
        """The rules that it has at its provider, by id."""
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(rules.c.body).order_by(rules.c.id)).scalars()
            return [rule_of(json.loads(row)) for row in rows]

    def results(self) -> Iterator[tuple[str, list[str]]]:
        """Each rule, by its id, with the resources that it holds, sorted by code point."""
        with self.database.reading() as connection:
            ids = list(connection.execute(sa.select(rules.c.id).order_by(rules.c.id)).scalars())
            rows = connection.execute(sa.select(held.c.rule, held.c.resource))
            resources: dict[str, list[str]] = {}
            for rule, resource in rows:
                resources.setdefault(rule, []).append(resource)
        for id in ids:
            yield id, sorted(resources.get(id, ()))

    def cached(self) -> dict[str, frozenset[tuple[str, str]]]:
        """All cached resources with their statements: pairs of a property and a term in N-Triples notation."""
        columns = cached.c.uri, statements.c.property, statements.c.value
        is_of_cache = (statements.c.document == "") & (statements.c.resource == cached.c.uri)
        with self.database.reading() as connection:
            return _by_resource(connection, sa.select(*columns).outerjoin_from(cached, statements, is_of_cache))

    def query(self, text: str, prefixes: Mapping[str, str] | None = None) -> dict[str, frozenset[tuple[str, str]]]:
        """The resources that a query registers, of cache and local metadata together, with their statements; by one
        statement of SQL. Raises `LanguageError` with line and column."""
        with self.database.reading() as connection:
            ids = connection.execute(sa.select(rules.c.id)).scalars()
            known = {id: named_rule(id) for id in ids}
            rule = parse_rule(text, Context(source="query", prefixes=prefixes or {}, rules=known))
            check_constants(rule, "query")
            of = sa.select(statements.c.resource, statements.c.property, statements.c.value)
            return _by_resource(connection, of.where(statements.c.resource.in_(query(rule))))


def _by_resource(connection: Connection, rows: sa.Select[Any]) -> dict[str, frozenset[tuple[str, str]]]:
    statements_of: dict[str, set[tuple[str, str]]] = {}
    for resource, name, value in connection.execute(rows):
        of = statements_of.setdefault(resource, set())
        if name is not None:
            of.add((name, value))
    return {resource: frozenset(statements_of[resource]) for resource in sorted(statements_of)}


def _local_rows(iri: str, document: Parsed | ReadError, refusals: list[Refusal]) -> list[tuple[str, str, str]]:
    """The statements of a local document. Its blank nodes are named by the document, as no other may mean them."""
    name = hashlib.sha256(iri.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    if isinstance(document, ReadError):
        refusals.append(dataclasses.replace(Refusal.of("publication", iri, document), subject=iri))
        return []
    refusals += document.warnings

    def text(term: Term) -> str:
        return f"_:{name}.{term.label}" if isinstance(term, BlankNode) else str(term)

    triples = dict.fromkeys(document.triples)
    rows = ((text(triple.subject), triple.predicate.value, text(triple.object)) for triple in triples)
    return [(subject[1:-1] if subject[0] == "<" else subject, *rest) for subject, *rest in rows]  # type: ignore[misc]


def _withdraw(connection: Connection, documents: Iterable[str]) -> None:
    if here := [{"d": document} for document in documents]:
        connection.execute(statements.delete().where(statements.c.document == sa.bindparam("d")), here)


def insert_statements(connection: Connection, document: str, rows: Iterable[tuple[str, str, str]]) -> None:
    """Insert statements of a document ("": of the cache): resource, property, and a term in N-Triples notation."""
    insert_rows(connection, statements, [(document, *row, *_value_columns(row[2])) for row in rows])


@lru_cache(maxsize=4_096)
def _value_columns(text: str) -> tuple[str | None, *Keys]:
    """What a value refers to, and what it is compared by."""
    term = parse_term(text)
    refers = text if isinstance(term, BlankNode) else term.value if isinstance(term, IRI) else None
    return refers, *compared_by(term)


def _take_in(connection: Connection, items: Sequence[Item], version: int) -> None:
    """Bring the cache up to a version: what was told takes the place of what was cached, and what lost its last reason
    goes."""
    told = {item.resource: item for item in items if isinstance(item, Told)}
    _exchange_rules(connection, [item for item in items if isinstance(item, RuleText | Ended)])
    dropped = [(item.resource, rule) for item in items if isinstance(item, Dropped) for rule in item.rules]
    insert_rows(connection, changing, [(uri,) for uri in {*told, *(uri for uri, _ in dropped)}])
    _let_go(connection, dropped)
    changed = sa.select(changing.c.uri)
    suspect(connection, changed)
    suspect(connection, sa.select(strong.c.target).where(strong.c.source.in_(changed)))
    if told:
        # what was only dropped stays as it is, unless it is garbage
        dropped_only = [{"u": uri} for uri, _ in dropped if uri not in told]
        if dropped_only:
            connection.execute(changing.delete().where(changing.c.uri == sa.bindparam("u")), dropped_only)
        forget(connection, changed)
        _tell(connection, told.values(), version)
    connection.execute(changing.delete())
    collect(connection)


def _tell(connection: Connection, told: Iterable[Told], version: int) -> None:
    """Write down what was told of resources that are not cached."""
    told = list(told)
    insert_rows(connection, cached, [(item.resource, version) for item in told])
    links = [(item.resource, target) for item in told for target in dict.fromkeys(item.strong)]
    insert_rows(connection, strong, links)
    insert_statements(connection, "", ((item.resource, *pair) for item in told for pair in item.statements))
    holds = [(item.resource, rule) for item in told for rule in dict.fromkeys(item.rules)]
    _let_go(connection, holds)  # what is told again
    insert_rows(connection, held, holds)


def _let_go(connection: Connection, pairs: Sequence[tuple[str, str]]) -> None:
    """Delete these pairs of a resource and a rule that holds it."""
    if pairs:
        here = (held.c.resource == sa.bindparam("r")) & (held.c.rule == sa.bindparam("i"))
        connection.execute(held.delete().where(here), [{"r": resource, "i": rule} for resource, rule in pairs])


def _exchange_rules(connection: Connection, changes: Sequence[RuleText | Ended]) -> None:
    """Add rules, and remove others with what they hold."""
    ended = [{"i": change.rule} for change in changes if isinstance(change, Ended)]
    new = [change for change in changes if isinstance(change, RuleText)]
    if here := [*ended, *({"i": rule.id} for rule in new)]:
        connection.execute(rules.delete().where(rules.c.id == sa.bindparam("i")), here)
    insert_rows(connection, rules, [(rule.id, json.dumps(dataclasses.asdict(rule))) for rule in new])
    for entry in ended:
        suspect(connection, sa.select(held.c.resource).where(held.c.rule == entry["i"]))
        connection.execute(held.delete().where(held.c.rule == entry["i"]))


def _position(connection: Connection) -> Position:
    stream, number, version = (fact(connection, facts, name) for name in Position._fields)
    return Position(stream or "", int(number or 0), int(version or 0))
