"""The process that talks to the service: it sends what the outbox has, sets up what readers ask for, renews it, and
fetches notifications whose push was lost. One at a time, however many are started; all it knows is in the database, so
it may end at any moment."""

from __future__ import annotations

import datetime as dt
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError
from django.db import close_old_connections
from django.utils import timezone

from wagtail_triplewire import inbox, mail, outbox, taxonomy
from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import Outbox, Request, Sender, new_id
from wagtail_triplewire.names import name_of, page_iri, source_of
from wagtail_triplewire.service import Service, ServiceError

HELD = 15.0  # seconds for which a sender has the turn; it renews it with each look
LOOK = 0.5  # seconds between two looks where nothing wakes it
LONGEST_PAUSE = 60.0
_AT_ONCE = 500  # rows of one look
_PUBLISHING = (Outbox.Kind.PUBLISH, Outbox.Kind.WITHDRAW)
_log = logging.getLogger("wagtail_triplewire")


def pause(tries: int) -> float:
    """Seconds until another try."""
    return min(2.0 ** (tries - 1), LONGEST_PAUSE)


class Turn:
    """The right to send, of one process of all that share the database."""

    def __init__(self) -> None:
        self._name = f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"

    def take(self) -> bool:
        """Have it, or keep it. That of a process of this machine that has ended is taken over at once."""
        row, _ = Sender.objects.get_or_create(pk=1)
        if row.holder != self._name and row.until > time.time() and _is_alive(row.holder):
            return False
        mine = Sender.objects.filter(pk=1, holder=row.holder, until=row.until)
        return bool(mine.update(holder=self._name, until=time.time() + HELD))

    def give_up(self) -> None:
        """Let another one have it at once."""
        Sender.objects.filter(pk=1, holder=self._name).update(until=0)


def _is_alive(holder: str) -> bool:
    host, number, _ = holder.split(":")
    if host != socket.gethostname():
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Looks:
    """One look after another. `is_settled`: nothing was left to do, or can be done now."""

    def __init__(self) -> None:
        self._service: Service | None = None
        self._is_reconciled = False
        self._failures = 0
        self._not_before = 0.0
        self._taxonomy_from = 0.0

    def look(self) -> int:
        """Do what is to be done; returns how many steps that were."""
        if time.time() < self._not_before:
            return 0
        try:
            self._service = self._service or Service()
            done = self._everything(self._service)
            self._failures = 0
            return done
        except ServiceError as error:
            self._service = None
            self._failures += 1
            self._not_before = time.time() + pause(self._failures)
            _log.warning("nothing can be sent now: %s; next try in %.0f s", error, pause(self._failures))
            return 0

    def _everything(self, service: Service) -> int:
        if not self._is_reconciled:
            if outbox.is_of_another_address():
                _begin_anew()
            outbox.reconcile()
            reconcile(service)
            self._is_reconciled = True
        done = self._send(service) + subscribe(service) + renew(service)
        state = Sender.objects.get_or_create(pk=1)[0]
        if time.time() > state.pulled + conf().pull:
            done += pull(service, state)
        return done + mail.send_digests()

    def _send(self, service: Service) -> int:
        """Send rows in their order; behind one that failed, its page waits."""
        now, waiting, done = time.time(), set(), 0
        for row in Outbox.objects.filter(state=Outbox.State.WAITING)[:_AT_ONCE]:
            if row.page in waiting:
                continue
            if row.due > now:
                waiting |= {row.page} - {None}
                continue
            try:
                self._send_row(service, row)
                _sent(row)
                done += 1
            except (ServiceError, ValidationError) as error:
                is_final = not isinstance(error, ServiceError) or error.is_final
                row.tries += 1
                row.answer = " ".join(getattr(error, "messages", [str(error)]))[:2_000]
                row.due = time.time() + pause(row.tries)
                row.state = Outbox.State.REFUSED if is_final else Outbox.State.WAITING
                row.save(update_fields=["tries", "answer", "due", "state"])
                if not is_final:
                    raise
                _log.error("outbox %d is refused: %s", row.seq, error)
        return done

    def _send_row(self, service: Service, row: Outbox) -> None:
        if row.kind in _PUBLISHING and row.page is not None:
            self._tell_taxonomy(lambda: taxonomy.refresh_pages(service, [row.page]))
            named = {"page": page_iri(row.page), "revision": row.seq, "wait": False}
            if row.kind == Outbox.Kind.PUBLISH:
                service.call("publish", content=row.payload, content_type="application/rdf+xml", **named)
            else:
                service.call("publish", delete=True, **named)
        elif row.kind == Outbox.Kind.PUBLISH:
            service.call("publish", content=row.payload, content_type="application/n-triples", wait=False)
        elif row.kind == Outbox.Kind.TAXONOMY:
            self._tell_taxonomy(lambda: taxonomy.refresh_categories(service))
        else:
            try:
                _end(service, row)
            except ServiceError as error:
                if error.code != 404:  # it is gone already
                    raise

    def _tell_taxonomy(self, tell: Callable[[], None]) -> None:
        """A service that does not take the vocabulary takes pages still: why not is kept, and tried again later."""
        if time.time() < self._taxonomy_from:
            return
        reason = ""
        try:
            tell()
        except ServiceError as error:
            if not error.code:
                raise
            reason = str(error)
            self._taxonomy_from = time.time() + LONGEST_PAUSE
            _log.warning("the service does not take the vocabulary: %s", error)
        Sender.objects.filter(pk=1).exclude(taxonomy=reason).update(taxonomy=reason)


