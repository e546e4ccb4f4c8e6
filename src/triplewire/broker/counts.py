"""What a broker counts while it runs, for who watches it (`triplewire.service.metrics`)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # else an instant stands beside each counter

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counts:
    """Counters, whose labels have few values each, and how long batches took. Any thread may count."""

    def __init__(self) -> None:
        self.registry = of = CollectorRegistry()
        about = "Publications that were accepted, or repeated (they were there); matched, or refused."
        self.publications = Counter("triplewire_publications", about, ["outcome"], registry=of)
        self.events = Counter("triplewire_events", "Events of subscriptions.", ["type"], registry=of)
        about = "Tries to deliver an event: delivered, failed, or gone (the target wants no more)."
        self.notifications = Counter("triplewire_notifications", about, ["channel", "outcome"], registry=of)
        about = "Documents of sources: taken, or refused."
        self.documents = Counter("triplewire_documents", about, ["outcome"], registry=of)
        about = "Publications that came from upstreams: new, repeated, own (they come back), or refused."
        self.crossed = Counter("triplewire_crossed", about, ["outcome"], registry=of)
        about = "Seconds that matching a batch of publications took."
        self.match_seconds = Histogram("triplewire_match_duration_seconds", about, buckets=_BOUNDS, registry=of)
