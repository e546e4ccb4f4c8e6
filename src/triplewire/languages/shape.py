"""A shape: what all texts with one mask have in common, once that is proven (`triplewire.languages.proofs`).

It holds the evidence of a text whose constants are placeholders. Everything about another text of the mask is had by
putting its own constants in their place: `Shape.evidence_of`, `Shape.subscription_of`. The index takes a shape apart
once and then only looks the constants up: `triplewire.select.shaped`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from triplewire.ir.evidence import Evidence
from triplewire.ir.nodes import Label, Where
from triplewire.ir.subscription import Subscription
from triplewire.ir.text import Word
from triplewire.languages.masks import Constants, content, term_of
from triplewire.model.terms import IRI, XSD, Literal

IRI_SLOT, LITERAL, WORD, TEXT, NUMBER, FIXED = "iri", "literal", "word", "text", "number", "fixed"

Replacement: TypeAlias = dict[object, object]
"""From nodes, or texts of a TextTest, to those that stand in their place."""

LEAVES = frozenset([str, IRI, Literal, Word, Label])
"""The kinds of nodes that a constant may stand for."""

_FIELDS: dict[type, tuple[str, ...] | None] = {}


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a constant. `kind`: "iri", "literal" (a term), "word" (of the default analyser), "text" (of a
    TextTest), "number" (a Literal or a Label), or "fixed": the shape is that of this very constant."""

    kind: str
    placeholder: str  # as the constant is written

    def replaced(self, constant: str) -> Replacement:
        """The nodes of the placeholder, with those of the constant."""
        old, new = content(self.placeholder), content(constant)
        if self.kind == WORD:
            return {Word(old): Word(new)}
        if self.kind == TEXT:
            return {old: new}
        if self.kind == NUMBER:
            datatype = XSD + ("decimal" if "." in new else "integer")
            return {Literal(old, datatype): Literal(new, datatype), Label(old): Label(new)}
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
            select=self.select,
            where=put(self.stated, self.replacement(constants)),
            ask=self.ask,
            prefixes=tuple(sorted(prefixes.items())),
            base=base,
            warnings=self.warnings,
        )

    def rules(self, constants: Constants) -> tuple[str, ...]:
        """The ids of rules that the text would name, were they there."""
        return tuple([content(constants[one]) if isinstance(one, int) else one for one in self.named])


def put(node: Any, replacement: Replacement) -> Any:
    """The tree with other leaves. Registered trees are shallow, so recursion is safe."""
    kind = type(node)
    if kind is tuple:
        return tuple([put(part, replacement) for part in node])
    if kind in LEAVES:
        return replacement.get(node, node)
    names = fields_of(kind)
    return node if names is None else kind(*[put(getattr(node, name), replacement) for name in names])


def fields_of(kind: type) -> tuple[str, ...] | None:
    """The fields of a kind of node, None of anything else."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None
    return _FIELDS[kind]
