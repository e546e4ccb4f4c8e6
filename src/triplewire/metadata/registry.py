"""The registry of metadata: documents and rules in one database, and what each change means for each repository.

    with Registry.open("sqlite:///metadata.db") as registry:
        registry.subscribe("passau", [RuleText("fast", "search Server s register s where s.cpu > 500")])
        applied = registry.apply([Put("http://example.org/doc.rdf", content)])
        applied.notices["passau"]     # (Told("http://example.org/doc.rdf#host", ..., rules=("fast",)), ...)

Each call that changes something is one transaction. `then` runs in it, last, with what the call is about to return: what
it writes over the connection (messages to send, a log) is there exactly if the change is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from sqlalchemy.engine import Connection

from triplewire.errors import Refusal
from triplewire.metadata.messages import Applied, Change, RuleText, Told
from triplewire.store.database import Database

Then: TypeAlias = Callable[[Connection, Applied], None]


class Registry:
    """A registry that is open. Make it with `open`."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(cls, url: str, *, alone: bool = True, warn: Callable[[str], None] = print) -> Registry:
        """Open a registry, or make it where there is none. `url`: `sqlite:///FILE` or `postgresql://...`. Raises what
        `Database.open` raises."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Do what waits to be written, and close."""
        self.database.close()

    @property
    def version(self) -> int:
        """How many batches have changed something."""
        raise NotImplementedError

    def use_schema(self, document: bytes, source: str = "") -> tuple[Refusal, ...]:
        """Take a schema (RDFS, any syntax) in place of the one before; returns what violates it. Nothing is removed."""
        raise NotImplementedError

    def apply(self, changes: Sequence[Change], then: Then | None = None) -> Applied:
        """Register, re-register and delete documents, as one batch; of several changes of one document the last
        counts."""
        raise NotImplementedError

    def subscribe(self, repository: str, rules: Iterable[RuleText], then: Then | None = None) -> Applied:
        """Register rules of a repository; those that are refused are in `refused`, the ids of others in `ids`. The
        notices of the repository are the initial set: all resources that the rules hold, and what these refer to
        strongly. A rule whose id is there already with the same text is left as it is and told again."""
        raise NotImplementedError

    def unsubscribe(self, repository: str, ids: Sequence[str], then: Then | None = None) -> Applied:
        """Remove rules of a repository. The notices say what they hold no longer. Raises `SubscriptionError` where one
        is not there, or is named by another rule."""
        raise NotImplementedError

    def rules(self, repository: str | None = None) -> Iterator[tuple[str, RuleText]]:
        """Repositories and their rules, in the order in which they were registered."""
        raise NotImplementedError

    def results(
        self, repository: str | None = None, ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, str, list[str]]]:
        """Repository, rule and the resources that it holds, sorted by code point; in the order of `rules`."""
        raise NotImplementedError

    def snapshot(self, repository: str) -> Iterator[Told]:
        """All that belongs into the cache of a repository."""
        raise NotImplementedError

    def resources(self, iris: Sequence[str]) -> dict[str, Told]:
        """Those of the resources that there are, as they are now."""
        raise NotImplementedError

    def classes(self) -> Mapping[str, int]:
        """The classes that there are instances of, and how many."""
        raise NotImplementedError

    def instances(self, class_: str, most: int = 100, after: str = "") -> list[str]:
        """Resources of a class, sorted by code point, those behind `after`."""
        raise NotImplementedError
