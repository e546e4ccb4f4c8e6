"""Matches: a publication that satisfies a subscription, with its bindings (semantics, section 6)."""

from __future__ import annotations

import datetime as dt
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, count, islice, takewhile
from typing import Any, NoReturn, Protocol, TypeAlias

from triplewire.argument_checks import refuse
from triplewire.model.canonical import canonical_lines
from triplewire.model.packed import suffix_of
from triplewire.model.same import Same
from triplewire.model.terms import IRI, Literal, Term, Triple, shortened, term_to_json, text_of

Binding: TypeAlias = Mapping[str, Term]


class SharedBinding(dict[str, Term]):
    """A dictionary that cannot be changed, because several matches may share it."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("matches share their bindings: they cannot be changed; dict(binding) is a copy that can")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[SharedBinding], tuple[dict[str, Term]]]:
        return SharedBinding, (dict(self),)


class Origin(Protocol):
    """What a match was made from: it knows the content of the publication and the revisions of subscriptions."""

    @property
    def content(self) -> str:
        """The content hash of the publication (`triplewire.model.content`)."""

    def revision(self, subscription: str) -> str:
        """The revision of the subscription of this id (`triplewire.ir.subscription.revision_of`)."""


@dataclass(frozen=True, slots=True)
class KnownOrigin:
    """The identity of one match, worked out."""

    content: str
    revision_text: str

    def revision(self, subscription: str) -> str:
        """See `Origin`."""
        return self.revision_text


class MatchSource(Protocol):
    """What matches are made from: it knows more of each than its subscription, by the number of its row there."""

    matched_at: dt.datetime | None

    def publication(self, row: int) -> str:
        """The id of the publication."""

    def bindings(self, row: int) -> tuple[Binding, ...]:
        """The bindings."""

    def truncated(self, row: int, bindings: tuple[Binding, ...]) -> bool:
        """Are these bindings of it cut, or the graph that they make?"""

    def construct(self, row: int, bindings: tuple[Binding, ...]) -> tuple[Triple, ...] | None:
        """The graph that these bindings of it make, of a CONSTRUCT query."""

    def origin(self, row: int) -> Origin | None:
        """What the identity is worked out from."""


@dataclass(frozen=True, slots=True)
class _StatedMatch:
    """The source of one match whose values are known."""

    match: tuple[str, bool, tuple[Triple, ...] | None, Origin | None]
    matched_at: dt.datetime | None

    def publication(self, row: int) -> str:
        return self.match[0]

    def bindings(self, row: int) -> tuple[Binding, ...]:
        raise AssertionError("they are stated")

    def truncated(self, row: int, bindings: tuple[Binding, ...]) -> bool:
        return self.match[1]

    def construct(self, row: int, bindings: tuple[Binding, ...]) -> tuple[Triple, ...] | None:
        return self.match[2]

    def origin(self, row: int) -> Origin | None:
        return self.match[3]


class _Slots:
    """The slots of `Match`, without its frozen constructor. Filling them and changing the class to `Match`, which adds
    no slots, takes a quarter of the time of `Match(...)`."""

    __slots__ = ("_bindings", "_row", "_source", "subscription")

    subscription: str
    _source: MatchSource
    _row: int
    _bindings: tuple[Binding, ...] | None  # None until they are asked for


_keep_bindings = _Slots.__dict__["_bindings"].__set__


class Match(_Slots):
    """One publication that satisfies one subscription. A match of an engine looks its other fields up when they are
    asked for.

    `bindings` are distinct assignments of the selected variables (an ASK query has one empty one), at most
    `Settings.max_bindings`, in the order of `row_key`, with terms of at most `Settings.max_binding_bytes` together.
    `truncated` says that there are, or may be, more: that many are not kept, or listing them passed
    `Settings.max_steps` (with either limit there may be none at all), or an operator failed. Where more than
    `max_bindings` are found, those kept depend on the publication, the subscription and the matcher alone: they are the
    same in any batch, thread, worker and replay. Another matcher, or tier, may keep others. `construct` is the graph
    that a CONSTRUCT query makes of the bindings; its terms have no more bytes either, else the match is truncated.

    The identity of a match is `publication` with `content`, and `subscription` with `revision`: two matches that agree
    in these four tell the same. `content` and `revision` are worked out when they are asked for; for that a match of
    `Engine.match` holds on to its `origin`, the publications that were matched with it.
    """

    __slots__ = ()

    def __init__(
        self,
        publication: str,
        subscription: str,
        bindings: tuple[Binding, ...],
        truncated: bool = False,
        matched_at: dt.datetime | None = None,
        construct: tuple[Triple, ...] | None = None,
        origin: Origin | None = None,
    ) -> None:
        object.__setattr__(self, "subscription", subscription)
        object.__setattr__(self, "_source", _StatedMatch((publication, truncated, construct, origin), matched_at))
        object.__setattr__(self, "_row", 0)
        _keep_bindings(self, bindings)

    @property
    def publication(self) -> str:
        """The id of the publication."""
        return self._source.publication(self._row)

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The answers."""
        bindings = self._bindings
        if bindings is None:
            bindings = self._source.bindings(self._row)
            _keep_bindings(self, bindings)
        return bindings

    @property
    def truncated(self) -> bool:
        """Are there, or may there be, more bindings than these?"""
        return self._source.truncated(self._row, self.bindings)

    @property
    def construct(self) -> tuple[Triple, ...] | None:
        """The graph that a CONSTRUCT query makes; None of another one."""
        return self._source.construct(self._row, self.bindings)

    @property
    def matched_at(self) -> dt.datetime | None:
        """When it was found; None of a match that no engine made."""
        return self._source.matched_at

    @property
    def origin(self) -> Origin | None:
        """What its identity is worked out from; None of a match that no engine made."""
        return self._source.origin(self._row)

    @property
    def content(self) -> str:
        """The content hash of the publication: SHA-256 (hex) of its graph; "" of a match that no engine made."""
        return self.origin.content if self.origin is not None else ""

    @property
    def revision(self) -> str:
        """16 hexadecimal digits that change with the text of the subscription; "" of a match that no engine made."""
        return self.origin.revision(self.subscription) if self.origin is not None else ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Publication, content, subscription, revision: two matches that agree in these tell the same."""
        return self.publication, self.content, self.subscription, self.revision

    def told_as(self, same: Same | str = Same.ITEM) -> bytes:
        """16 bytes by which a match that comes again is known to have been told, by a rule of `Same`: "item", "id" or
        "bindings". Raises `ArgumentError` for another."""
        if same not in tuple(Same):
            raise refuse("Match.told_as(same)", f"one of {', '.join(Same)}", same)
        texts = self.content, self.revision, self.publication, self.subscription, bindings_text(self.bindings)
        return next(told_identities(Same(same), *(((text,), (0,)) for text in texts)))

    def __eq__(self, other: object) -> bool:
        return self._told() == other._told() if isinstance(other, Match) else NotImplemented

    def _told(self) -> tuple[object, ...]:
        return self.publication, self.subscription, self.bindings, self.truncated, self.construct

    def __hash__(self) -> int:
        return hash((self.publication, self.subscription))

    def __repr__(self) -> str:
        count = f"{len(self.bindings)}{'+' if self.truncated else ''} binding{'s' * (len(self.bindings) != 1)}"
        first = next(iter(self.bindings), {})
        values = ", ".join(f"?{shortened(name, 20)} = {shortened(str(term), 40)}" for name, term in first.items())
        text = f"{shortened(self.subscription, 60)!r} matches {shortened(self.publication, 80)!r}: {count}"
        return f"<Match {text}{', ' * bool(values)}{shortened(values, 160)}>"

    def _repr_html_(self) -> str:
        """The bindings as a table, in notebooks."""
        names = list(dict.fromkeys(name for binding in self.bindings[:ROWS] for name in binding))
        rows = ([term_text(binding[name]) if name in binding else "" for name in names] for binding in self.bindings)
        more = " (truncated)" if self.truncated else ""
        caption = f"{self.subscription} matches {self.publication}{more}"
        return table(caption, [f"?{name}" for name in names], rows, len(self.bindings))

    def to_json(self, bindings: bool = True) -> dict[str, Any]:
        """The row of the JSON Lines output; terms as in SPARQL 1.1 JSON results. Without `bindings` it holds what the
        match is between, and `truncated`."""
        row: dict[str, Any] = {"publication": self.publication, "subscription": self.subscription}
        if not bindings:
            return row | {"truncated": self.truncated}
        row |= {"bindings": bindings_to_json(self.bindings), "truncated": self.truncated}
        row["construct"] = None if self.construct is None else graph_text(self.construct)
        return row | {"content": self.content, "revision": self.revision}

    def __reduce__(self) -> tuple[type[Match], tuple[Any, ...]]:
        """A copy in another process has its identity worked out."""
        origin = KnownOrigin(self.content, self.revision) if self.origin is not None else None
        row = self.publication, self.subscription, self.bindings, self.truncated, self.matched_at, self.construct
        return Match, (*row, origin)


# to its users it is a frozen dataclass: `dataclasses.replace` makes a copy, and nothing is set
Match.__annotations__ = {name: kind for name, kind in Match.__init__.__annotations__.items() if name != "return"}
dataclass(frozen=True, init=False, repr=False, eq=False)(Match)


def matches_of(
    source: MatchSource, subscriptions: Iterable[str], bindings: Iterable[tuple[Binding, ...] | None], first: int = 0
) -> Iterator[Match]:
    """The matches of a source from row `first` on: of these subscriptions, with these bindings, or None where they are
    looked up when they are asked for."""
    match: Any
    for row, subscription, known in zip(count(first), subscriptions, bindings, strict=False):
        match = _Slots()
        match.subscription, match._source, match._row, match._bindings = subscription, source, row, known
        match.__class__ = Match
        yield match


def term_key(term: Term) -> tuple[str, str, str, str]:
    """A sort key for terms that depends on nothing but the term."""
    if isinstance(term, IRI):
        return "I", term.value, "", ""
    if isinstance(term, Literal):
        return "L", term.lexical, term.datatype, term.language
    return "B", term.label, "", ""


def row_key(row: Iterable[Term | None]) -> tuple[tuple[str, ...], ...]:
    """A sort key for the values of the selected variables in their order; None is one that is unbound, and comes
    first. Whatever finds the bindings of a match, they are in this order."""
    return tuple([("",) if term is None else term_key(term) for term in row])


def term_bytes(term: Term) -> int:
    """How many bytes of UTF-8 a term has, with the datatype or the language of a literal."""
    return len((text_of(term) + suffix_of(term)).encode("utf-8", "surrogatepass"))


def first_bindings(bindings: tuple[Binding, ...], most_bytes: int) -> tuple[Binding, ...]:
    """The bindings at the beginning whose terms have at most so many bytes together; there may be none."""
    size_of = cache(term_bytes)
    totals = accumulate(sum(map(size_of, binding.values())) for binding in bindings)
    return bindings[: sum(1 for _ in takewhile(lambda total: total <= most_bytes, totals))]


def bindings_to_json(bindings: tuple[Binding, ...]) -> list[dict[str, dict[str, str]]]:
    """Bindings as a list of {variable: term}."""
    return [{name: term_to_json(term) for name, term in binding.items()} for binding in bindings]


def bindings_text(bindings: tuple[Binding, ...]) -> str:
    """Bindings as JSON text, a list of {variable: term}."""
    return json.dumps(bindings_to_json(bindings), ensure_ascii=False)


def graph_text(triples: Iterable[Triple]) -> str:
    """A graph as N-Quads in canonical form (RDFC-1.0): equal text for isomorphic graphs, "" for an empty one."""
    return "".join(canonical_lines(triples))


# --- the identity of a match in 16 bytes, by which ledgers, sinks and receivers know it again -------------------------

IDENTITY_BYTES = 16

TextColumn: TypeAlias = tuple[Sequence[str], Sequence[int]]
"""A column of texts: the distinct ones, and the number of that of each row."""

_SHORT = dict(zip('"\\\b\t\n\f\r', ('\\"', "\\\\", "\\b", "\\t", "\\n", "\\f", "\\r"), strict=True))
_UNSAFE = re.compile(r'[\x00-\x1f"\\]')


def match_identities(
    content: TextColumn, revision: TextColumn, publication: TextColumn, subscription: TextColumn
) -> Iterator[bytes]:
    """The identities of matches, row by row: the first 16 bytes of the SHA-256 of content, revision and the JSON text
    of [publication, subscription]. Ledgers on disk and receivers have them: never change it."""
    begun = [hashlib.sha256(text.encode()) for text in content[0]]
    revisions = [text.encode() for text in revision[0]]
    publications = [f'["{_escaped(text)}",'.encode() for text in publication[0]]
    subscriptions = [f'"{_escaped(text)}"]'.encode() for text in subscription[0]]
    for c, r, p, s in zip(content[1], revision[1], publication[1], subscription[1], strict=True):
        digest = begun[c].copy()
        digest.update(revisions[r] + publications[p] + subscriptions[s])
        yield digest.digest()[:IDENTITY_BYTES]


def match_identity(content: str, revision: str, publication: str, subscription: str) -> bytes:
    """The identity of one match: see `match_identities`."""
    columns = [((text,), (0,)) for text in (content, revision, publication, subscription)]
    return next(match_identities(*columns))


def told_identities(
    same: Same,
    content: TextColumn,
    revision: TextColumn,
    publication: TextColumn,
    subscription: TextColumn,
    bindings: TextColumn,
) -> Iterator[bytes]:
    """By which a match is known to have been told, row by row; `bindings` are texts (`bindings_text`)."""
    nothing = ("",), (0,) * len(subscription[1])
    if same is Same.BINDINGS:
        return match_identities(
            (tuple(map(_without_labels, bindings[0])), bindings[1]), revision, nothing, subscription
        )
    return match_identities(nothing if same is Same.ID else content, revision, publication, subscription)


def _without_labels(bindings: str) -> str:
    """Bindings as JSON text, without the labels of blank nodes, which change from file to file."""
    if '"bnode"' not in bindings:
        return bindings
    rows = json.loads(bindings)
    for term in (term for row in rows for term in row.values() if term["type"] == "bnode"):
        term["value"] = ""
    return json.dumps(sorted(json.dumps(row, sort_keys=True) for row in rows))


def _escaped(text: str) -> str:
    """The text as JSON has it between its quotes, other characters than these as they are."""
    return _UNSAFE.sub(lambda unsafe: _SHORT.get(unsafe[0]) or f"\\u{ord(unsafe[0]):04X}", text)


# --- tables for notebooks; all text is escaped, so that what a feed says never becomes markup or a link ---------------

ROWS = 50  # of a table; a line says how many more there are
CELL = 300  # characters of a cell
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")  # or turned around


def escaped(text: str) -> str:
    """The text, shortened, as HTML shows it. Characters that cannot be seen are written as escapes."""
    visible = _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", shortened(text, CELL))
    return html.escape(visible, quote=True)


def term_text(term: Term) -> str:
    """A term for a cell: a plain text without quotation marks, everything else in N-Triples notation."""
    is_plain = isinstance(term, Literal) and str(term).endswith('"')
    return term.lexical if is_plain and isinstance(term, Literal) else str(term)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> str:
    """A table of the first rows of `count`; all arguments are text."""
    first = islice(rows, ROWS)
    lines = [f"<table><caption>{escaped(caption)}</caption>", _row("th", head), *(_row("td", row) for row in first)]
    if count > ROWS:
        lines.append(f'<tr><td colspan="{len(head)}">{count - ROWS:,} more</td></tr>')
    return "\n".join([*lines, "</table>"])


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align:left">{escaped(cell)}</{tag}>' for cell in cells) + "</tr>"


def lines_of_text(text: str) -> str:
    """Lines of text with their indents. Each line is shortened."""
    return "<pre>" + "\n".join(map(escaped, text.split("\n"))) + "</pre>"