def _begin_anew() -> None:
    """At another address of the site the vocabulary is told anew, and requests are set up with the new call-back."""
    taxonomy.forget()
    if conf().categories:
        outbox.categories_changed()
    for request in Request.objects.filter(state=Request.State.ACTIVE):
        Request.objects.filter(pk=request.pk).update(state=Request.State.WANTED, subscription=new_id(), expires=None)


def _end(service: Service, row: Outbox) -> None:
    if row.kind == Outbox.Kind.FORGET:
        service.call("forget", user=row.payload)
    elif row.kind == Outbox.Kind.UNSUBSCRIBE:
        service.call("unsubscribe", subscription=row.payload)
    elif not Request.objects.filter(url=row.payload).exists():
        service.http("DELETE", f"/sources/{source_of(row.payload)}")


def _sent(row: Outbox) -> None:
    """Keep of a page that the service knows it, and nothing else."""
    if row.page is not None:
        Outbox.objects.filter(page=row.page, seq__lt=row.seq, state=Outbox.State.SENT).delete()
    if row.page is None or row.kind == Outbox.Kind.WITHDRAW:
        row.delete()
    else:
        Outbox.objects.filter(pk=row.pk).update(state=Outbox.State.SENT, payload="", answer="")


def _values(told: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an answer about a subscription."""
    expires = told["expires"].replace(tzinfo=dt.UTC)
    return {"feed": told.get("feed", ""), "ticket": told.get("ticket", ""), "expires": expires}


def subscribe(service: Service) -> int:
    """Set up what readers ask for. Returns how many."""
    done = 0
    wanted = Request.objects.filter(state=Request.State.WANTED)
    for request in wanted.order_by("pk")[:_AT_ONCE]:
        try:
            told = _subscribed(service, request)
            values = {"state": Request.State.ACTIVE, "reason": " ".join(told.get("warnings", [])), **_values(told)}
        except ServiceError as error:
            if not error.is_final:
                raise
            values = {"state": Request.State.REFUSED, "reason": str(error)}
        Request.objects.filter(pk=request.pk, subscription=request.subscription).update(**values)
        done += 1
    return done


def _subscribed(service: Service, request: Request) -> dict[str, Any]:
    """Set up a subscription, and then the feed it is of, so that it is told what the feed has by now."""
    told = _registered(service, request)
    if request.kind == Request.Kind.FEED:
        _poll(service, request.url)
    return told


def _registered(service: Service, request: Request) -> dict[str, Any]:
    user = name_of(request.user_id)
    try:
        made: dict[str, Any] = service.call(
            "subscribe",
            id=request.subscription,
            user=user,
            title=request.title,
            query=request.query,
            language="gql",
            seconds=float(conf().lease),
            notify=conf().url("notify"),
            secret=conf().inbox_key,
        )
        return made
    except ServiceError as error:
        for told in service.call("list", user=user) if error.is_final else []:
            if told["id"] == request.subscription:  # an answer was lost: it is set up already
                return {**told, "ticket": ""}
        raise


def _poll(service: Service, url: str) -> None:
    """Have the service poll a feed, if it does not yet."""
    try:
        service.http("POST", "/sources", {"url": url, "kind": "poll", "id": source_of(url)})
    except ServiceError as error:
        if error.code != 409:
            raise


def renew(service: Service) -> int:
    """Renew, in bulk, what has less than half of its time left. What is gone there is set up again."""
    soon = timezone.now() + dt.timedelta(seconds=conf().lease / 2)
    due = Request.objects.filter(state=Request.State.ACTIVE, expires__lt=soon).order_by("expires")
    by_id = {request.subscription: request for request in due[:_AT_ONCE]}
    if not by_id:
        return 0
    for told in service.call("renew", subscriptions=list(by_id), seconds=float(conf().lease)):
        here = Request.objects.filter(subscription=told["id"])
        if "expires" in told:
            here.update(expires=told["expires"].replace(tzinfo=dt.UTC))
        else:
            here.update(state=Request.State.WANTED, subscription=new_id(), expires=None)
    return len(by_id)


def reconcile(service: Service) -> None:
    """Compare what the service has with what is kept here: what is missing there is set up again, what nobody asks for
    here any more ends."""
    there = {told["id"]: told for told in service.call("list") if told.get("user")}
    for request in Request.objects.filter(state=Request.State.ACTIVE):
        told = there.pop(request.subscription, None)
        if told is None or told["state"] == "ended":
            here = Request.objects.filter(pk=request.pk, subscription=request.subscription)
            here.update(state=Request.State.WANTED, subscription=new_id(), expires=None)
        elif (expires := told["expires"].replace(tzinfo=dt.UTC)) != request.expires:
            Request.objects.filter(pk=request.pk).update(expires=expires)
    asked = set(Request.objects.values_list("subscription", flat=True))
    for id, told in there.items():
        if id not in asked and told["state"] != "ended":
            with suppress(ServiceError):
                service.call("unsubscribe", subscription=id)


def pull(service: Service, state: Sender) -> int:
    """Take in all notifications behind the last that was looked at: those that were pushed are here already."""
    done, cursor = 0, state.cursor
    while events := service.call("notifications", after=cursor, most=1_000, why=True):
        done += sum(inbox.take_event(event) for event in events)
        cursor = int(events[-1]["number"])
        Sender.objects.filter(pk=1).update(cursor=cursor)
    Sender.objects.filter(pk=1).update(pulled=time.time())
    return done


def run(stopping: threading.Event) -> None:
    """Look, until it is to stop."""
    turn, looks = Turn(), Looks()
    while not stopping.is_set():
        outbox.WOKEN.clear()
        done = 0
        try:
            done = looks.look() if turn.take() else 0
        except Exception:
            _log.exception("the sender goes on after a fault")
            stopping.wait(LOOK)
        close_old_connections()
        if not done:
            outbox.WOKEN.wait(LOOK)
    turn.give_up()


_threads: list[threading.Thread] = []


def start_thread(**_: Any) -> None:
    """For development: send from a thread of the server, which begins with its first request."""
    if not _threads:
        _threads.append(threading.Thread(target=run, args=(threading.Event(),), name="triplewire", daemon=True))
        _threads[0].start()
