"""What a parser is given beside the text: prefixes, base, operators, other rules, limits.

A language is one function, `parse(text, context) -> Parsed`; `triplewire.languages.parse` picks it, checks the result
and makes the `Subscription`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from triplewire.config import Settings
from triplewire.ir.nodes import PatternTerm, Where
from triplewire.ir.subscription import Subscription
from triplewire.model.operator import Operator


@dataclass
class Written:
    """Where the parts of a text stand, as offsets in characters from 0, for who edits it (`engine/explain/nearest.py`).

    `conjuncts`: where each of several parts begins that must all hold, with separators between them, and where the last
    one ends; `parts`: begin and end of those of a group, without separators; `words`: of strings of full text;
    `bare`: of constants without quotes. `tokens`: kind, text and offset of all tokens of `text`.
    """

    text: str = ""
    tokens: list[tuple[str, str, int]] = field(default_factory=list)
    conjuncts: list[tuple[list[int], int]] = field(default_factory=list)
    parts: list[tuple[int, int]] = field(default_factory=list)
    words: list[tuple[int, int]] = field(default_factory=list)
    bare: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """`source` names the text in errors; `prefixes` and `base` come from outside the text (the text's own win);
    `operators` are those that a call may name; `rules` are the registered MDV rules that a search clause may name;
    `written` is filled by the parser where it is given."""

    source: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    operators: Mapping[str, Operator] = field(default_factory=dict)
    rules: Mapping[str, Subscription] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    written: Written | None = None


@dataclass(frozen=True)
class Parsed:
    """What a language makes of a text. The fields are those of `Subscription`."""

    select: tuple[str, ...]
    where: Where
    ask: bool = False
    construct: tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...] | None = None
    warnings: tuple[str, ...] = ()


class RecordingRules(Mapping[str, Subscription]):
    """Rules, and which of them were asked for and found."""

    def __init__(self, rules: Mapping[str, Subscription]) -> None:
        self._rules = rules
        self.used: dict[str, Subscription] = {}

    def __getitem__(self, name: str) -> Subscription:
        rule = self._rules[name]
        if rule.language == "mdv":
            self.used[name] = rule
        return rule

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)


class Language(Protocol):
    """A query language: a plug-in of the family "language"."""

    def __call__(self, text: str, context: Context) -> Parsed:
        """Compile `text`. Raises `LanguageError` with line and column, or `UnsupportedQuery` naming the construct."""
