"""Who may use which door. A door without a policy stops the start: nothing is open by oversight.

@router.get("/subscriptions")
@allowed(OWNER)
def list_them(request: Request): broker(request).subscriptions_of(owner(request))
"""

from __future__ import annotations

import enum
import hmac
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from pydantic import BaseModel, ConfigDict
from sqlalchemy.engine import Row
from starlette.routing import BaseRoute

from triplewire.broker import owners
from triplewire.deliver.webhooks import LOOK_UP
from triplewire.errors import AddressError, TriplewireError
from triplewire.service.problems import Problem

if TYPE_CHECKING:
    from triplewire.broker.broker import Broker
    from triplewire.config import ServiceSettings
    from triplewire.deliver.schedule import Deliveries

REFUSED_AFTER = LOOK_UP + 0.5
"""Seconds after which who has no API token is told that an address cannot be used."""

_MOST_NAMED = 50

Door = TypeVar("Door", bound=Callable[..., object])


class Policy(enum.Enum):
    """What a door asks of who comes."""

    ANYBODY = "anybody"  # says nothing that is not public
    KEY = "key"  # the address itself has the key
    OWNER = "owner"  # an API token
    OWNER_OR_TICKET = "owner or ticket"  # an API token, or the ticket of the subscription
    WATCHER = "watcher"  # a token for metrics, or an address of the allowed networks
    PUBLISHER = "publisher"  # an API token, or the ticket of a source, or a source that anybody may publish to
    PAGE = "page"  # a person who is signed in (`triplewire.service.pages.sessions`)


ANYBODY, KEY, OWNER, PAGE = Policy.ANYBODY, Policy.KEY, Policy.OWNER, Policy.PAGE
OWNER_OR_TICKET, PUBLISHER, WATCHER = Policy.OWNER_OR_TICKET, Policy.PUBLISHER, Policy.WATCHER


def allowed(policy: Policy) -> Callable[[Door], Door]:
    """Declares the policy of a door."""

    def declare(door: Door) -> Door:
        door.__dict__["policy"] = policy
        return door

    return declare


def doors(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """All doors of an application, also those of routers in routers."""
    for route in routes:
        inner = getattr(route, "original_router", None)  # FastAPI keeps an included router as it is
        if inner is None:
            yield route
        else:
            yield from doors(inner.routes)


def check_policies(app: FastAPI) -> None:
    """Raises `TriplewireError` where a door has no policy. The description of all doors is open to anybody."""
    for route in doors(app.routes):
        if not hasattr(getattr(route, "endpoint", None), "policy") and getattr(route, "path", "") != app.openapi_url:
            what = f"the door {getattr(route, 'path', route)} has no policy"
            raise TriplewireError(what, remedy="declare it: @allowed(OWNER)")


class Body(BaseModel):
    """An object of JSON that a door takes: with an unknown name in it, it is refused."""

    model_config = ConfigDict(extra="forbid")


def broker(request: Request) -> Broker:
    """The broker behind a door."""
    behind: Broker = request.app.state.broker
    return behind


def settings(request: Request) -> ServiceSettings:
    """The settings of the service."""
    of_service: ServiceSettings = request.app.state.settings
    return of_service


def base_of(request: Request) -> str:
    """The address of the service as who asks reaches it, without a slash at its end."""
    return (settings(request).base_url or str(request.base_url)).rstrip("/")


def path_of(id: str) -> str:
    """The path of the door of a subscription."""
    return f"/subscriptions/{quote(id, safe='')}"


def delivering(request: Request) -> Deliveries:
    """What delivers the events of the broker."""
    deliveries: Deliveries = request.app.state.delivering
    return deliveries


def preferences(header: str) -> list[tuple[str, float]]:
    """What a header such as Accept names, with its weight from 0 to 1 (RFC 9110, section 12.4.2): the first of them."""
    named: list[tuple[str, float]] = []
    for entry in header.split(",")[:_MOST_NAMED]:
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        with suppress(ValueError):
            named.append((name, min(max(float(weight), 0.0), 1.0)))
    return named


def bearer(request: Request) -> str:
    """The token of a request, or ""."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.casefold() == "bearer" else ""


def owner_or_none(request: Request) -> str | None:
    """Whose API token a request has, or who has signed in to the page that it is for; None for nobody."""
    if (signed_in := getattr(request.state, "owner", None)) is not None:
        return str(signed_in)
    token, known = bearer(request), settings(request).token
    if not token:
        return None
    if known and hmac.compare_digest(token.encode("utf-8", "surrogatepass"), known.encode()):
        return settings(request).owner
    known_owner: str | None = request.app.state.owner_of(token)
    return known_owner


def owner(request: Request) -> str:
    """Whose API token a request has. Raises `Problem` (401) where it has none."""
    name = owner_or_none(request)
    if name is None:
        raise Problem(401, "an API token is needed", "send the header Authorization: Bearer TOKEN")
    return name


@contextmanager
def told_to_owners(request: Request) -> Iterator[None]:
    """A block in which an address is checked. What the look-up of its name has shown is told to who has an API token:
    others could look around in the network of the service by it. They are answered `REFUSED_AFTER`, as how long the
    look-up has taken would tell, too, whether there is such a name. Raises `Problem`."""
    begun = time.monotonic()
    try:
        yield
    except AddressError as error:
        known = owner_or_none(request) is not None
        if not known:
            request.state.not_before = begun + REFUSED_AFTER
        raise Problem(400, error.what if known else "the address cannot be used", "give a public one") from None


def acting(request: Request, user: str) -> str:
    """The owner whose API token a request has, or the user that it acts for. Raises `Problem` (401), and
    `ArgumentError` for what is no name of a user."""
    by = owner(request)
    return owners.user_of(by, user) if user else by


def subscription(request: Request, id: str, ticket: str = "") -> Row[object]:
    """The subscription of an id that the API token, or a ticket, of a request is for. Raises `Problem`: 401 without
    either, 404 where there is none, or it is another's."""
    by, token = owner_or_none(request), ticket or bearer(request)
    if by is None and not token:
        raise Problem(401, "an API token or the ticket of the subscription is needed", "Authorization: Bearer TOKEN")
    row = broker(request).find(id, owner=by, ticket=token)
    if row is None:
        raise Problem(404, f"there is no subscription {id!r}")
    return row


def _of_path(request: Request, id: str) -> Row[object]:
    return subscription(request, id)


Owned = Annotated[Any, Depends(_of_path)]
"""The row of the subscription that the path of a door names by `{id}`, where who asks may have it."""
