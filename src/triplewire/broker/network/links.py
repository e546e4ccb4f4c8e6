"""Keeps the roots of a broker's subscriptions at its upstreams, and publishes what these tell.

    each half second, for each upstream, in the one process that does it:
        take over what has changed of the own subscriptions                    (`roots`)
        subscribe at the upstream with roots that are not there; then end what is there and is no subscription here;
        renew what ends soon and is still wanted
        for each page of events behind the last one that was taken:
            accept the publications that come with them, in order, and the number of the last event, in one transaction

A root that another one contains since is not ended but left to its lease, as it brings nothing more; so the upstream
still knows what it has told it, and tells when that matches no more. A lease never lasts longer than the longest of the
subscriptions that it stands for: where brokers are each other's upstreams, what nobody wants any more ends for all.
Where a lease has ended that is still wanted, as the upstream was not asked for too long, a dead letter says so.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire import crash
from triplewire.broker.broker import SHORTEST, Broker
from triplewire.broker.events.event_log import EXPIRED
from triplewire.broker.network.crossing import Crossing, crossing_of, identity_of, newest_seen
from triplewire.broker.network.roots import EVERYTHING, PREFIX, Roots
from triplewire.broker.network.upstream import Upstream
from triplewire.broker.publications.accepted import Once, Rows, Taken, accept
from triplewire.broker.repeating import Repeating
from triplewire.broker.subscriptions.followed import SUSPENDED
from triplewire.errors import (
    ArgumentError,
    BusyError,
    ReadError,
    ServiceError,
    StoreError,
    TriplewireError,
    text_of_raised,
)
from triplewire.model.namespaces import RSS
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.store import database
from triplewire.store.database import DAY, begins_with, now
from triplewire.store.tables import facts

WORK = "network"
STATE = "upstream "
"""What the names of facts begin with that say how an upstream is; its address follows."""

_LOOK = 0.5  # seconds between looks at an upstream
_TAKE_OVER = 2.0  # seconds between tries to become the process that does it
_MOST_PAUSE = 30.0  # seconds between tries at an upstream that does not answer
_KEEP = 300.0  # seconds between looks at what is there of ours
_GRACE = 600.0  # seconds that a root outlasts the subscriptions that it stands for
_LEAST = 120.0  # seconds that a subscription of another broker still has to last to be passed on

_KNOWN = sa.text(
    "INSERT INTO origins (publication, broker, number, id) VALUES (:publication, :broker, :number, :id)"
    " ON CONFLICT (publication, broker) DO UPDATE SET number = excluded.number"
)
_log = logging.getLogger("triplewire.broker")


class Network(Repeating):
    """Keeps the links of a broker to these upstreams, for as long as the block lasts."""

    def __init__(self, broker: Broker, urls: Iterable[str], token: str) -> None:
        super().__init__("network")
        self._broker = broker
        self._urls, self._token = list(dict.fromkeys(url.rstrip("/") for url in urls)), token
        for url in self._urls:
            Upstream(url, token)  # raises for what is no address

    def _turn(self) -> float:
        if (term := self._broker.database.alone_at(WORK, self._broker.holder)) is None:
            return _TAKE_OVER
        links = [Link(self._broker, url, self._token, term) for url in self._urls]
        try:
            for link in links:
                link.start()
            while not (self._stop.is_set() or any(link.is_lost for link in links)):
                self._stop.wait(_LOOK)
        finally:
            for link in links:
                link.stop()
        return _TAKE_OVER


class Lease(NamedTuple):
    """A subscription of ours at an upstream, when it was made and when it ends."""

    id: str
    since: float
    expires: float


class Link(Repeating):
    """The link of a broker to one upstream. `term`: that in which this process keeps links."""

    def __init__(self, broker: Broker, url: str, token: str, term: int) -> None:
        super().__init__(f"upstream {url}")
        self._broker, self._database, self._term = broker, broker.database, term
        self._url, self._upstream = url, Upstream(url, token)
        self._me = identity_of(broker.database)
        self._prefix = f"{PREFIX}{self._me}."
        self._fact = STATE + url
        self._state: dict[str, Any] = {"broker": "", "after": 0, "roots": 0, "suspended": 0, "failures": 0}
        with self._database.reading() as connection:
            stored = database.fact(connection, facts, self._fact) or "{}"
        self._state |= {"reason": "", "at": now(), **json.loads(stored)}
        self._roots: Roots | None = None
        self._there: dict[str, Lease] | None = None  # by the keys of roots; None: to be asked
        self._due = 0.0  # when it is looked at again what is there
        self.is_lost = False  # another process keeps links now

    def _turn(self) -> float:
        try:
            while self.step():
                pass
            if self._state["failures"]:
                self._note(failures=0, reason="")
        except BusyError:
            self.is_lost = True
            self._stop.set()
        except StoreError:
            raise
        except Exception as error:  # what an upstream answers must not end the others
            if self._stop.is_set():  # it was given up
                return _LOOK
            self._there = None
            failures, reason = self._state["failures"] + 1, error.what if isinstance(error, TriplewireError) else ""
            self._note(failures=failures, reason=reason or text_of_raised(error))
            _log.warning("%s: %s", self._fact, self._state["reason"])
            return float(min(2.0 ** min(failures - 1, 10), _MOST_PAUSE))
        return _LOOK

    def stop(self, seconds: float | None = None) -> None:
        """End once what is under way is written; a request that is under way fails."""
        self._stop.set()
        self._upstream.close()
        super().stop(seconds)

    def step(self) -> int:
        """Keep the roots there, and take the next page of events; returns how many there were."""
        if self._roots is None:
            self._begin()
        assert self._roots is not None
        self._broker.followed.follow()
        if self._roots.follow() or self._there is None or now() >= self._due:
            self._keep(self._roots)
        _, page = self._upstream.events(self._state["after"], self._prefix)
        crash.point("network.asked")
        if page and not self._stop.is_set():
            self._tell_of_missed([event for event in page if event.get("type") == EXPIRED and self._is_missed(event)])
            self._publish(page)
            if any(event.get("type") in (EXPIRED, SUSPENDED) for event in page):
                self._there = None
        return len(page)

    def _begin(self) -> None:
        """Learn who the upstream is, and what is ours there."""
        broker, _ = self._upstream.events(2**62, self._prefix)
        if broker == self._me:
            raise ServiceError("the upstream is this broker itself", remedy="take it out of the settings: upstream")
        if broker != self._state["broker"]:
            # a new database at an old address counts its events anew
            self._note(broker=broker, after=0)
        self._roots = Roots(self._database, self._broker.engine, f"{PREFIX}{broker}.")

    # --- roots -------------------------------------------------------------------------------------------------------

    def _keep(self, roots: Roots) -> None:
        at = now()
        if is_due := self._there is None or at >= self._due:
            self._there = self._listed()
            self._due = at + _KEEP
        there = {key: lease for key, lease in (self._there or {}).items() if lease.expires > at + SHORTEST}
        self._there = there
        ends: dict[str, float] = {}
        if is_due or roots.keys() - there.keys():
            ends = {
                key: at + min(last - at + (0 if is_link else _GRACE), DAY)
                for key, (last, is_link) in roots.expires().items()
                if not is_link or last - at > _LEAST
            }
        while new := roots.keys() - there.keys() & ends.keys():
            there |= self._subscribed(roots, new, ends)
        keys = roots.keys()
        for key in there.keys() - keys:
            if not roots.knows(key):
                self._upstream.unsubscribe(there[key].id)
                del there[key]
        for key in keys & ends.keys() & there.keys():
            if there[key].expires < at + DAY / 2 and there[key].expires + SHORTEST < ends[key]:
                self._upstream.renew(there[key].id, max(ends[key] - at, SHORTEST))
                there[key] = there[key]._replace(expires=ends[key])
        self._note(roots=len(keys))

    def _subscribed(self, roots: Roots, new: set[str], ends: dict[str, float]) -> dict[str, Lease]:
        """Subscribe with these roots as far as they can be asked for; the others are refused among the roots."""
        asked, at, ids = roots.asked(new), now(), dict[str, str]()
        wanted = {}
        for key in sorted(new):
            if (query := asked.get(key)) is not None:
                id = f"{self._prefix}{key}.{secrets.token_hex(4)}"  # an id that has ended is never free again
                ids[id], wanted[id] = key, (query, max(ends[key] - at, SHORTEST))
        refused = {key for key in new if asked.get(key) is None}
        made: dict[str, Lease] = {}
        for id, why in self._upstream.subscribe(wanted):
            if not why:
                made[ids[id]] = Lease(id, at, ends[ids[id]])
                continue
            if ids[id] == EVERYTHING:
                raise ServiceError(f"the upstream takes no more subscriptions: {why}")
            _log.warning("%s: all is asked for, as it refuses subscription %s: %s", self._fact, ids[id], why)
            refused.add(ids[id])
        roots.refuse(refused)
        return made

    def _listed(self) -> dict[str, Lease]:
        """What is ours at the upstream; what is there twice, as an answer was lost, is ended."""
        there: dict[str, Lease] = {}
        rows = self._upstream.subscriptions(self._prefix)
        for row in rows:
            key = self._key(row["id"])
            if key in there:
                self._upstream.unsubscribe(row["id"])
            else:
                there[key] = Lease(row["id"], float(row["created"]), float(row["expires"]))
        self._note(suspended=sum(row["state"] == SUSPENDED for row in rows))
        return there

    def _key(self, id: str) -> str:
        """The key of the root that a subscription of ours at the upstream is."""
        return id.removeprefix(self._prefix).rpartition(".")[0]

    # --- publications ------------------------------------------------------------------------------------------------

    def _publish(self, page: Sequence[dict[str, Any]]) -> None:
        """Publish what comes with these events, in their order."""
        run: list[Crossing] = []
        last = self._state["after"]
        for event in page:
            crossing = self._crossing(event) if "document" in event else None
            if crossing is not None:
                if run and (run[-1].readers, run[-1].refused) != (crossing.readers, crossing.refused):
                    self._publish_run(run, last)
                    run = []
                run.append(crossing)
            last = event["number"]
        self._publish_run(run, last)

    def _is_missed(self, event: dict[str, Any]) -> bool:
        """Was nobody asking for what a lease stood for, when it had ended?"""
        assert self._roots is not None
        there = self._there or {}
        over = self._roots.over(self._key(str(event["subscription"])))
        return any(key not in there or there[key].since > float(event["at"]) for key in over)

    def _tell_of_missed(self, ended: Sequence[dict[str, Any]]) -> None:
        """A dead letter, once, of what matched at the upstream and was not told as these leases had ended."""
        if not ended:
            return
        first, until = (dt.datetime.fromtimestamp(at, dt.UTC) for at in (min(float(e["at"]) for e in ended), now()))
        id = f"urn:triplewire:missed:{self._state['broker']}:{ended[0]['number']}"
        title = f"Missed at {self._fact}"
        reason = (
            f"{title}: {len(ended):,} of our subscriptions there had ended since {first:%Y-%m-%d %H:%M} UTC, as it was "
            f"not asked for longer than their leases; what came until {until:%Y-%m-%d %H:%M} UTC was not told for these"
        )
        about = IRI(id)
        letter = Publication(id, [Triple(about, IRI(RSS + "title"), Literal(title))], self._url)
        if any(entry.is_new for entry in self._broker.publish([letter], held={id: reason})):
            _log.warning("%s", reason)

    def _crossing(self, event: dict[str, Any]) -> Crossing | None:
        """What an event brings; None for what was accepted here first, and what cannot be read."""
        try:
            crossing = crossing_of(event, self._broker.settings)
        except ReadError as error:
            _log.warning("%s: event %s: %s", self._fact, event["number"], error)
            self._broker.counts.crossed.labels("refused").inc()
            return None
        if crossing.origin.broker.partition(".")[0] == self._me:
            self._broker.counts.crossed.labels("own").inc()
            return None
        return crossing

    def _publish_run(self, run: Sequence[Crossing], last: int) -> None:
        """Accept publications of the same readers, or those that cannot be matched, with the number of the last event
        about them. One that the database cannot keep, as for its id, is left out."""
        try:
            taken = self._broker.publish(
                [crossing.publication for crossing in run],
                readers=run[0].readers if run else None,
                held={crossing.publication.id: crossing.refused for crossing in run if crossing.refused},
                accepting=partial(self._accept, run, {**self._state, "after": last}),
            )
        except ArgumentError as error:
            if not run:
                raise
            for crossing in run if len(run) > 1 else ():
                self._publish_run([crossing], self._state["after"])
            if len(run) == 1:
                _log.warning("%s: %r: %s", self._fact, run[0].publication.id, error)
                self._broker.counts.crossed.labels("refused").inc()
            self._publish_run([], last)
            return
        self._state["after"] = last
        crash.point("network.published")
        new = sum(entry.is_new for entry in taken)
        self._broker.counts.crossed.labels("new").inc(new)
        self._broker.counts.crossed.labels("repeated").inc(len(run) - new)

    def _accept(
        self, run: Sequence[Crossing], state: dict[str, Any], connection: Connection, rows: Rows, once: Once | None
    ) -> list[Taken]:
        """Write what has not come before on another way, nor was overtaken on one."""
        self._database.check_term(connection, WORK, self._term)
        seen = newest_seen(connection, run)
        fresh: list[tuple[Crossing, Any]] = []
        for crossing, row in zip(run, rows, strict=True):
            key = crossing.publication.id, crossing.origin.broker
            if crossing.origin.number > seen[key]:
                seen[key] = crossing.origin.number
                fresh.append((crossing, row))
        taken = accept(connection, [row for _, row in fresh], once)
        known = [
            {"publication": entry.number, "id": entry.id, **crossing.origin._asdict()}
            for entry, (crossing, _) in zip(taken, fresh, strict=True)
        ]
        if known:
            connection.execute(_KNOWN, known)
        self._write_state(connection, state)
        return taken

    # --- how the link is ---------------------------------------------------------------------------------------------

    def _note(self, **values: Any) -> None:
        """Write down how the link is, where that has changed."""
        new = {**self._state, **values}
        if new != self._state:
            self._database.write(lambda connection: self._write_state(connection, {**new, "at": now()}))
            self._state = new

    def _write_state(self, connection: Connection, state: dict[str, Any]) -> None:
        database.state(connection, facts, **{self._fact: json.dumps(state)})


def states_of(connection: Connection) -> dict[str, dict[str, Any]]:
    """How each upstream was when that changed last: by its address, the identity of its `broker`, how many `roots` are
    there and how many of them are `suspended`, `failures` in a row and the `reason`, `at` what time."""
    rows = connection.execute(sa.select(facts).where(begins_with(facts.c.name, STATE)))
    return {row.name.removeprefix(STATE): json.loads(row.value) for row in rows}
