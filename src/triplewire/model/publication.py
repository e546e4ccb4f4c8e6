"""Publications: small RDF graphs with an identity (semantics, section 1), and look-ups in their graphs.

`triplewire.read` makes them. `triplewire.ir.evaluation.evaluate` evaluates a query on one.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from triplewire.argument_checks import expect, expect_plain, refuse
from triplewire.errors import ArgumentError
from triplewire.model.attachments import FilesBeside
from triplewire.model.canonical import graph_hash
from triplewire.model.content import content_hash
from triplewire.model.packed import Packed, unpack
from triplewire.model.terms import IRI, Node, Term, Triple, shortened


class Graph:
    """A set of triples, indexed by subject, predicate and object. Never changed once built."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._all = dict.fromkeys(triples)
        self.triples = tuple(self._all)
        self._by_predicate: dict[Term, list[Triple]] = defaultdict(list)
        self._by_subject: dict[Term, list[Triple]] = defaultdict(list)
        self._by_object: dict[Term, list[Triple]] = defaultdict(list)
        for triple in self.triples:
            self._by_predicate[triple.predicate].append(triple)
            self._by_subject[triple.subject].append(triple)
            self._by_object[triple.object].append(triple)

    def __len__(self) -> int:
        return len(self.triples)

    def __contains__(self, triple: object) -> bool:
        return triple in self._all

    def candidates(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Sequence[Triple]:
        """The shortest list with all triples of the given terms (`None` is any). It may have others too."""
        shortest: Sequence[Triple] = self.triples
        for index, term in ((self._by_subject, subject), (self._by_object, object_), (self._by_predicate, predicate)):
            if term is not None:
                triples = index.get(term, ())
                if len(triples) < len(shortest):
                    shortest = triples
        return shortest

    def find(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Iterator[Triple]:
        """The triples with exactly the given terms; `None` is any."""
        for triple in self.candidates(subject, predicate, object_):
            if (
                (subject is None or triple.subject == subject)
                and (predicate is None or triple.predicate == predicate)
                and (object_ is None or triple.object == object_)
            ):
                yield triple

    def objects(self, subject: Node, predicate: IRI) -> Iterator[Term]:
        """The objects of the triples with this subject and predicate."""
        return (triple.object for triple in self.find(subject, predicate, None))


@dataclass(frozen=True, repr=False)
class Publication:
    """A small RDF graph with an identity. Two publications are equal when all their fields are.

    `id` is an IRI or any string but the empty one, unique per source; `source` says where it came from (feed URL, file,
    topic; a line each); `published` is the instant that the source states, in UTC (as which one without a zone is
    taken), or None; `attachments` are byte strings that operators may read (of files: `triplewire.model.attachments`);
    `notes` says what was repaired while reading. Any iterable of triples will do, and plain tuples of three terms
    become triples. Raises `ArgumentError` for anything else.
    """

    id: str
    triples: tuple[Triple, ...]
    source: str = ""
    published: dt.datetime | None = None
    attachments: Mapping[str, bytes] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    packed: ClassVar[Packed | None] = None
    """The triples as bytes; only a publication that was read has them."""

    if TYPE_CHECKING:  # `triples` are taken as any iterable

        def __init__(
            self,
            id: str,
            triples: Iterable[tuple[Node, IRI, Term]],
            source: str = "",
            published: dt.datetime | None = None,
            attachments: Mapping[str, bytes] = ...,
            notes: tuple[str, ...] = (),
        ) -> None: ...

    @classmethod
    def from_text(cls, text: str | bytes, id: str = "") -> Publication:
        """The publication that a document is, in any syntax that `triplewire.read` knows: Turtle, N-Quads, RDF/XML,
        JSON-LD, a feed as a whole. `id` is its id, and the base of relative IRIs where it is an IRI; without one, it
        has that of the document.

        Raises `ReadError` where it cannot be read, and `ArgumentError` where it is more than one publication, or none.
        """
        where = "Publication.from_text"
        expect(f"{where}(text)", text, (str, bytes), "the text of a document", "read(path) reads files")
        id = expect_plain(f"{where}(id)", id)
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        reader = import_module("triplewire.read")  # which makes publications, and is a layer above them
        publications: list[Publication] = reader.read_document(data, id, split="document")
        if len(publications) != 1:
            what = f"the text is {len(publications) or 'no'} publications, not one"
            raise ArgumentError(what, source=where, remedy="triplewire.read.read_document(text, source) gives all")
        return replace(publications[0], id=id) if id else publications[0]

    @classmethod
    def of_packed(
        cls,
        id: str,
        packed: Packed,
        source: str = "",
        published: dt.datetime | None = None,
        notes: tuple[str, ...] = (),
    ) -> Publication:
        """A publication whose triples, of bytes that were checked, are made when somebody asks for them."""
        publication = object.__new__(cls)
        given: dict[str, Any] = {"id": id, "source": source, "published": published, "attachments": {}, "notes": notes}
        publication.__dict__.update(given, packed=packed)
        return publication

    if not TYPE_CHECKING:  # where it would hide that a name is wrong

        def __getattr__(self, name: str) -> Any:
            if name != "triples" or self.packed is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            triples = self.__dict__[name] = unpack(self.packed)
            return triples

    def __post_init__(self) -> None:
        if type(self.triples) is not tuple or not _ONLY_TRIPLES.issuperset(map(type, self.triples)):
            object.__setattr__(self, "triples", _made_triples(self.triples))
        if not (type(self.id) is str and type(self.source) is str and type(self.attachments) is dict):
            object.__setattr__(self, "id", expect_plain("Publication(id)", self.id))
            object.__setattr__(self, "source", expect_plain("Publication(source=...)", self.source))
            expect("Publication(attachments=...)", self.attachments, Mapping, "a mapping of names to bytes")
        if not self.id:
            raise refuse("Publication(id)", "a text of at least one character", self.id, "give it an IRI, or any name")
        if self.published is not None:
            object.__setattr__(self, "published", _in_utc(self.published))

    def with_files_beside(self, file: str) -> Publication:
        """This publication with what it names beside the file from which it was read: a reader's last step."""
        content = self.triples if self.packed is None else self.packed
        object.__setattr__(self, "attachments", FilesBeside(file, content))
        return self

    @property
    def size(self) -> int:
        """How many triples it has; their terms are not made for it."""
        return len(self.triples) if self.packed is None else self.packed.statements

    def __repr__(self) -> str:
        source = f" from {shortened(self.source)!r}" if self.source else ""
        count = self.size
        return f"<Publication {shortened(self.id)!r}{source}: {count} triple{'s' * (count != 1)}>"

    def _repr_html_(self) -> str:
        """The publication as a table, in notebooks."""
        # programs outside of notebooks do without
        from triplewire.model.match import table, term_text

        rows = (tuple(map(term_text, triple)) for triple in self.triples)
        return table(repr(self)[1:-1], ("subject", "predicate", "object"), rows, len(self.triples))

    @cached_property
    def graph(self) -> Graph:
        """The distinct triples, indexed."""
        return Graph(self.triples)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of what counts of the publication: `triplewire.model.content`."""
        return content_hash(self.id, self.triples)

    @cached_property
    def graph_hash(self) -> str:
        """SHA-256 (hex) of the whole graph, independent of its blank node labels: `triplewire.model.canonical`."""
        return graph_hash(self.triples)


_ONLY_TRIPLES = frozenset((Triple,))


def _in_utc(instant: dt.datetime) -> dt.datetime:
    """The instant in UTC, whatever the zone of this machine: one without a zone is taken as UTC. Raises
    `ArgumentError`."""
    where, wanted = "Publication(published=...)", "a datetime.datetime, or None"
    expect(where, instant, dt.datetime, wanted)
    try:
        return instant.astimezone(dt.UTC) if instant.tzinfo is not None else instant.replace(tzinfo=dt.UTC)
    except OverflowError:  # of the year 1 or 9999, and in UTC of another
        raise refuse(where, wanted, instant, "in UTC it has to be of the years 1 to 9999") from None


def _made_triples(given: object) -> tuple[Triple, ...]:
    """The triples of an iterable of triples or of plain tuples of three terms. Raises `ArgumentError`."""
    where, wanted = "Publication(triples)", "an iterable of triples"
    remedy = "read(path) makes publications of files, Triple(IRI(...), IRI(...), Literal(...)) a triple"
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise refuse(where, wanted, given, remedy)
    triples = []
    for number, triple in enumerate(given, 1):
        if not isinstance(triple, tuple) or len(triple) != 3:
            raise refuse(where, f"{wanted}, of which number {number} is a tuple of three terms", triple, remedy)
        triples.append(triple if isinstance(triple, Triple) else Triple(*triple))
    return tuple(triples)
