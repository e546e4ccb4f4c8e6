"""How many requests one may make in a minute: each account, and each network, of which an account may have many.

A network is an address of IPv4, or the /64 of an address of IPv6, which one customer has. Who may not go on is told
when: 429 with Retry-After, while others are answered. Requests of this machine itself are not counted, nor those of the
owner of the service, nor those that ask whether it is there. Dry runs, which take a processor for longer and keep
nothing, are counted once more, by themselves: a door or a router that is one depends on `DRY_RUN`.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from cachetools import LRUCache
from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from triplewire.config import ServiceSettings
from triplewire.deliver.limits import Allowance
from triplewire.errors import TriplewireError
from triplewire.net.guard import unwrapped
from triplewire.service.access import settings
from triplewire.service.problems import Problem

_REQUESTS, _DRY_RUNS = "requests", "dry runs"
_PROBES = ("/liveness", "/readiness", "/health")
# allowances that are remembered. The one that is forgotten was asked for longest ago, so it has filled up most; who has
# more networks than that is allowed as much as they are together, whether they are remembered or not
_MOST = 10_000


class Rates:
    """What accounts and networks have made of late. Any number of threads may ask."""

    def __init__(self, of: ServiceSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = {_REQUESTS: of.requests_per_minute, _DRY_RUNS: of.dry_runs_per_minute}
        self._clock = clock
        self._allowances: LRUCache[tuple[str, str], Allowance] = LRUCache(_MOST)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._allowances)

    def count(self, kind: str, by: Sequence[str]) -> None:
        """Count one request or dry run of an account and a network. Raises `Problem` (429) where one of them has made
        all that it may; then nothing is counted."""
        per_minute = self._per_minute[kind]
        with self._lock:
            at = self._clock()
            allowances = [self._allowances.setdefault((kind, who), Allowance(per_minute, at)) for who in by]
            waits = [allowance.seconds_until(at) for allowance in allowances]
            if not any(waits):
                for allowance in allowances:
                    allowance.take()
                return
        longest, who = max(zip(waits, by, strict=True))
        seconds = math.ceil(longest)
        what = f"more than {per_minute:,g} {kind} in a minute come from this {who.split()[0]}"
        name = f"TRIPLEWIRE_{kind.replace(' ', '_').upper()}_PER_MINUTE"
        raise Problem(429, what, f"wait {seconds} s, or raise {name}", {"Retry-After": str(seconds)})


async def count_request(request: Request) -> None:
    """Count a request, whatever it asks for. Raises `Problem` (429) where it is one too many."""
    request.state.counted_for = []
    network = network_of(request.client.host if request.client else "")
    if not network or request.scope["path"] in _PROBES:
        return
    account = None
    if "authorization" in request.headers or "cookie" in request.headers:
        with suppress(TriplewireError):  # of a database that does not answer; the door says so
            account = await run_in_threadpool(request.app.state.account_of, request)
    if account == settings(request).owner:
        return
    request.state.counted_for = [f"network {network}", *([f"account {account}"] if account else [])]
    request.app.state.rates.count(_REQUESTS, request.state.counted_for)


def count_dry_run(request: Request) -> None:
    """Count a dry run. Raises `Problem` (429) where it is one too many."""
    request.app.state.rates.count(_DRY_RUNS, request.state.counted_for)


async def _dry_run(request: Request) -> None:
    count_dry_run(request)


DRY_RUN = Depends(_dry_run)
"""What a door depends on that is a dry run."""


def network_of(host: str) -> str:
    """The network of an address from which a request comes; "" for this machine. What a proxy has told instead of an
    address is one network: who can make it up must gain nothing by it."""
    if not host:  # a socket of the file system
        return ""
    try:
        address = unwrapped(ipaddress.ip_address(host.partition("%")[0]))[0]
    except ValueError:
        return "unknown"
    if address.is_loopback:
        return ""
    return str(address) if address.version == 4 else str(ipaddress.ip_network((int(address), 64), strict=False))
