"""Feeds as lines for people: what is known of each, for `triplewire watch --status` and `pipeline status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from triplewire.cli.report import one_line

if TYPE_CHECKING:
    from triplewire.sources.feed_states import FeedStatus


def feed_lines(feeds: Sequence[FeedStatus]) -> list[str]:
    """A line of counts, and two for each feed: when it was asked and is asked next (UTC), and why it waits."""
    if not feeds:
        return []
    counts = Counter(feed.state.split()[0] for feed in feeds)
    lines = [
        f"feeds         {len(feeds):,}: {', '.join(f'{count:,} {state}' for state, count in sorted(counts.items()))}"
    ]
    for feed in feeds:
        asked = f"asked {feed.last}" if feed.last else "not asked yet"
        following = f", next {feed.next}" if feed.next else ""
        lines.append(f"  {one_line(feed.address)}")
        lines.append(f"    {feed.state}, {asked}{following}" + (f": {one_line(feed.reason)}" if feed.reason else ""))
    return lines
