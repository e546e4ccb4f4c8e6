"""Where publications come from without Spark: feeds that are polled, and the inbox of what came.

`lists` reads which feeds there are, `fetch` gets one, `poller` does so politely, `feed_states` keeps when each is due,
`inbox` what came, as files.

    from pathlib import Path
    from triplewire.sources import Poller

    poller = Poller(["https://a.example/feed"], Path("state"), receive=print)
    poller.poll()                   # what is due, once; begin(True) polls in a thread and returns what ends it
"""

from __future__ import annotations

from triplewire.net.addresses import Connections
from triplewire.sources.feed_states import Feed, FeedStatus, feeds_of
from triplewire.sources.fetch import Answered, Known, fetch
from triplewire.sources.inbox import Delivered, Inbox, delivered
from triplewire.sources.lists import addresses, is_list
from triplewire.sources.poller import Poller

__all__ = [
    "Answered",
    "Connections",
    "Delivered",
    "Feed",
    "FeedStatus",
    "Inbox",
    "Known",
    "Poller",
    "addresses",
    "delivered",
    "feeds_of",
    "fetch",
    "is_list",
]
