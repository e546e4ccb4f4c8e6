"""One broker subscribes to a feed of another: both sides of WebSub over real HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from hub_tools import delivered, published, served, subscribed

from triplewire.broker.broker import Broker
from triplewire.broker.feeds.websub import Hub
from triplewire.broker.incoming.websub_subscriber import Subscriber
from triplewire.store.tables import leases, publications, sources, targets


@pytest.mark.parametrize("form", ["atom", "rss", "rdf"])
def test_what_matches_here_is_published_there(new_database: Callable[[], str], form: str) -> None:
    with (
        Broker.open(new_database(), b"of the first") as first,
        Broker.open(new_database(), b"of the second") as second,
        served(first) as hub_url,
        served(second) as url,
    ):
        made = subscribed(first)
        values = {"id": "s", "owner": "owner", "kind": "poll", "url": f"{hub_url}/s/{made.feed_key}.{form}"}
        values |= {"title": "", "state": "{}", "ticket": b"", "created": time.time()}
        source = sources.insert().values(may_subscribe=False, anonymous=False, **values)
        second.database.write(lambda connection: connection.execute(source))
        assert Subscriber(second, url, True).step() == 1
        assert Hub(first, True).step()
        assert states(first, targets) == states(second, leases) == ["active"]
        published(first, 1, 2)
        assert delivered(first) == 2
        with second.database.reading() as connection:
            titles = connection.execute(sa.select(publications.c.title).distinct()).scalars().all()
        assert sorted(titles) == ["Olympic games 1", "Olympic games 2"]
        second.database.write(lambda connection: connection.execute(sources.delete()))
        assert Subscriber(second, url, True).step() == 1
        assert Hub(first, True).step()
        assert (states(first, targets), states(second, leases)) == (["gone"], [])


def states(broker: Broker, table: sa.Table) -> list[str]:
    """The states of all rows of a table."""
    with broker.database.reading() as connection:
        return list(connection.execute(sa.select(table.c.state)).scalars())
