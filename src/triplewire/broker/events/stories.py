"""Once per story: of publications that report the same thing, a subscription that asks for that is told the first one.

A publication is a set of shingles, runs of three words of its texts. How alike two sets are (Jaccard) is estimated by
the share of equal minima of hash functions (MinHash: Broder, "On the resemblance and containment of documents", 1997);
those that may be alike are found by bands of minima that are equal as a whole (Leskovec, Rajaraman, Ullman, "Mining of
Massive Datasets", section 3.4), or by an address that both give. Nothing is computed, or kept, where no subscription
asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from html import unescape

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from triplewire.broker.events.event_log import CHANGED, MATCHED, REPEATED
from triplewire.broker.events.matching import Accepted, Batch
from triplewire.broker.subscriptions.followed import ONCE_PER_STORY, Followed, rows_with
from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import Analyzer
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Triple, made_iri
from triplewire.store.database import DAY, now
from triplewire.store.tables import bands, events, stories

ALIKE = 0.5
"""The share of equal minima from which two publications report one story."""
ALIKE_WITH_LINK = 0.25
"""The same for two that give the same address of a page."""
LASTS = 3 * DAY
"""Seconds after which nothing is compared with a publication any more."""

_WORDS = 3  # of a shingle
_FEWEST = 8  # shingles of a publication that is compared at all
_BANDS, _ROWS = 16, 4
_MOST_COMPARED = 50  # of one band, the newest ones
_MOST_LINKS = 50  # of a publication, those of the least hashes: two that give the same ones keep the same
_TAG = re.compile(r"<[^<>]*>")  # of HTML: pages of one site are not alike for that
_NO_PAGE = frozenset({RDF_TYPE, IRI("http://purl.org/dc/terms/isPartOf")})
_random = np.random.default_rng(61)  # the same functions in all processes
_FACTORS = _random.integers(0, 2**63, _BANDS * _ROWS, np.uint64) * np.uint64(2) + np.uint64(1)
_SUMMANDS = _random.integers(0, 2**63, _BANDS * _ROWS, np.uint64)


@dataclass(frozen=True)
class Signature:
    """The minima of a publication, and the keys by which others like it are found."""

    minima: NDArray[np.uint32]
    keys: tuple[int, ...]
    links: frozenset[int]

    def is_alike(self, minima: NDArray[np.uint32], same_link: bool) -> bool:
        """Does a publication with these minima report the same story?"""
        share = float(np.mean(self.minima == minima))
        return share >= (ALIKE_WITH_LINK if same_link else ALIKE)


def signature(publication: Publication) -> Signature | None:
    """What a publication is compared by; None where it has too few words."""
    about = made_iri(publication.id)
    triples: Sequence[Triple] = [triple for triple in publication.triples if triple.subject == about]
    triples = triples or publication.triples
    texts = sorted({triple.object.lexical for triple in triples if isinstance(triple.object, Literal)})
    shingles = set().union(*(_shingles(text) for text in texts))
    if len(shingles) < _FEWEST:
        return None
    hashes = np.array([_hash(text) for text in sorted(shingles)], np.uint64)
    values = (hashes[:, None] * _FACTORS + _SUMMANDS) >> np.uint64(32)
    minima = values.min(0).astype(np.uint32)
    rows = minima.reshape(_BANDS, _ROWS)
    of_bands = [_key(f"{number} {row.tolist()}") for number, row in enumerate(rows)]
    links = frozenset(sorted(_key(f"link {link}") for link in _links(triples))[:_MOST_LINKS])
    return Signature(minima, (*of_bands, *sorted(links)), links)


def _shingles(text: str) -> set[str]:
    if " " not in text.strip():
        return set()  # an address, a date, a number
    words = analyse(unescape(_TAG.sub(" ", text)), Analyzer())
    return {" ".join(words[at : at + _WORDS]) for at in range(len(words) - _WORDS + 1)}


def _links(triples: Iterable[Triple]) -> set[str]:
    """The addresses of pages that triples give."""
    links: set[str] = set()
    for triple in triples:
        term = triple.object
        text = term.value if isinstance(term, IRI) else term.lexical if isinstance(term, Literal) else ""
        if triple.predicate not in _NO_PAGE:
            links.update(re.findall(r"https?://[^\s\"'<>]+", text))
    return links


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _key(text: str) -> int:
    """A number that both databases can keep: 63 bits."""
    return _hash(text) >> 1


class Stories:
    """Turns events of stories that were told into `repeated` ones, in the transaction that writes them."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed

    def choose(self, connection: Connection, accepted: Sequence[Accepted], batch: Batch) -> None:
        """See `Matching`. It may be called again with the same batch."""
        flags = self._followed.flags
        if not any((flags[numbers] & ONCE_PER_STORY).any() for numbers in batch.matched.values()):
            return
        places: dict[int, list[int]] = {}  # of events, by publication
        for place, event in enumerate(batch.events):
            if event[3] in (MATCHED, CHANGED, REPEATED) and flags[event[1]] & ONCE_PER_STORY:
                places.setdefault(event[4], []).append(place)
        silent: set[int] = set()
        told_now: dict[int, dict[int, int]] = {}  # publication -> subscription -> the event that its story has
        for entry in accepted:
            if entry.number not in places:
                continue
            alike = _alike(connection, entry)
            told = _told(connection, alike)
            for number in sorted(alike):
                told |= told_now.get(number, {})
            changed = _repeated(connection, entry.previous) if entry.previous is not None else {}
            here = told_now.setdefault(entry.number, {})
            for place in places[entry.number]:
                number, subscription, sequence, kind, publication, at, bindings, _ = batch.events[place]
                first = (changed if kind == CHANGED else told).get(subscription)
                if first is not None and first < number:
                    row = (number, subscription, sequence, REPEATED, publication, at, bindings, first)
                    batch.events[place] = row
                    silent.add(number)
                here[subscription] = number if first is None else first
        batch.delivering = [entry for entry in batch.delivering if entry[0] not in silent]
        _forget_old(connection)


