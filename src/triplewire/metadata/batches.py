"""What a provider tells a repository: numbered batches, and the snapshot that a repository begins with.

On the wire a batch is a line of JSON:

    {"number": 7, "version": 31, "items": [
      {"resource": IRI, "statements": [[IRI, term], ...], "strong": [IRI, ...], "rules": [id, ...]},
      {"resource": IRI, "dropped": [id, ...]}, {"id": id, "query": text, "prefixes": {}, "base": ""}, {"ended": id}]}

Terms are in N-Triples notation. A snapshot is a line {"stream", "number", "version"}, and a line for each item.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from triplewire.errors import DamagedError
from triplewire.metadata.messages import Dropped, Notice, RuleText, Told


@dataclass(frozen=True, slots=True)
class Ended:
    """The repository has this rule no longer, and nothing is held by it."""

    rule: str


Item: TypeAlias = Notice | RuleText | Ended


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
        yield from (json.dumps(_object(item)) for item in self.items)

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
    return json.dumps([_object(item) for item in items])


def rule_of(value: Mapping[str, Any]) -> RuleText:
    """The rule of an object of JSON. Raises `KeyError` where it says too little."""
    rules = value.get("rules")
    named = None if rules is None else {str(id): rule_of(rule) for id, rule in rules.items()}
    prefixes, base = dict(value.get("prefixes") or {}), value.get("base") or ""
    return RuleText(str(value["id"]), str(value["query"]), prefixes, base, named)


def _object(item: Item) -> dict[str, Any]:
    if isinstance(item, RuleText):
        return dataclasses.asdict(item)
    if isinstance(item, Dropped):
        return {"resource": item.resource, "dropped": item.rules}
    if isinstance(item, Ended):
        return {"ended": item.rule}
    return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}  # `asdict` copies each value


def _item(value: dict[str, Any]) -> Item:
    if "ended" in value:
        return Ended(value["ended"])
    if "query" in value:
        return rule_of(value)
    if "dropped" in value:
        return Dropped(value["resource"], tuple(value["dropped"]))
    statements = tuple((str(name), str(term)) for name, term in value["statements"])
    return Told(value["resource"], statements, tuple(value["strong"]), tuple(value["rules"]))


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
