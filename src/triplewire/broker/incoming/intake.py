"""What becomes of what a source brings: publications, and subscriptions that arrive as items of a feed.

Such an item (`triplewire.broker.incoming.item_subscriptions`) is never matched as content. From a source that may not
subscribe it is refused; a title that only speaks of GQL is content, wherever it comes from. An echo of this service is
refused (`triplewire.broker.publications.kept_contents`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from triplewire.broker.incoming.item_subscriptions import Asked, asked_by, take_over
from triplewire.broker.incoming.registered_sources import name_of
from triplewire.broker.publications.accepted import Once, Revision, Taken, accept
from triplewire.broker.publications.kept_contents import Came, link_of, origins_of, title_of
from triplewire.broker.subscriptions.followed import rows_with
from triplewire.broker.tickets import identity
from triplewire.errors import Refusal
from triplewire.model.publication import Publication
from triplewire.store.tables import current, publications

if TYPE_CHECKING:
    from triplewire.broker.broker import Broker

_FEW = 2  # items that look like others
_COMPARED = 1_000  # publications of the source that were there before


@dataclass
class Intake:
    """What became of a document: publications that were accepted, ids of subscriptions that it asked for, and what was
    refused, held back or repaired."""

    taken: list[Taken] = field(default_factory=list)
    subscribed: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def take(
    broker: Broker,
    came: Came,
    rows: Sequence[Row[Any]] = (),
    *,
    source: str = "",
    readers: Iterable[str] | None = None,
    most_new: int | None = None,
    once: Once | None = None,
    revision: Revision | None = None,
) -> Intake:
    """Take over a document; what is accepted is committed and synced. `rows`: the sources that it comes from, where
    they are registered; `source`: else, where it comes from. `most_new`: how many publications of ids that were not
    there before are told at most, and none that came before under other ids; the others are kept as refused. `once`:
    for a request that may come again; `revision`: of the page that it is. Raises what `Broker.publish` raises."""
    done, content, asked = Intake(refusals=list(came.refusals)), list[Publication](), list[Asked]()
    own, trusted = identity(broker.secret), [row for row in rows if row.may_subscribe]
    for publication in came.publications:
        wish, reason, remedy = asked_by(publication), "", ""
        if wish is not None and trusted:
            asked.append(wish)
            continue
        if wish is not None:
            reason = "an item with this title asks for a subscription, and its source may not"
            remedy = "let it: PATCH /sources/{id} with may_subscribe, or give the item another title"
        elif own in origins_of(publication):
            reason = f"it is an echo: it carries {own}, so this service has told it"
        if reason:
            done.refusals.append(Refusal("publication", publication.id, name(rows, source), reason, remedy))
        else:
            content.append(publication)
    for row in trusted if asked else ():
        subscribed, refusals = take_over(broker, row, asked, is_whole=not came.refusals)
        done.subscribed += subscribed
        done.refusals += refusals
    held: Mapping[str, str] = {}
    if most_new is not None:
        held = _held(broker, content, name(rows, source), most_new)
        reasons = ((id, reason) for id, reason in held.items())
        done.refusals += (Refusal("publication", id, name(rows, source), reason) for id, reason in reasons)
    if content:
        accepting = partial(accept, revision=revision)
        done.taken = broker.publish(
            content, source=name(rows, source), readers=readers, held=held, once=once, accepting=accepting
        )
    return done


def name(rows: Sequence[Row[Any]], source: str) -> str:
    """Where a document comes from, as its publications say."""
    return name_of(rows[0]) if rows else source


def _held(broker: Broker, content: Sequence[Publication], source: str, most_new: int) -> dict[str, str]:
    """Publications whose ids are new, and that are held back, with the reason: where most of them, and more than a few,
    have title, link and date of what the source brought before under other ids, these; and those beyond a number."""
    ids, table = [publication.id for publication in content], publications
    with broker.database.reading() as connection:
        there = {row.id for row in rows_with(connection, sa.select(current.c.id), current.c.id, ids)}
        before = sa.select(table.c.title, table.c.link, table.c.published).where(table.c.source == source)
        rows = connection.execute(before.order_by(table.c.number.desc()).limit(_COMPARED))
        known = {(row.title, row.link, row.published) for row in rows}
    new = {publication.id: publication for publication in content if publication.id not in there}
    again = [id for id, publication in new.items() if _looks(publication) in known]
    held: dict[str, str] = {}
    if len(again) > _FEW and 2 * len(again) > len(new):
        held = dict.fromkeys(again, f"held back: one of {len(again):,} items that came again under new ids")
    others = [id for id in new if id not in held]
    reason = f"held back: its source had {len(others):,} new items at once, of which {most_new:,} are told"
    return held | dict.fromkeys(others[most_new:], reason)


def _looks(publication: Publication) -> tuple[str, str, float | None]:
    """Title, link and date: what an item has in common with itself under another id."""
    date = publication.published.timestamp() if publication.published else None
    return title_of(publication), link_of(publication), date
