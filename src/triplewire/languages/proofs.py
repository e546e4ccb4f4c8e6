"""Is a cut right for all texts of its mask? Then it has a shape.

A text with placeholders for its constants is parsed. A slot may vary where its placeholder stands in the tree as a
whole term, word or text, and nowhere else; any other slot is fixed. Tokens end where a constant ends, whatever its
characters (`masks` takes no others); a parser compares constants with each other, with those of the tree, and with
terms of RDF and RDFS, but looks at them in no other way. Behind this argument stands a proof by example: more texts of
the mask are parsed, with odd constants, and must give what the shape gives. What equal constants do: `guards`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from triplewire.errors import TriplewireError
from triplewire.ir.evidence import evidence
from triplewire.ir.nodes import Bind, Call, Function, Label, TextRelation, TextTest, Variable
from triplewire.ir.subscription import Subscription
from triplewire.ir.text import Analyzer, Word
from triplewire.languages.guards import Guard, guard_of, is_conjunction, reserving
from triplewire.languages.masks import Constants, Cut, content
from triplewire.languages.shape import FIXED, IRI_SLOT, LITERAL, NUMBER, TEXT, VARIABLE, WORD, Shape, Slot, fields_of
from triplewire.model.terms import IRI, RDF, RDFS, XSD_STRING, Literal

MOST_SLOTS = 256

Compile: TypeAlias = Callable[[str, Mapping[str, Subscription]], Subscription]
"""Text and rules to subscription, as `triplewire.languages.parse` does with everything else given."""

_VOCABULARY = (f"<{RDF}type>", f"<{RDFS}subClassOf>")
_REGEX = ("REGEX", "REPLACE")
_POSSIBLE = {"<": (IRI_SLOT,), " ": (NUMBER,), "?": (VARIABLE,)}
_FIELDS = {IRI_SLOT: "value", LITERAL: "lexical", WORD: "word", TEXT: "text", VARIABLE: "name"}


class Asked(Mapping[str, Subscription]):
    """No rules, and which were asked for."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def __getitem__(self, name: str) -> Subscription:
        self.names[name] = None
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Example(NamedTuple):
    """A text that was parsed, and the rules that it asked for."""

    stated: Subscription
    asked: tuple[str, ...]


@dataclass(frozen=True)
class Prover:
    """Makes shapes of cuts. `meant` is what becomes of a subscription before its evidence is taken."""

    language: str
    compile: Compile
    meant: Callable[[Subscription], Subscription]
    most: int  # clauses, see `triplewire.ir.evidence`
    any_term: bool  # may a slot hold terms of RDF and RDFS?

    @property
    def suffixes(self) -> bool:
        """May a literal have a tag or a datatype?"""
        return self.language != "mdv"

    def kinds(self, cut: Cut, same: tuple[int, ...] | None) -> tuple[str, ...] | None:
        """The kind of each slot where no other constants are equal than `same` says (see `prove`); None where the texts
        of this mask have no shape."""
        if len(cut.constants) > MOST_SLOTS:
            return None
        placeholders = _placeholders(cut, frozenset(), same)
        example = self._example(cut, placeholders)
        return None if example is None else _kinds(example.stated, placeholders, frozenset())

    def _example(self, cut: Cut, constants: Sequence[str]) -> _Example | None:
        asked = Asked()
        try:
            stated = self.compile(cut.filled(constants), asked)
        except TriplewireError:
            return None
        return None if stated.construct is not None else _Example(stated, tuple(asked.names))

    def prove(
        self, cut: Cut, kinds: Sequence[str], fixed: frozenset[int], same: tuple[int, ...] | None
    ) -> tuple[Shape, Guard] | None:
        """The shape of a text, and for which constants it holds; None where it has none.

        `fixed`: slots that hold the constants of this text for good. `same`: for each slot the first one with an equal
        constant; None where all are unlike, or it does not matter.
        """
        placeholders = _placeholders(cut, fixed, same)
        example = self._example(cut, placeholders)
        if example is None:
            return None
        wanted = tuple([FIXED if number in fixed else kind for number, kind in enumerate(kinds)])
        if _kinds(example.stated, placeholders, fixed) != wanted:
            return None
        slots = tuple([Slot(*pair) for pair in zip(wanted, placeholders, strict=True)])
        meant = self.meant(example.stated)
        by_name = {content(slot.placeholder): number for number, slot in enumerate(slots) if slot.kind == IRI_SLOT}
        shape = Shape(
            self.language,
            slots,
            example.stated.select,
            example.stated.ask,
            example.stated.where,
            evidence(meant, most=self.most),
            example.stated.warnings,
            tuple([by_name.get(name, name) for name in example.asked]),
        )
        if self.language != "mdv" and is_conjunction(meant.where, shape.evidence):
            guard = guard_of(shape.evidence.clauses[0], slots)
        else:
            guard = reserving(meant.where, slots)
        odd = _odd(slots, same, self.suffixes)
        if not self._agrees(cut, shape, guard, odd) or not self._agrees(cut, shape, guard, cut.constants):
            return None
        if self.any_term and not all(self._agrees(cut, shape, None, _with_term(odd, term)) for term in _VOCABULARY):
            return None
        return shape, guard

    def _agrees(self, cut: Cut, shape: Shape, guard: Guard | None, constants: Sequence[str]) -> bool:
        """Is the text with these constants what the shape says? Without a guard, its tree only."""
        constants = tuple(
            [one if s.kind != FIXED else s.placeholder for one, s in zip(constants, shape.slots, strict=True)]
        )
        example = self._example(cut, constants)
        if example is None or example.asked != shape.rules(constants):
            return False
        stated = example.stated
        shaped = shape.subscription_of(constants, stated.id, stated.text, dict(stated.prefixes), stated.base)
        if stated != shaped or stated.warnings != shaped.warnings:
            return False
        if guard is None or not guard.allows(constants):
            return True
        return evidence(self.meant(stated), most=self.most) == shape.evidence_of(constants)


