"""A shape: what all texts with one mask have in common, once that is proven (`triplewire.languages.proofs`).

It holds the evidence of a text whose constants are placeholders. Everything about another text of the mask is had by
putting its own constants in their place: `Shape.evidence_of`, `Shape.subscription_of`. The index takes a shape apart
once and then only looks the constants up: `triplewire.select.shaped`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from triplewire.ir.evidence import Clause, Evidence
from triplewire.ir.nodes import And, Label, Pattern, Variable, Where
from triplewire.ir.subscription import Subscription
from triplewire.ir.text import Word
from triplewire.languages.masks import Constants, content, term_of
from triplewire.model.terms import IRI, Literal

IRI_SLOT, LITERAL, WORD, TEXT, NUMBER, VARIABLE, FIXED = "iri", "literal", "word", "text", "number", "variable", "fixed"

Replacement: TypeAlias = dict[object, object]
"""From nodes, or texts of a TextTest, to those that stand in their place."""

LEAVES = frozenset([str, IRI, Literal, Word, Label, Variable])
"""The kinds of nodes that a constant may stand for."""

_FIELDS: dict[type, tuple[str, ...] | None] = {}


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a constant. `kind`: "iri", "literal" (a term), "word" (of the default analyser), "text" (of a
    TextTest), "number" (a Literal or a Label), "variable" (of a part of a `Composed`), or "fixed": the shape is that of
    this very constant."""

    kind: str
    placeholder: str  # as the constant is written

    def replaced(self, constant: str) -> Replacement:
        """The nodes of the placeholder, with those of the constant."""
        old, new = content(self.placeholder), content(constant)
        if self.kind == WORD:
            return {Word(old): Word(new)}
        if self.kind == TEXT:
            return {old: new}
        if self.kind == VARIABLE:
            return {old: new, Variable(old): Variable(new)}
        if self.kind == NUMBER:
            return {term_of(self.placeholder): term_of(constant), Label(old): Label(new)}
        return {} if self.kind == FIXED else {term_of(self.placeholder): term_of(constant)}


@dataclass(frozen=True, eq=False)
class Shape:
    """The parts of a subscription with placeholders. `stated` is its tree as parsed, `evidence` that of its meaning.

    `named` are the rules that an MDV text may name, were they there: names, or numbers of slots.
    """

    language: str
    slots: tuple[Slot, ...]
    select: tuple[str, ...]
    ask: bool
    stated: Where = field(repr=False)
    evidence: Evidence
    warnings: tuple[str, ...] = ()
    named: tuple[str | int, ...] = ()

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """The slots that are not fixed."""
        return tuple([number for number, slot in enumerate(self.slots) if slot.kind != FIXED])

    def replacement(self, constants: Sequence[str]) -> Replacement:
        """The placeholders' nodes, with those of the constants."""
        found: Replacement = {}
        for number in self.varying:
            found |= self.slots[number].replaced(constants[number])
        return found

    def select_of(self, constants: Constants) -> tuple[str, ...]:
        """The selected variables."""
        if not any(slot.kind == VARIABLE for slot in self.slots):
            return self.select
        return tuple(dict.fromkeys(put(self.select, self.replacement(constants))))

    def evidence_of(self, constants: Constants) -> Evidence:
        """The evidence of the text with these constants."""
        found: Evidence = put(self.evidence, self.replacement(constants))
        return found

    def subscription_of(
        self, constants: Constants, id: str, text: str, prefixes: Mapping[str, str], base: str
    ) -> Subscription:
        """The subscription that parsing the text gives."""
        return Subscription(
            id=id,
            language=self.language,
            text=text,
            select=self.select_of(constants),
            where=put(self.stated, self.replacement(constants)),
            ask=self.ask,
            prefixes=tuple(sorted(prefixes.items())),
            base=base,
            warnings=self.warnings,
        )

    def rules(self, constants: Constants) -> tuple[str, ...]:
        """The ids of rules that the text would name, were they there."""
        return tuple([content(constants[one]) if isinstance(one, int) else one for one in self.named])


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """A conjunction of parts, each of a shape of its own, as `triplewire.languages.tuples` makes it. Its constants are
    those of the parts, one behind the other; it selects all variables."""

    language: str
    parts: tuple[Shape, ...]

    @property
    def ask(self) -> bool:
        """It never is an ASK query."""
        return False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What has warnings is no part."""
        return ()

    def pairs(self, constants: Constants) -> Iterator[tuple[Shape, Constants]]:
        """The parts with their constants."""
        at = 0
        for part in self.parts:
            end = at + len(part.slots)
            yield part, constants[at:end]
            at = end

    def select_of(self, constants: Constants) -> tuple[str, ...]:
        """The selected variables."""
        return tuple(dict.fromkeys(name for part, own in self.pairs(constants) for name in part.select_of(own)))

    def evidence_of(self, constants: Constants) -> Evidence:
        """The evidence of the text with these constants."""
        found = [part.evidence_of(own) for part, own in self.pairs(constants)]
        clauses = [one.clauses[0] for one in found]
        patterns = dict.fromkeys(pattern for clause in clauses for pattern in clause.patterns)
        tests = dict.fromkeys(test for clause in clauses for test in clause.tests)
        return Evidence((Clause(tuple(patterns), tuple(tests)),), all(one.exact for one in found))

    def subscription_of(
        self, constants: Constants, id: str, text: str, prefixes: Mapping[str, str], base: str
    ) -> Subscription:
        """The subscription that parsing the text gives."""
        parts: list[Where] = []
        for part, own in self.pairs(constants):
            stated = put(part.stated, part.replacement(own))
            parts.extend(stated.parts if isinstance(stated, And) else (stated,))
        return Subscription(
            id=id,
            language=self.language,
            text=text,
            select=self.select_of(constants),
            where=And(tuple(sorted(parts, key=lambda part: not isinstance(part, Pattern)))),
            prefixes=tuple(sorted(prefixes.items())),
            base=base,
        )

    def rules(self, constants: Constants) -> tuple[str, ...]:
        """It names no rules."""
        return ()


def put(node: Any, replacement: Replacement) -> Any:
    """The tree with other leaves. Registered trees are shallow, so recursion is safe."""
    kind = type(node)
    if kind is tuple:
        return tuple([put(part, replacement) for part in node])
    if kind in LEAVES:
        return replacement.get(node, node)
    names = fields_of(kind)
    return node if names is None else kind(*[put(getattr(node, name), replacement) for name in names])


def leaves(node: object) -> Iterator[object]:
    """The nodes of a tree that a constant may stand for."""
    stack = [node]
    while stack:
        one = stack.pop()
        if type(one) in LEAVES:
            yield one
        elif isinstance(one, tuple):
            stack.extend(one)
        else:
            stack.extend([getattr(one, name) for name in fields_of(type(one)) or ()])


def fields_of(kind: type) -> tuple[str, ...] | None:
    """The fields of a kind of node, None of anything else."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None
    return _FIELDS[kind]
