"""What goes into a registry of metadata and comes out of it (MDV paper, sections 2.2 to 2.4 and 3.5).

In go changes of documents and rules; out come, for each repository, what it has to put into its cache and what its
rules hold no longer. Terms are texts in N-Triples notation, resources are IRIs. A blank node is named
`_:DOCUMENT.LABEL`, where DOCUMENT is a number of the registry: it is always told with the resource that leads to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from triplewire.errors import ArgumentError, Refusal

MOST_NAME = 1_024
"""Bytes of an IRI, and of what documents, rules, repositories and lists are called: a row of an index has two of them,
and PostgreSQL takes 2,704 bytes of it."""


def is_name(text: str) -> bool:
    """Do all databases take it as a name?"""
    return 0 < len(text.encode("utf-8", "surrogatepass")) <= MOST_NAME and "\x00" not in text


def check_name(what: str, name: str) -> None:
    """Raises `ArgumentError` for a name that some database does not take."""
    if not is_name(name):
        wrong = f"has more than {MOST_NAME:,} bytes, or holds U+0000" if name else "is empty"
        raise ArgumentError(f"the name of the {what} {wrong}: {name[:40]!r}...", remedy="give it another one")


@dataclass(frozen=True, slots=True)
class Put:
    """Register a document, or a new version of it. `content`: its bytes, in any syntax that is read."""

    document: str
    content: bytes

    def __post_init__(self) -> None:
        if self.document:  # in the log of a provider, "" is its schema
            check_name("document", self.document)


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Delete a document with all that it says."""

    document: str

    def __post_init__(self) -> None:
        check_name("document", self.document)


Change: TypeAlias = Put | Withdraw


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule of a repository as it is registered. `id` names it in its repository, also in the search clause of later
    rules. `base` and `prefixes` come from outside the text, and so do the `rules` that its search clause names: None
    stands for those of the repository. Of a rule that is registered they are kept as they were then."""

    id: str
    query: str
    prefixes: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    rules: Mapping[str, RuleText] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Told:
    """A resource as it is now, which takes the place of what a cache has of it. `statements`: (property, term).
    `strong`: the resources that it refers to strongly and that there are; one that goes or comes makes its referrer be
    told again. `rules`: those that hold it from now on, beside the ones before; none where only a strong reference
    leads to it, or where it has changed."""

    resource: str
    statements: tuple[tuple[str, str], ...]
    strong: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """These rules hold the resource no longer. It goes once no rule holds it and no strong reference leads to it."""

    resource: str
    rules: tuple[str, ...]


Notice: TypeAlias = Told | Dropped
"""Notices of one batch have no order among themselves: each resource has at most one of either kind."""


@dataclass(frozen=True)
class Applied:
    """What a batch has done. `version` is that of the registry now, 1 more with each batch that changes something.
    `refused`: documents that are malformed, whose version before is withdrawn, and those that violate the schema, whose
    version before stays. `notices`: by repository. `ids`: the rules that were registered, in their order. `contents`:
    of the documents that have changed; None of those that are gone."""

    version: int
    refused: tuple[Refusal, ...] = ()
    notices: Mapping[str, tuple[Notice, ...]] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    contents: Mapping[str, bytes | None] = field(default_factory=dict, repr=False)
