"""The doors that say how the service is: for those who start it, balance its load and watch it.

What Prometheus reads are counts alone, with labels of few values each. That door asks for `metrics_token`, or for the
token of the service's owner, of who does not come from `metrics_from`.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from triplewire.broker.network.links import states_of
from triplewire.errors import TriplewireError
from triplewire.service.access import ANYBODY, WATCHER, allowed, bearer, broker, owner_or_none, settings
from triplewire.service.problems import Problem
from triplewire.store.database import Database, now
from triplewire.store.tables import deliveries, publications, subscriptions, targets

router = APIRouter(tags=["health"])


@router.get("/liveness")
@allowed(ANYBODY)
def liveness() -> dict[str, Any]:
    """Is the process there?"""
    return {"alive": True}


@router.get("/readiness")
@allowed(ANYBODY)
def readiness(request: Request) -> dict[str, Any]:
    """Can it take publications? The database answers, and subscriptions are loaded."""
    with broker(request).database.reading() as connection:
        connection.execute(sa.select(1))
    return {"ready": True}


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
@allowed(WATCHER)
def metrics(request: Request) -> Response:
    """What Prometheus reads (text format 0.0.4)."""
    _check(request)
    of_store = CollectorRegistry()
    of_store.register(_OfStore(broker(request).database))
    text = b"".join(map(generate_latest, (broker(request).counts.registry, of_store)))
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _check(request: Request) -> None:
    """Raises `Problem` (401) for who may not read it."""
    known = settings(request)
    token = bearer(request).encode("utf-8", "surrogatepass")
    if known.metrics_token and hmac.compare_digest(token, known.metrics_token.encode()):
        return
    if owner_or_none(request) == known.owner or _is_from(request, known.metrics_from):
        return
    raise Problem(401, "a token is needed", "send the header Authorization: Bearer TOKEN (metrics_token)")


def _is_from(request: Request, networks: str) -> bool:
    try:
        address = ipaddress.ip_address(request.client.host if request.client else "")
    except ValueError:  # a socket of the file system
        return False
    return any(address in network for network in parsed_networks(networks))


def parsed_networks(text: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The networks of a list. Raises `TriplewireError` for what is none."""
    try:
        return [ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise TriplewireError(f"metrics_from: {error}", remedy="networks by ',': 127.0.0.0/8,::1") from None


class _OfStore(Collector):
    """What the store says for all processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterator[Metric]:
        """All metrics as they are now."""
        pending = deliveries.c.state == "pending"
        with self._database.reading() as connection:

            def counted(column: sa.ColumnElement[str], here: sa.FromClause) -> dict[str, int]:
                rows = connection.execute(sa.select(column, sa.func.count()).select_from(here).group_by(column))
                return {row[0]: row[1] for row in rows}

            of_state = counted(subscriptions.c.state, subscriptions)
            by_channel = sa.select(targets.c.kind, sa.func.count()).join(
                deliveries, deliveries.c.target == targets.c.number
            )
            waiting = {row[0]: row[1] for row in connection.execute(by_channel.where(pending).group_by(targets.c.kind))}
            due = connection.execute(sa.select(sa.func.min(deliveries.c.due)).where(pending)).scalar()
            dead = connection.execute(_count_of(deliveries, "dead")).scalar_one()
            refused = connection.execute(_count_of(publications, "refused")).scalar_one()
            accepted = connection.execute(_count_of(publications, "accepted")).scalar_one()
            upstreams = states_of(connection)
        yield _gauge("subscriptions", "Subscriptions.", "state", of_state)
        yield _gauge("outbox_depth", "Deliveries that wait.", "channel", waiting)
        yield _gauge("deadletter_depth", "What was given up.", "kind", {"delivery": dead, "publication": refused})
        lag = max(0.0, now() - due) if due is not None else 0.0
        about = "Seconds by which the delivery that waits longest is late."
        yield GaugeMetricFamily("triplewire_delivery_lag_seconds", about, value=lag)
        about = "Publications that wait to be matched."
        yield GaugeMetricFamily("triplewire_publications_waiting", about, value=accepted)
        for name, about in _OF_UPSTREAMS.items():
            yield _gauge(f"upstream_{name}", about, "upstream", {url: state[name] for url, state in upstreams.items()})


def _gauge(name: str, about: str, label: str, values: dict[str, int]) -> Metric:
    gauge = GaugeMetricFamily(f"triplewire_{name}", about, labels=[label])
    for value, count in values.items():
        gauge.add_metric([value], count)
    return gauge


def _count_of(table: sa.Table, state: str) -> sa.Select[int]:
    return sa.select(sa.func.count()).select_from(table).where(table.c.state == state)


_OF_UPSTREAMS = {
    "roots": "Subscriptions that are asked for at an upstream.",
    "failures": "Failures in a row of asking an upstream.",
}