# --- placeholders ------------------------------------------------------------------------------------------------


def _placeholders(cut: Cut, fixed: frozenset[int], same: tuple[int, ...] | None) -> Constants:
    """Constants of the same form that the text does not hold."""
    text = cut.filled(cut.constants)
    mark = next(mark for mark in (f"zq{number}k" for number in range(len(text) + 1)) if mark not in text)
    start = next(n for n in range(100_000, 101_000 + len(text)) if str(n) not in text)
    found: list[str] = []
    for number, constant in enumerate(cut.constants):
        if number in fixed:
            found.append(constant)
        elif same is not None and same[number] != number:
            found.append(found[same[number]])
        elif constant[0] == "<":
            found.append(f"<urn:{mark}{number:04}x>")
        elif constant[0] == " ":
            sign, point = "-" if constant[1] == "-" else "", ".5" if "." in constant else ""
            found.append(f" {sign}{start}{number:04}{point}")
        elif constant[0] == "?":
            found.append(f"?{mark}{number:04}x")
        else:
            found.append(f"{constant[0]}{mark}{number:04}x{constant[0]}")
    return tuple(found)


def _odd(slots: Sequence[Slot], same: tuple[int, ...] | None, suffixes: bool) -> Constants:
    """Other constants for the slots, with whatever characters may be in them."""
    found: list[str] = []
    for number, slot in enumerate(slots):
        old = slot.placeholder
        if slot.kind == FIXED:
            found.append(old)
        elif same is not None and same[number] != number:
            found.append(found[same[number]])
        elif slot.kind == IRI_SLOT:
            found.append(f"<HTTP+x.1://Ü@h:8/a//./..//b's,(c)*~!$&;=%C3?q={number}&--#r_/[\u4e2d]:>")
        elif slot.kind == VARIABLE:
            found.append(f"?V{number}_é0")
        elif slot.kind == WORD:
            found.append(f"{old[0]}żó{number}łć{old[0]}")
        elif slot.kind == NUMBER:
            sign, point = "-" if old[1] == "-" else "", "0.500" if "." in old else ""
            found.append(f" {sign}00{number}0{point}")
        else:
            quote = "'" if old[0] == '"' else '"'
            tag = ("@x-y1", "^^<urn:type:a#b>", "")[number % 3] if suffixes and slot.kind == LITERAL else ""
            found.append(f"{old[0]} {number} {quote}<a:b> ?x ,.;)]}}# -- AND * \t=! {old[0]}{tag}")
    return tuple(found)


def _with_term(constants: Constants, term: str) -> Constants:
    return tuple([term if one[0] == "<" else one for one in constants])


# --- where the placeholders are ------------------------------------------------------------------------------------


def _kinds(stated: Subscription, placeholders: Constants, fixed: frozenset[int]) -> tuple[str, ...] | None:
    """The kind of each slot; None where a placeholder is in what must not vary."""
    texts = {content(one): set[str]() for number, one in enumerate(placeholders) if number not in fixed}
    if not texts:
        return (FIXED,) * len(placeholders)
    variables = {content(one) for one in placeholders if one[0] == "?"}
    others = [text for text in (*stated.select, *stated.warnings) if text not in variables]
    if any(name in text for text in others for name in texts):
        return None
    for text, kind in _texts(stated.where):
        if text in texts:
            texts[text].add(kind)
        else:
            for name in texts:
                if name in text:
                    texts[name].add(FIXED)
    return tuple([_kind(one, texts.get(content(one), set())) for one in placeholders])


def _kind(constant: str, kinds: set[str]) -> str:
    """The kind of a slot whose placeholder stands at places of these kinds."""
    possible = _POSSIBLE.get(constant[0], (LITERAL, WORD, TEXT))
    return next(iter(kinds)) if len(kinds) == 1 and kinds <= set(possible) else FIXED


def _texts(root: object) -> Iterator[tuple[str, str]]:
    """The texts of a tree, each with the kind of slot that it may be, or FIXED."""
    stack: list[tuple[object, bool]] = [(root, False)]
    while stack:
        node, blocked = stack.pop()
        if isinstance(node, tuple):
            stack.extend([(one, blocked) for one in node])
            continue
        kind = FIXED if blocked else _slot_kind(node)
        field = ("text" if isinstance(node, Label) else "lexical") if kind == NUMBER else _FIELDS.get(kind, "")
        blocked = blocked or isinstance(node, Call | Bind) or (isinstance(node, Function) and node.name in _REGEX)
        for name in fields_of(type(node)) or ():
            value = getattr(node, name)
            if isinstance(value, str):
                yield value, kind if name == field else FIXED
            else:
                stack.append((value, blocked))


def _slot_kind(node: object) -> str:
    if isinstance(node, IRI):
        return IRI_SLOT
    if isinstance(node, Variable):
        return VARIABLE
    if isinstance(node, Literal):
        return (LITERAL if node.datatype == XSD_STRING else NUMBER) if not node.language else FIXED
    if isinstance(node, Label):
        return FIXED if node.iri else NUMBER
    if isinstance(node, Word):
        return WORD if node.analyzer == Analyzer() else FIXED
    if isinstance(node, TextTest):
        return FIXED if node.relation is TextRelation.REGEX else TEXT
    return FIXED
