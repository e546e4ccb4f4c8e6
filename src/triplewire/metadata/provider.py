"""A metadata provider (MDV paper, section 2.2): the registry of global metadata, and what each repository is told.

    with Provider.open("sqlite:///provider.db") as provider:
        provider.apply([Put("http://example.org/doc.rdf", content)])
        provider.subscribe("passau", [RuleText("hosts", "search CycleProvider c register c")])
        snapshot = provider.snapshot("passau")                   # the repository follows from now on
        provider.batches("passau", snapshot.stream, snapshot.number)

What a batch of changes means for a repository is written with it, in one transaction, as the next batch of that
repository's stream (`outbox`), and stays until the repository acknowledges it. A repository that has missed something,
or has not come back for `MOST_WAITING` batches, takes a new snapshot, which begins a new stream.

With a peer (`triplewire.metadata.backbone`) the changes of documents come from its log alone, also while it is not
served; `state("peer", "")` has it write a log of its own again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire import crash
from triplewire.errors import ArgumentError, BusyError, StoreError
from triplewire.metadata import subscribing
from triplewire.metadata.batches import Batch, Ended, Item, Snapshot, items_as_json
from triplewire.metadata.messages import Applied, Change, Put, RuleText, Withdraw, check_name
from triplewire.metadata.provider_tables import facts, log, metadata, outbox, sources, streams
from triplewire.metadata.registry import Registry, Then
from triplewire.metadata.working import prepare
from triplewire.model.terms import IRI
from triplewire.store.database import fact, insert_rows, state

MOST_WAITING = 10_000
"""Batches that are kept for a repository that does not acknowledge them."""

MOST_AT_ONCE = 100
"""Batches that one question is answered with, and entries of the log."""

SCHEMA = ""
"""The document that the log has in place of a schema."""

USUAL_BASE = "file:///"
"""The base IRI of documents, where a provider is given none: the paper's `doc.rdf` is `file:///doc.rdf`."""


class _HasCome(Exception):
    """A batch of a list, or of the log of a peer, was applied before."""


class Entry(NamedTuple):
    """An entry of the log: a document as of a version of the registry; without content it was deleted."""

    version: int
    document: str
    content: bytes | None

    @property
    def change(self) -> Change:
        """The same as a change."""
        return Withdraw(self.document) if self.content is None else Put(self.document, self.content)


