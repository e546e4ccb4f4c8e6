"""What a provider tells a repository: numbered batches, and the snapshot that a repository begins with.

On the wire a batch is a line of JSON:

    {"number": 7, "version": 31, "items": [
      {"resource": IRI, "statements": [[IRI, term], ...], "strong": [IRI, ...], "rules": [id, ...]},
      {"resource": IRI, "removed_from": [id, ...]}, {"rule": id, "row": {...}}, {"rule": id}]}

Terms are in N-Triples notation. A snapshot is a line {"stream", "number", "version"}, and a line for each item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from triplewire.errors import DamagedError


@dataclass(frozen=True, slots=True)
class Told:
    """A resource as it is now: its statements, as pairs of a property and a term in N-Triples notation, and the
    resources that it refers to strongly. `rules` hold it from now on, beside those that do; none where only a strong
    reference leads to it, or where it changed."""

    resource: str
    statements: tuple[tuple[str, str], ...]
    strong: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """These rules hold the resource no longer."""

    resource: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The repository has this rule now, as a row with its query, prefixes and base; or no longer (None)."""

    rule: str
    row: Mapping[str, Any] | None


Item: TypeAlias = Told | Dropped | RuleChange


@dataclass(frozen=True)
class Batch:
    """Items that take effect together. `number` counts the batches of a stream from 1; `version` is that of the
    provider's documents."""

    number: int
    version: int
    items: tuple[Item, ...] = ()

    def line(self) -> str:
        """The batch as JSON, on one line."""
        return self.line_of(self.number, self.version, items_as_json(self.items))

    @staticmethod
    def line_of(number: int, version: int, items: str) -> str:
        """The same of items that are JSON already."""
        return f'{{"number": {number}, "version": {version}, "items": {items}}}'

    @classmethod
    def of_line(cls, line: str | bytes) -> Batch:
        """The batch of a line. Raises `DamagedError` where it is none."""
        with _as_promised(line):
            value = json.loads(line)
            return cls(int(value["number"]), int(value["version"]), tuple(map(_item, value["items"])))


@dataclass(frozen=True)
class Snapshot:
    """All that a repository's rules ask for, and its rules. The batch behind `number` of this stream comes next."""

    stream: str
    number: int
    version: int
    items: tuple[Item, ...] = field(default=(), repr=False)

    def lines(self) -> Iterator[str]:
        """The snapshot as lines of JSON."""
        yield json.dumps({"stream": self.stream, "number": self.number, "version": self.version})
        yield from (json.dumps(_object(item), ensure_ascii=False) for item in self.items)

    @classmethod
    def of_lines(cls, text: bytes) -> Snapshot:
        """The snapshot of such lines. Raises `DamagedError` where they are none."""
        head, *rest = text.splitlines() or [b""]
        with _as_promised(head):
            value = json.loads(head)
            items = tuple(_item(json.loads(line)) for line in rest)
            return cls(str(value["stream"]), int(value["number"]), int(value["version"]), items)


def items_as_json(items: Iterable[Item]) -> str:
    """Items as a list of JSON."""
    return json.dumps([_object(item) for item in items], ensure_ascii=False)


def _object(item: Item) -> dict[str, Any]:
    if isinstance(item, Told):
        return {
            "resource": item.resource,
            "statements": item.statements,
            "strong": item.strong,
            "rules": item.rules,
        }
    if isinstance(item, Dropped):
        return {"resource": item.resource, "removed_from": item.rules}
    return {"rule": item.rule, **({} if item.row is None else {"row": item.row})}


def _item(value: dict[str, Any]) -> Item:
    if "removed_from" in value:
        return Dropped(value["resource"], tuple(value["removed_from"]))
    if "resource" in value:
        statements = tuple((str(name), str(term)) for name, term in value["statements"])
        return Told(value["resource"], statements, tuple(value["strong"]), tuple(value["rules"]))
    return RuleChange(value["rule"], value.get("row"))


class _as_promised:
    """A block that reads what a provider sent; where it is malformed, `DamagedError`."""

    def __init__(self, text: str | bytes) -> None:
        self._text = text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, ValueError | KeyError | TypeError):
            remedy = "see that the address is that of a provider of this version"
            raise DamagedError(f"what the provider sent cannot be read: {self._text[:60]!r}", remedy=remedy) from None