def _alike(connection: Connection, entry: Accepted) -> set[int]:
    """The publications of the same story that were kept before; this one is kept, too."""
    made = signature(entry.publication)
    if made is None:
        return set()
    at = now()
    alike: set[int] = set()
    shared: dict[int, set[int]] = {}
    for key in made.keys:
        here = sa.select(bands.c.publication).where(bands.c.band == key, bands.c.publication != entry.number)
        for number in connection.execute(here.order_by(bands.c.publication.desc()).limit(_MOST_COMPARED)).scalars():
            shared.setdefault(number, set()).add(key)
    recent = sa.select(stories).where(stories.c.at > at - LASTS)
    for row in rows_with(connection, recent, stories.c.publication, sorted(shared)):
        minima = np.frombuffer(row.signature, np.uint32)
        if made.is_alike(minima, bool(shared[row.publication] & made.links)):
            alike.add(row.publication)
    connection.execute(
        stories.insert().values(publication=entry.number, signature=made.minima.tobytes(), at=at),
    )
    connection.execute(bands.insert(), [{"band": key, "publication": entry.number} for key in set(made.keys)])
    return alike


def _told(connection: Connection, alike: Iterable[int]) -> dict[int, int]:
    """Subscription -> the number of the event by which it was told of one of these publications, or of their story."""
    numbers = list(alike)
    if not numbers:
        return {}
    here = sa.select(events.c.subscription, events.c.number, events.c.first).where(
        events.c.publication.in_(numbers), events.c.type.in_((MATCHED, CHANGED, REPEATED))
    )
    told: dict[int, int] = {}
    for row in connection.execute(here.order_by(events.c.number)):
        told.setdefault(row.subscription, row.number if row.first is None else row.first)
    return told


def _repeated(connection: Connection, previous: int) -> dict[int, int]:
    """The subscriptions for which the content before was a repeated one -> the event that told its story."""
    here = sa.select(events.c.subscription, events.c.first).where(
        events.c.publication == previous, events.c.type == REPEATED
    )
    return {row.subscription: row.first for row in connection.execute(here)}


def _forget_old(connection: Connection) -> None:
    """Forget publications that nothing is compared with any more."""
    old = sa.select(stories.c.publication).where(stories.c.at <= now() - LASTS)
    connection.execute(bands.delete().where(bands.c.publication.in_(old)))
    connection.execute(stories.delete().where(stories.c.at <= now() - LASTS))