class Provider:
    """A provider that is open. Make it with `open`. Any number of threads may use it."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.database = registry.database
        self.listeners: list[Callable[[set[str]], None]] = []
        """Each is called with the names of repositories that have new batches, and with "" for new documents."""

    @classmethod
    def open(
        cls,
        url: str,
        base: str = "",
        *,
        alone: bool = True,
        warn: Callable[[str], None] = lambda text: None,
        made: bool = True,
    ) -> Provider:
        """Open a provider, or make it, if it may be `made`. `url`: as in `Registry.open`; `base`: the IRI that names of
        documents are resolved against, said once, before there are any. Raises what `Registry.open` raises,
        `ArgumentError` where the base is no IRI, and `StoreError` for another one."""
        try:
            IRI(base or USUAL_BASE)
        except ArgumentError:
            raise ArgumentError(f"{base!r} is no base IRI", remedy="write it whole, as http://example.org/") from None
        provider = cls(Registry.open(url, alone=alone, warn=warn, made=made))
        try:
            provider.database.make(metadata)
            has_documents = provider.database.value(sa.select(sa.exists().where(log.c.document != SCHEMA)))
            known = provider.base if has_documents else provider.fact("base") or base
            if base and known != base:
                remedy = "leave --base out, or begin with an empty store"
                raise StoreError(f"names of its documents are resolved against {known}", source=url, remedy=remedy)
            if base:
                provider.state("base", base)
            if not provider.identity:
                provider.state("identity", secrets.token_hex(8))
        except BaseException:
            provider.close()
            raise
        return provider

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do what waits to be written, and close."""
        self.registry.close()

    def fact(self, name: str) -> str:
        """What was stated under a name; "" for nothing."""
        with self.database.reading() as connection:
            return fact(connection, facts, name) or ""

    def state(self, name: str, value: str) -> None:
        """State something in the place of what was stated."""
        self.database.write(lambda connection: state(connection, facts, **{name: value}))

    @property
    def identity(self) -> str:
        """A random name of the store, by which a provider that has several addresses is known."""
        return self.fact("identity")

    @property
    def base(self) -> str:
        """What names of documents are resolved against."""
        return self.fact("base") or USUAL_BASE

    # --- documents ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """How many batches of changes the log has; with a peer, of those of its log how many have come here."""
        with self.database.reading() as connection:
            return _version(connection)

    def apply(self, changes: Sequence[Change], source: str = "", seq: int = 0, version: int = 0) -> Applied:
        """Register, re-register and delete documents, in one transaction; the version of what is returned is that of
        the log. `source` and `seq`: the list of events that they come from, and the last of them (`applied_of`).
        `version`: that of a peer whose log they come from. What has come already is not applied again."""
        if source:
            check_name("list", source)
        entries = {each.document: each.content if isinstance(each, Put) else None for each in changes}
        return self._logged(
            lambda then: self.registry.apply(changes, then), entries if version else None, version, source, seq
        )

    def use_schema(self, content: bytes, source: str = "", version: int = 0) -> Applied:
        """Take a schema in place of the one before: see `Registry.use_schema`. It stands in the log as `SCHEMA`."""
        return self._logged(lambda then: self.registry.use_schema(content, source, then), {SCHEMA: content}, version)

    def _logged(
        self,
        apply: Callable[[Then], Applied],
        entries: Mapping[str, bytes | None] | None,
        version: int,
        source: str = "",
        seq: int = 0,
    ) -> Applied:
        """Apply a batch; in the same transaction go its entries into the log (None: the documents that change; those
        that are refused are none of them) and what repositories are told of it. Others may write meanwhile: only there
        is known what has come already."""
        if not version and (peer := self.fact("peer")):
            remedy = "write to a provider that is served; `triplewire metadata init --lead` has this one write a log"
            raise StoreError(f"its documents come from the log of {peer}", remedy=remedy)
        versions: list[int] = []

        def then(connection: Connection, applied: Applied) -> None:
            known = _version(connection)
            if 0 < version <= known or (source and seq <= _applied_of(connection, source)):
                raise _HasCome
            if source:
                connection.execute(sources.delete().where(sources.c.name == source))
                connection.execute(sources.insert().values(name=source, seq=seq))
            logged = applied.contents if entries is None else entries
            versions.append(version or known + bool(logged))
            _write_log(connection, logged, versions[0])
            self._write_batches(connection, applied, versions[0])

        try:
            applied = apply(then)
        except _HasCome:
            return Applied(self.version)
        return self._told(replace(applied, version=versions[0]))

    def applied_of(self, source: str) -> int:
        """The `seq` of the last event of a list that was applied; 0 for none."""
        with self.database.reading() as connection:
            return _applied_of(connection, source)

    def entries(self, after: int) -> list[Entry]:
        """The entries of the log behind a version, in their order; not all, where there are many, but whole batches."""
        behind = sa.select(log.c.version).where(log.c.version > after).order_by(log.c.version).limit(MOST_AT_ONCE)
        columns = sa.select(log.c.version, log.c.document, log.c.content).order_by(log.c.version, log.c.document)
        with self.database.reading() as connection:
            until = max(connection.execute(behind).scalars(), default=after)
            rows = connection.execute(columns.where(log.c.version > after, log.c.version <= until))
            return [Entry(row.version, row.document, row.content) for row in rows]

    # --- rules -------------------------------------------------------------------------------------------------------

    def subscribe(self, repository: str, rules: Iterable[RuleText]) -> Applied:
        """Have a repository subscribe to rules: `ids` are those that it has now. Of one whose id is there with another
        text, the new text counts, unless it is refused; one that is there is left as it is. `notices`: the initial set
        of the new ones, and what those that they replace hold no longer. Raises `ArgumentError` where no database
        takes the name of the repository."""
        rules = list(rules)

        def then(connection: Connection, applied: Applied) -> None:
            new = {repository: subscribing.texts(connection, repository, applied.ids)}
            self._write_batches(connection, applied, _version(connection), new)

        newest = {rule.id: rule for rule in rules}
        applied = self.registry.subscribe(repository, newest.values(), then, replacing=True)
        refused = {refusal.subject for refusal in applied.refused if not refusal.is_warning}
        ids = tuple(rule.id for rule in rules if rule.id not in refused)
        return self._told(replace(applied, ids=ids), repository)

    def unsubscribe(self, repository: str, ids: Sequence[str]) -> Applied:
        """Have a repository give rules up; those that name one keep what they said. Raises `SubscriptionError` where it
        has one not."""

        def then(connection: Connection, applied: Applied) -> None:
            # what a rule held goes with it: the repository knows what that is
            ended = {repository: [Ended(id) for id in ids]}
            self._write_batches(connection, Applied(applied.version), _version(connection), ended)

        return self._told(self.registry.unsubscribe(repository, ids, then), repository)

    def _told(self, applied: Applied, *others: str) -> Applied:
        crash.point("provider.committed")
        told = {"", *applied.notices, *others}
        for listener in list(self.listeners):
            listener(told)
        return applied

    # --- what repositories are told ----------------------------------------------------------------------------------

    def _write_batches(
        self,
        connection: Connection,
        applied: Applied,
        version: int,
        changes: Mapping[str, Sequence[Item]] | None = None,
    ) -> None:
        """Add a batch to the streams of repositories that follow and have something to be told. `changes`: of rules,
        by repository; they come before the notices."""
        crash.point("provider.applied")
        told: dict[str, list[Item]] = {name: list(items) for name, items in (changes or {}).items()}
        for name, notices in applied.notices.items():
            told.setdefault(name, []).extend(notices)
        rows: list[tuple[Any, ...]] = []
        for row in connection.execute(sa.select(streams).where(streams.c.repository.in_(told))).all():
            here = streams.c.repository == row.repository
            if not told[row.repository]:
                continue
            if row.number - row.acknowledged >= MOST_WAITING:  # it has not come back: a snapshot will do
                connection.execute(streams.delete().where(here))
                connection.execute(outbox.delete().where(outbox.c.repository == row.repository))
                continue
            connection.execute(streams.update().where(here).values(number=row.number + 1))
            items = items_as_json(told[row.repository])
            rows.append((row.repository, row.number + 1, version, items))
        insert_rows(connection, outbox, rows)
        crash.point("provider.written")

    def snapshot(self, repository: str, version: int = 0) -> Snapshot:
        """All that the rules of a repository ask for, and the beginning of a new stream of what changes from now on.
        Raises `BusyError` where the documents have not come to this version yet."""
        check_name("repository", repository)

        def work(connection: Connection) -> Snapshot:  # nothing else is written meanwhile
            known = _version(connection)
            if known < version:
                raise BusyError(f"the documents are of version {known}, not yet of {version}", remedy="try again soon")
            prepare(connection)
            rules = [rule for _, rule in subscribing.registered(connection, repository)]
            stream = secrets.token_hex(8)
            connection.execute(streams.delete().where(streams.c.repository == repository))
            connection.execute(outbox.delete().where(outbox.c.repository == repository))
            row = {"repository": repository, "stream": stream, "number": 0, "acknowledged": 0}
            connection.execute(streams.insert().values(row))
            return Snapshot(stream, 0, known, (*rules, *subscribing.snapshot(connection, repository)))

        return self.database.write(work)

    def batches(self, repository: str, stream: str, after: int) -> list[str] | None:
        """The batches of a stream behind a number, each as a line of JSON, the first `MOST_AT_ONCE`. None where the
        stream does not go on there: a snapshot comes first."""
        mine = sa.select(outbox).where(outbox.c.repository == repository, outbox.c.number > after)
        with self.database.reading() as connection:
            row = connection.execute(sa.select(streams).where(streams.c.repository == repository)).first()
            if row is None or row.stream != stream or not row.acknowledged <= after <= row.number:
                return None
            rows = connection.execute(mine.order_by(outbox.c.number).limit(MOST_AT_ONCE))
            return [Batch.line_of(row.number, row.version, row.items) for row in rows]

    def acknowledge(self, repository: str, stream: str, number: int) -> None:
        """The repository has all batches of a stream up to a number: they are forgotten. Of another stream, or a number
        that there was not, nothing is."""
        here = (streams.c.repository == repository) & (streams.c.stream == stream) & (streams.c.number >= number)

        def work(connection: Connection) -> None:
            later = here & (streams.c.acknowledged < number)
            if connection.execute(streams.update().where(later).values(acknowledged=number)).rowcount:
                is_done = (outbox.c.repository == repository) & (outbox.c.number <= number)
                connection.execute(outbox.delete().where(is_done))

        self.database.write(work)

    def forget(self, repository: str) -> None:
        """The repository follows no longer: it has moved. Its rules go as well."""
        if ids := [rule.id for _, rule in self.registry.rules(repository)]:
            self.unsubscribe(repository, ids[::-1])  # those that name others come later

        def work(connection: Connection) -> None:
            connection.execute(streams.delete().where(streams.c.repository == repository))
            connection.execute(outbox.delete().where(outbox.c.repository == repository))

        self.database.write(work)

    def results(self, repository: str | None = None) -> Iterator[tuple[str, str, list[str]]]:
        """Repository, rule and the resources that it registers, sorted by code point."""
        return self.registry.results(repository)


def _write_log(connection: Connection, newest: Mapping[str, bytes | None], version: int) -> None:
    """Write the newest content of documents into the log, in the place of entries before."""
    state(connection, facts, version=str(version))
    if newest:
        here = log.c.document == sa.bindparam("d")
        connection.execute(log.delete().where(here), [{"d": document} for document in newest])
    insert_rows(connection, log, [(document, version, content) for document, content in newest.items()])


def _applied_of(connection: Connection, source: str) -> int:
    return connection.execute(sa.select(sources.c.seq).where(sources.c.name == source)).scalar() or 0


def _version(connection: Connection) -> int:
    return int(fact(connection, facts, "version") or 0)
