"""The texts of one mask, and the shapes that they have.

Most masks have one shape. More come from what varies beside the constants: a slot that holds something else than its
kind (a phrase where words stand), the form of a number, a slot that is fixed, and, where it matters, which constants
are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeGuard

from triplewire.languages.guards import Guard
from triplewire.languages.masks import Constants, Cut, has_suffix, is_mixed, number_form, one_quoting
from triplewire.languages.proofs import Prover
from triplewire.languages.shape import FIXED, LITERAL, NUMBER, TEXT, WORD, Shape

Special: TypeAlias = tuple[object, ...]
"""What of a text's constants decides between the shapes of its mask."""

Found: TypeAlias = tuple[Shape, Guard] | None


class Family:
    """The texts of one mask. `kinds` is None where they have no shape; `shapes` has None for those that have none."""

    def __init__(self, prover: Prover, cut: Cut, same: tuple[int, ...] | None) -> None:
        self._prover = prover
        self._same = same  # equal variables, if slots may be variables
        self.compared = False  # does it always matter which constants are equal?
        self._mixed = is_mixed(cut.constants)
        self.shapes: dict[Special, Found] = {}
        self.kinds = prover.kinds(cut, same)
        kinds = self.kinds or ()
        bare = (TEXT,) if prover.suffixes else (TEXT, LITERAL)
        self._words = _slots(kinds, WORD)
        self._plain = _slots(kinds, *bare)  # strings without tag and datatype
        self._fixed = _slots(kinds, FIXED)
        self._numbers = _slots(kinds, NUMBER)
        self._always = not (self._words or self._plain or self._fixed or self._numbers)
        if any(kind == FIXED and one[0] == "?" for kind, one in zip(kinds, cut.constants, strict=False)):
            self.kinds = None

    def special(self, constants: Constants, is_word: Callable[[str], bool]) -> Special:
        """What decides between the shapes."""
        if self._always and not self.compared:
            return ()
        found: list[object] = []
        for slot in self._words:
            if not is_word(constants[slot]):
                found.append((slot, constants[slot]))
        for slot in self._plain:
            if has_suffix(constants[slot]):
                found.append((slot, constants[slot]))
        for slot in self._fixed:
            found.append((slot, constants[slot]))
        for slot in self._numbers:
            found.append(number_form(constants[slot]))
        if self.compared:
            alike = one_quoting(constants) if self._mixed else constants
            if len(set(alike)) < len(alike):
                found.append(tuple(map(alike.index, alike)))
        return tuple(found)

    def with_equal(self, special: Special, constants: Constants) -> Special | None:
        """What decides where equal constants make two parts of a conjunction one: which are equal, beside the rest.
        None where that is decided already, or cannot be."""
        if self.compared or self._mixed:
            return None
        return (*special, tuple(map(constants.index, constants)))

    def prove(self, special: Special, cut: Cut) -> Found:
        """The shape of a text, kept from now on."""
        assert self.kinds is not None
        fixed = frozenset([one[0] for one in special if isinstance(one, tuple) and isinstance(one[-1], str)])
        equal = next((one for one in special if _is_places(one)), self._same)
        found = self._prover.prove(cut, self.kinds, fixed, self._equal(cut.constants, equal))
        if found is not None and found[1].reserved is not None and not self.compared:
            self.compared = True
            self.shapes.clear()
        if self.compared:
            found = self._prover.prove(cut, self.kinds, fixed, self._equal(cut.constants, None))
        return found

    def _equal(self, constants: Constants, same: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if not self.compared:
            return same
        alike = one_quoting(constants) if self._mixed else constants
        return tuple(map(alike.index, alike))


def _is_places(item: object) -> TypeGuard[tuple[int, ...]]:
    """Does it say which constants are equal?"""
    return isinstance(item, tuple) and not isinstance(item[-1], str)


def _slots(kinds: tuple[str, ...], *wanted: str) -> tuple[int, ...]:
    return tuple([slot for slot, kind in enumerate(kinds) if kind in wanted])
