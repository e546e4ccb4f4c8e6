"""Texts that differ in their constants only are parsed once: a large set of subscriptions has few shapes.

`Shapes.find` cuts a text (`triplewire.languages.masks`), and looks up the shape of its mask
(`triplewire.languages.families`); a mask that comes again is proven (`triplewire.languages.proofs`). GQL texts are
first looked at tuple by tuple (`triplewire.languages.tuples`). What has no shape is parsed in full by
`triplewire.languages.parse`, which also says what is wrong with it: no text that is refused has a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TypeAlias

from triplewire.config import Settings
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.families import Family, Found, Special
from triplewire.languages.masks import (
    HOLE,
    PLAIN,
    WITHOUT_VOCABULARIES,
    Constants,
    Cut,
    is_usual,
    is_word,
    with_lower_tags,
)
from triplewire.languages.proofs import Prover
from triplewire.languages.shape import LITERAL, Composed, Shape
from triplewire.languages.tuples import Outside, Tuples
from triplewire.model.operator import Operator

LANGUAGES = frozenset(["gql", "sparql", "mdv"])
KEPT = 65_536  # masks and shapes; past that all begins anew
KEPT_WORDS = 1_000_000

_Key: TypeAlias = tuple[str, str, Outside, "tuple[int, ...] | None"]
_first = itemgetter(0)


class Shapes:
    """The shapes of texts that were met. For one thread at a time.

    `operators` and `settings` as for `triplewire.languages.parse`; `meant` is what becomes of a subscription before its
    evidence is taken, if anything does. `parsed` counts the texts that were parsed in full to prove shapes.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        operators: Mapping[str, Operator] | None = None,
        meant: Callable[[Subscription], Subscription] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._operators = operators
        self._meant = meant
        # what a query means may depend on terms of RDF and RDFS in it
        self._split = (PLAIN if meant is None else WITHOUT_VOCABULARIES).split
        self._families: dict[tuple[object, ...], Family] = {}
        self._seen: set[int] = set()
        self._words = _Words()
        self._count = 0
        self._tuples = Tuples(self.shape_of, self.parse, self.settings)
        self.parsed = 0

    def find(
        self, text: str, language: str, prefixes: Mapping[str, str] | None = None, base: str = ""
    ) -> tuple[Shape | Composed, Constants] | None:
        """The shape of a text and its constants; None where it has to be parsed in full.

        A mask is proven when it comes for the second time: many come only once.
        """
        if language not in LANGUAGES or not is_usual(text):
            return None
        limit = self.settings.max_query_bytes
        if 4 * len(text) > limit and len(text.encode()) > limit:
            return None
        outside = language, base, tuple(prefixes.items()) if prefixes else ()
        if language == "gql" and self._meant is None:
            composed = self._tuples.find(text, outside)
            if composed is not None:
                return composed
        pieces = self._split(text)
        written = tuple(pieces[1::2])
        constants = with_lower_tags(text, written)
        shape = self.shape_of(HOLE.join(pieces[::2]), constants, outside, None)
        if shape is None or (constants is not written and not _are_literals(shape, constants, written)):
            return None
        return shape, constants

    def shape_of(self, mask: str, constants: Constants, outside: Outside, same: tuple[int, ...] | None) -> Shape | None:
        """The shape of a text in pieces. `same`: for each constant the first variable that it equals, or its own place;
        None where no constant is a variable."""
        key = mask, "".join(map(_first, constants)), outside, same
        family = self._families.get(key)
        if family is None:
            if self._is_new(key):
                return None
            family = Family(self._prover(outside), Cut(tuple(mask.split(HOLE)), constants), same)
            self._make_room()
            self._families[key] = family
        if family.kinds is None:
            return None
        special = family.special(constants, self._words.__getitem__)
        found = self._found(family, special, key, constants)
        if found is not None and not found[1].allows(constants):
            equal = None if found[1].reserved is not None else family.with_equal(special, constants)
            found = None if equal is None else self._found(family, equal, key, constants)
            if found is not None and not found[1].allows(constants):
                return None
        return None if found is None else found[0]

    def _found(self, family: Family, special: Special, key: _Key, constants: Constants) -> Found:
        """The shape of the texts of a family with these special constants, proven now where it has to be."""
        try:
            return family.shapes[special]
        except KeyError:
            if special and self._is_new((key, special)):
                return None
        found = family.prove(special, Cut(tuple(key[0].split(HOLE)), constants))
        self._make_room()
        if family.compared:  # perhaps since now
            special = family.special(constants, self._words.__getitem__)
        family.shapes[special] = found
        return found

    def parse(self, text: str, outside: Outside, rules: Mapping[str, Subscription] | None = None) -> Subscription:
        """The subscription of a text, parsed in full."""
        self.parsed += 1
        language, base, prefixes = outside
        return parse(
            text,
            language,
            prefixes=dict(prefixes),
            base=base,
            operators=self._operators,
            rules=rules,
            settings=self.settings,
        )

    def _prover(self, outside: Outside) -> Prover:
        return Prover(
            outside[0],
            lambda text, rules: self.parse(text, outside, rules),
            self._meant or _itself,
            self.settings.max_branches,
            self._meant is None,
        )

    def _is_new(self, key: tuple[object, ...]) -> bool:
        """Is it met for the first time? Kept are hashes; two of the same only make a proof come early."""
        place = hash(key)
        if place in self._seen:
            return False
        if len(self._seen) >= 4 * KEPT:
            self._seen.clear()
        self._seen.add(place)
        return True

    def _make_room(self) -> None:
        self._count += 1
        if self._count > KEPT:
            self._count = 0
            self._families.clear()
            self._tuples.clear()


class _Words(dict[str, bool]):
    """Constant -> is it a word? Found once."""

    def __missing__(self, constant: str) -> bool:
        if len(self) >= KEPT_WORDS:
            self.clear()
        found = self[constant] = is_word(constant)
        return found


def _are_literals(shape: Shape, constants: Constants, written: Constants) -> bool:
    """Are those that are written otherwise literals, of which the language tag is no more than that?"""
    return all(a == b or slot.kind == LITERAL for slot, a, b in zip(shape.slots, constants, written, strict=True))


def _itself(subscription: Subscription) -> Subscription:
    return subscription
