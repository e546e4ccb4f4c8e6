"""What an MDV rule says, as typed values: the parsed form, from which the tree is made.

    rule = parse_rule("search Server s, Rack r register s where s.rack? = r and r.row > 3", context)
    rule.variables     {"s": IRI(".../Server"), "r": IRI(".../Rack")}
    rule.registered    "s"
    rule.tests         (Test("=", Path("s", (Step(IRI(".../rack"), True),)), Path("r")), Test(">", ...))

How a text is read: `languages.mdv.rules`; what it means, as a tree: `languages.mdv.branches`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from triplewire.ir.subscription import Subscription
from triplewire.model.terms import IRI, Literal

CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Searched:
    """A variable of the search clause, and what it stands for: the instances of a class, or what another rule
    registers. `offset`: where the class or the name of the rule begins in the text, in characters from 0."""

    variable: str
    meaning: IRI | Subscription
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """A property that a path goes on by. `any_element`: is `?` written behind it? It changes no answer."""

    property: IRI
    any_element: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A variable of the search clause and the steps that lead on from it; without steps, the resource itself."""

    variable: str
    steps: tuple[Step, ...] = ()
    offset: int = field(default=0, compare=False)


Side: TypeAlias = Path | IRI | Literal


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison; one of its sides at least is a path. `op` is one of = != < <= > >= contains, with `not` already
    worked in; `negated` is for contains, which has no opposite. `offset`: where its left side begins."""

    op: str
    left: Side
    right: Side
    negated: bool = False
    offset: int = field(default=0, compare=False)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The sides that are paths."""
        return tuple(side for side in (self.left, self.right) if isinstance(side, Path))


@dataclass(frozen=True)
class Rule:
    """A rule. `searched` is the search clause in its order, `registered` the variable whose resources the rule gives,
    one of that clause. `branches` is the condition in disjunctive normal form: the rule holds where all tests of one
    branch do; one branch without tests stands for no condition. `warnings` are for the author."""

    text: str
    searched: tuple[Searched, ...]
    registered: str
    branches: tuple[tuple[Test, ...], ...] = ((),)
    warnings: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, IRI | Subscription]:
        """The variables of the search clause and what each stands for: a class, or another rule."""
        return {searched.variable: searched.meaning for searched in self.searched}

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests of all branches, each once, in the order of the branches."""
        return tuple(dict.fromkeys(chain.from_iterable(self.branches)))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths of all tests, each once, in the order of these."""
        return tuple(dict.fromkeys(self._each_path()))

    def place(self, part: Searched | Test | Path) -> tuple[int, int]:
        """Line and column of a part of this rule in its text, both from 1."""
        before = self.text[: part.offset]
        return before.count("\n") + 1, part.offset - before.rfind("\n")

    def _each_path(self) -> Iterator[Path]:
        return chain.from_iterable(test.paths for test in self.tests)
