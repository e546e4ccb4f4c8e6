"""The registry of metadata: documents and rules in one database, and what each change means for each repository.

    with Registry.open("sqlite:///metadata.db") as registry:
        registry.subscribe("passau", [RuleText("fast", "search Server s register s where s.cpu > 500")])
        applied = registry.apply([Put("http://example.org/doc.rdf", content)])
        applied.notices["passau"]     # (Told("http://example.org/doc.rdf#host", ..., rules=("fast",)), ...)

Each call that changes something is one transaction. `then` runs in it, last, with what the call is about to return:
what it writes over the connection (messages to send, a log) is there exactly if the change is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Self, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.engine import Connection

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal, SubscriptionError
from triplewire.metadata import changes, subscribing
from triplewire.metadata.dictionary import digest_of, numbers_of
from triplewire.metadata.documents import Parsed, all_parsed, parsed, rows_of
from triplewire.metadata.messages import MOST_NAME, Applied, Change, Put, RuleText, Told, check_name
from triplewire.metadata.notices import contents, count, notices, pairs_of_ends
from triplewire.metadata.schema import Schema
from triplewire.metadata.tables import documents, facts, metadata, statements, strong, terms, types
from triplewire.metadata.working import altered, among, batch, fill, prepare, told
from triplewire.model.terms import RDF_TYPE, Triple, made_iri, parse_term
from triplewire.store.database import Database, fact, insert_rows, state

Then: TypeAlias = Callable[[Connection, Applied], None]
_REMEDY = "register it again once it is mended"


class Registry:
    """A registry that is open. Make it with `open`."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self._settings = replace(settings, max_iri_bytes=min(settings.max_iri_bytes, MOST_NAME))

    @classmethod
    def open(
        cls,
        url: str,
        *,
        alone: bool = True,
        warn: Callable[[str], None] = lambda text: None,
        settings: Settings | None = None,
        made: bool = True,
    ) -> Registry:
        """Open a registry, or make it where there is none, if it may be `made`. `url`: `sqlite:///FILE`,
        `postgresql://...` or `spark:DIR`. `settings` are the limits of reading. Raises what `Database.open` raises."""
        place: str | sa.URL = url
        if url.startswith("spark:"):
            dialects.register("spark", "triplewire.pipeline.sql_dialect", "SparkDialect")
            place = sa.URL.create("spark", database=url.removeprefix("spark:"))
        return cls(Database.open(place, warn=warn, alone=alone, tables=metadata, made=made), settings or Settings())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Do what waits to be written, and close."""
        self.database.close()

    @property
    def version(self) -> int:
        """How many batches have changed something."""
        with self.database.reading() as connection:
            return _version(connection)

    # --- documents ---------------------------------------------------------------------------------------------------

    def apply(self, batch: Sequence[Change], then: Then | None = None) -> Applied:
        """Register, re-register and delete documents, as one batch; of several changes of one document the last
        counts. A malformed document withdraws its version before; one that violates the schema leaves it as it is.
        Raises `ArgumentError` for a document without a name."""
        last = {change.document: change for change in batch}
        for iri in last:
            check_name("document", iri)
        with self.database.reading() as connection:
            known = changes.numbered(connection, list(last))
        refused: list[Refusal] = []
        read: dict[str, Parsed | None] = {}
        contents_of: dict[str, bytes] = {}
        for iri, change in last.items():
            if isinstance(change, Put):
                if iri not in known or known[iri][1] != _digest(change.content):
                    contents_of[iri] = change.content
            elif iri in known:
                read[iri] = None
            else:
                refused.append(Refusal("warning", iri, "", "there is no such document: nothing is deleted"))
        self._read(contents_of, read, refused)

        def write(connection: Connection) -> Applied:
            prepare(connection)
            conforming, violations = _checked(_schema(connection), read, contents_of)
            applied = _written(connection, conforming, contents_of)
            return _finished(connection, replace(applied, refused=(*refused, *violations)), then)

        return self.database.write(write)

    def _read(self, contents_of: Mapping[str, bytes], read: dict[str, Parsed | None], refused: list[Refusal]) -> None:
        """Read documents, or say why they are refused."""
        for iri, document in zip(contents_of, all_parsed(contents_of.items(), self._settings), strict=True):
            if isinstance(document, ReadError):
                refusal = Refusal.of("publication", iri, document)
                withdrawn = f"{refusal.reason}; what the document said before is withdrawn"
                refused.append(replace(refusal, subject=iri, reason=withdrawn, remedy=refusal.remedy or _REMEDY))
                read[iri] = None
            else:
                refused += document.warnings
                read[iri] = document

    # --- rules -------------------------------------------------------------------------------------------------------

    def subscribe(
        self, repository: str, rules: Iterable[RuleText], then: Then | None = None, *, replacing: bool = False
    ) -> Applied:
        """Register rules of a repository; those that are refused are in `refused`, the ids of others in `ids`. The
        notices of the repository are the initial set: all resources that the rules hold, and what these refer to
        strongly. A rule whose id is there already with the same text is told again; with another text it is refused.
        When `replacing`, the first is left as it is, and not in `ids`; the second takes the place of that one, unless
        it is refused. Rules of the repository may be named in search clauses of later ones, which keep what they said
        then. Raises `ArgumentError` where no database takes the name of the repository."""
        check_name("repository", repository)

        def write(connection: Connection) -> Applied:
            prepare(connection)
            schema, given = _schema(connection), list(rules)
            applied, begun, ceased = subscribing.added(
                connection, repository, given, schema, self._settings, replacing=replacing
            )
            applied = replace(applied, notices=notices(connection, begun, ceased))
            return _finished(connection, applied if applied.ids else replace(applied, version=-1), then)

        return self.database.write(write)

    def unsubscribe(self, repository: str, ids: Sequence[str], then: Then | None = None) -> Applied:
        """Remove rules of a repository. The notices say what they hold no longer. Raises `SubscriptionError` where one
        is not there."""

        def write(connection: Connection) -> Applied:
            prepare(connection)
            ceased = subscribing.removed(connection, repository, ids)
            return _finished(connection, Applied(0, notices=notices(connection, {}, ceased), ids=tuple(ids)), then)

        return self.database.write(write)

    def rules(self, repository: str | None = None) -> Iterator[tuple[str, RuleText]]:
        """Repositories and their rules, in the order in which they were registered."""
        with self.database.reading() as connection:
            yield from subscribing.registered(connection, repository)

    def results(
        self, repository: str | None = None, ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, str, list[str]]]:
        """Repository, rule and the resources that it holds, sorted by code point; in the order of `rules`."""
        with self.database.reading() as connection:
            prepare(connection)
            yield from subscribing.results(connection, repository, ids)

    # --- resources ---------------------------------------------------------------------------------------------------

    def resources(self, iris: Sequence[str]) -> dict[str, Told]:
        """Those of the resources that there are, as they are now."""
        with self.database.reading() as connection:
            numbers: list[int] = []
            prepare(connection)
            for start in range(0, len(iris), 500):
                digests = [digest_of(str(made_iri(iri))) for iri in iris[start : start + 500]]
                numbers += connection.execute(sa.select(terms.c.number).where(terms.c.digest.in_(digests))).scalars()
            fill(connection, told, (("", number, 0) for number in numbers))
            return {now.resource: now for now in contents(connection).values()}

    def classes(self) -> Mapping[str, int]:
        """The classes that there are instances of, and how many."""
        with self.database.reading() as connection:
            source = types.join(terms, terms.c.number == types.c.class_)
            number = sa.func.count(types.c.resource.distinct())
            query = sa.select(terms.c.label, number).select_from(source).group_by(terms.c.label).order_by(terms.c.label)
            return {row[0]: row[1] for row in connection.execute(query)}

    def instances(self, class_: str, most: int = 100, after: str = "") -> list[str]:
        """Resources of a class, sorted by code point, those behind `after`."""
        of_class = terms.alias("of_class")
        with self.database.reading() as connection:
            source = of_class.join(types, types.c.class_ == of_class.c.number)
            source = source.join(terms, terms.c.number == types.c.resource)
            query = (
                sa.select(terms.c.label)
                .select_from(source)
                .where(of_class.c.digest == digest_of(str(made_iri(class_))))
            )
            query = query.where(terms.c.label > after).distinct().order_by(terms.c.label).limit(most)
            return list(connection.execute(query).scalars())

    # --- the schema --------------------------------------------------------------------------------------------------

    def use_schema(self, content: bytes, source: str = "", then: Then | None = None) -> Applied:
        """Take a schema (RDFS, any syntax) in place of the one before. `refused` lists the documents that violate it:
        they stay. Resources that have a reference which is strong or weak now are told again. Raises `ReadError` where
        it is none."""
        triples = parsed(source or "urn:triplewire:schema", content, self._settings).triples
        schema = Schema.of(triples, source)

        def write(connection: Connection) -> Applied:
            prepare(connection)
            before = set(connection.execute(sa.select(strong.c.property)).scalars())
            now = set(numbers_of(connection, schema.strong()).values())
            fill(connection, strong, ((number,) for number in now))
            state(connection, facts, schema="\n".join(map(str, triples)))
            turned = statements.c.property.in_(before ^ now)
            query = sa.select(statements.c.resource).where(turned).distinct()
            connection.execute(altered.insert().from_select(["resource"], query))
            refused = tuple(
                refusal for iri, stated in _stated(connection) if (refusal := schema.refusal(iri, stated)) is not None
            )
            return _finished(connection, Applied(0, refused, notices(connection, {}, {})), then)

        return self.database.write(write)


def _checked(
    schema: Schema | None, read: Mapping[str, Parsed | None], contents_of: Mapping[str, bytes]
) -> tuple[dict[str, Parsed | None], list[Refusal]]:
    """The documents without those that violate the schema as it is now, and why these are refused."""
    refusals = {
        iri: schema.refusal(iri, document.triples, contents_of[iri])
        for iri, document in read.items()
        if schema is not None and document is not None
    }
    violations = [refusal for refusal in refusals.values() if refusal is not None]
    return {iri: document for iri, document in read.items() if refusals.get(iri) is None}, violations


def _written(connection: Connection, read: Mapping[str, Parsed | None], contents_of: Mapping[str, bytes]) -> Applied:
    """Put documents that were read in the place of their versions before; None withdraws one."""
    known = {iri: number for iri, (number, _) in changes.numbered(connection, list(read)).items()}
    contents = {
        iri: None if document is None else contents_of[iri]
        for iri, document in read.items()
        if document is not None or iri in known
    }
    new = [iri for iri, document in read.items() if document is not None and iri not in known]
    if new:
        following = (connection.execute(sa.select(sa.func.max(documents.c.number))).scalar() or 0) + 1
        known |= {iri: number for number, iri in enumerate(new, following)}
    triples = [(known[iri], document.triples) for iri, document in read.items() if document is not None]
    rows = rows_of(connection, triples)
    is_changed = changes.written(connection, list(known.values()), rows)
    applied = Applied(0 if is_changed else -1, contents=contents)
    if is_changed:
        changes.compared(connection)
        count(connection)
        applied = replace(applied, notices=notices(connection, *pairs_of_ends(connection)))
        changes.settled(connection)
    version = _version(connection) + 1
    connection.execute(documents.delete().where(among(documents.c.number, sa.select(batch.c.document))))
    stay = [
        (known[iri], iri, version, _digest(contents_of[iri])) for iri, document in read.items() if document is not None
    ]
    insert_rows(connection, documents, stay)
    return applied


def _finished(connection: Connection, applied: Applied, then: Then | None) -> Applied:
    """Count the batch, unless its version is -1: then nothing has changed."""
    version = _version(connection)
    if applied.version >= 0:
        version += 1
        state(connection, facts, version=str(version))
    applied = replace(applied, version=version)
    if then is not None:
        then(connection, applied)
    return applied


def _version(connection: Connection) -> int:
    return int(fact(connection, facts, "version") or 0)


def _schema(connection: Connection) -> Schema | None:
    text = fact(connection, facts, "schema")
    return None if text is None else _schema_of(text)


@lru_cache(4)
def _schema_of(text: str) -> Schema:
    """The schema of N-Triples. Each batch asks for it."""
    return Schema.of(parsed("urn:triplewire:schema.nt", text.encode("utf-8"), Settings()).triples)


def _stated(connection: Connection) -> Iterator[tuple[str, list[Triple]]]:
    """Each document with its statements."""
    s, p, v, r = statements, terms.alias("p"), terms.alias("v"), terms.alias("r")
    source = documents.join(s, s.c.document == documents.c.number).join(r, r.c.number == s.c.resource)
    source = source.join(p, p.c.number == s.c.property).join(v, v.c.number == s.c.value)
    query = sa.select(documents.c.iri, r.c.term, p.c.term, v.c.term).select_from(source).order_by(documents.c.number)
    triples: dict[str, list[Triple]] = {}
    for iri, *texts in connection.execute(query):
        triples.setdefault(iri, []).append(Triple._make(map(parse_term, texts)))
    return iter(triples.items())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def rules_of_picks(registry: Registry, picks: Sequence[str], condition: str = "") -> list[RuleText]:
    """Rules from what a person picks while browsing (MDV paper, section 2.3), one for each pick: a class with its
    instances, for which the condition holds (over `c`, as `c.memory > 64`; a step without prefix is in the namespace of
    the class), or a resource. Equal picks give equal rules. Raises `SubscriptionError` where there is no such class or
    resource."""
    classes = registry.classes()
    rules: list[RuleText] = []
    for pick in dict.fromkeys(picks):
        if pick in classes:
            where = f"\nwhere {condition}" if condition else ""
            namespace = pick[: max(pick.rfind("#"), pick.rfind("/")) + 1]
            query = f"PREFIX : <{namespace}>\nsearch <{pick}> c\nregister c{where}"
        else:
            told = registry.resources([pick]).get(pick)
            types = [value for name, value in told.statements if name == RDF_TYPE.value] if told is not None else []
            if not types:
                what = f"there is no class or resource {pick}"
                raise SubscriptionError(what, remedy="`triplewire metadata browse` shows what there is")
            query = f"search {min(types)} c\nregister c\nwhere c = {made_iri(pick)}"
        digest = hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        rules.append(RuleText(f"pick-{digest}", query))
    return rules


__all__ = ["Registry", "Then", "rules_of_picks"]
