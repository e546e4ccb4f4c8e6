"""Texts that differ in their constants only are parsed once: a large set of subscriptions has few shapes.

`Shapes.find` cuts a text (`triplewire.languages.masks`), and looks up the shape of its mask; a mask that comes again is
proven (`triplewire.languages.proofs`). What has no shape is parsed in full by `triplewire.languages.parse`, which also
says what is wrong with it: no text that is refused has a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from triplewire.config import Settings
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.guards import Guard
from triplewire.languages.masks import (
    HOLE,
    PLAIN,
    WITHOUT_VOCABULARIES,
    Constants,
    Cut,
    has_suffix,
    is_usual,
    is_word,
    number_form,
)
from triplewire.languages.proofs import Prover
from triplewire.languages.shape import FIXED, IRI_SLOT, LITERAL, NUMBER, WORD, Shape
from triplewire.model.operator import Operator

LANGUAGES = frozenset(["gql", "sparql", "mdv"])
KEPT = 65_536  # masks and shapes; what is past that begins anew
KEPT_WORDS = 1_000_000

Special: TypeAlias = tuple[object, ...]
"""What of a text's constants decides between the shapes of its mask."""


@dataclass(slots=True)
class _Family:
    """The texts of one mask. `kinds` is None where they have no shape; `shapes` has None for those that have none."""

    prover: Prover
    kinds: tuple[str, ...] | None
    shapes: dict[Special, tuple[Shape, Guard] | None] = field(default_factory=dict)
    compared: bool = False  # does it matter which constants are equal?
    words: tuple[int, ...] = ()
    plain: tuple[int, ...] = ()  # slots of strings without tag and datatype
    numbers: tuple[int, ...] = ()
    fixed: tuple[int, ...] = ()


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
        self._settings = settings or Settings()
        self._operators = operators
        self._meant = meant
        # what a query means may depend on terms of RDF and RDFS in it
        self._split = (PLAIN if meant is None else WITHOUT_VOCABULARIES).split
        self._families: dict[tuple[object, ...], _Family] = {}
        self._seen: set[int] = set()
        self._words: dict[str, bool] = {}
        self._count = 0
        self.parsed = 0

    def find(
        self, text: str, language: str, prefixes: Mapping[str, str] | None = None, base: str = ""
    ) -> tuple[Shape, Constants] | None:
        """The shape of a text and its constants; None where it has to be parsed in full.

        A mask is proven when it comes for the second time: many come only once.
        """
        if language not in LANGUAGES or not is_usual(text):
            return None
        limit = self._settings.max_query_bytes
        if 4 * len(text) > limit and len(text.encode()) > limit:
            return None
        pieces = self._split(text)
        constants = tuple(pieces[1::2])
        outside = tuple(prefixes.items()) if prefixes else ()
        key = HOLE.join(pieces[::2]), "".join([one[0] for one in constants]), language, base, outside
        family = self._families.get(key)
        if family is None:
            if self._is_new(key):
                return None
            family = self._meet(key, Cut(tuple(pieces[::2]), constants), language, prefixes or {}, base)
        if family.kinds is None:
            return None
        special = self._special(family, constants)
        try:
            found = family.shapes[special]
        except KeyError:
            if special and self._is_new((key, special)):
                return None
            found = self._prove(family, special, Cut(tuple(pieces[::2]), constants))
        if found is None or not found[1].allows(constants):
            return None
        return found[0], constants

    def _is_new(self, key: tuple[object, ...]) -> bool:
        """Is it met for the first time? Kept are hashes; two of the same only make a proof come early."""
        place = hash(key)
        if place in self._seen:
            return False
        if len(self._seen) >= 4 * KEPT:
            self._seen.clear()
        self._seen.add(place)
        return True

    def _special(self, family: _Family, constants: Constants) -> Special:
        found: list[object] = []
        for slot in family.words:
            constant = constants[slot]
            word = self._words.get(constant)
            if word is None:
                if len(self._words) >= KEPT_WORDS:
                    self._words.clear()
                word = self._words[constant] = is_word(constant)
            if not word:
                found.append((slot, constant))
        for slot in family.plain:
            if has_suffix(constants[slot]):
                found.append((slot, constants[slot]))
        for slot in family.fixed:
            found.append((slot, constants[slot]))
        for slot in family.numbers:
            found.append(number_form(constants[slot]))
        if family.compared and len(set(constants)) < len(constants):
            found.append(tuple(map(constants.index, constants)))
        return tuple(found)

    # --- what happens once a mask

    def _meet(
        self, key: tuple[object, ...], cut: Cut, language: str, prefixes: Mapping[str, str], base: str
    ) -> _Family:
        def compile(text: str, rules: Mapping[str, Subscription]) -> Subscription:
            self.parsed += 1
            return parse(
                text,
                language,
                prefixes=prefixes,
                base=base,
                operators=self._operators,
                rules=rules,
                settings=self._settings,
            )

        meant = self._meant or (lambda subscription: subscription)
        prover = Prover(language, compile, meant, self._settings.max_branches, self._meant is None)
        kinds = prover.kinds(cut)
        family = _Family(prover, kinds)
        if kinds is not None:
            of = {kind: tuple([n for n, one in enumerate(kinds) if one == kind]) for kind in kinds}
            family.words, family.numbers = of.get(WORD, ()), of.get(NUMBER, ())
            family.fixed = of.get(FIXED, ())
            bare = [n for n, one in enumerate(kinds) if one not in (WORD, NUMBER, FIXED, IRI_SLOT)]
            family.plain = tuple([n for n in bare if kinds[n] != LITERAL or not prover.suffixes])
        self._make_room()
        self._families[key] = family
        return family

    def _prove(self, family: _Family, special: Special, cut: Cut) -> tuple[Shape, Guard] | None:
        assert family.kinds is not None
        fixed = frozenset([one[0] for one in special if isinstance(one, tuple) and isinstance(one[-1], str)])
        same = tuple(map(cut.constants.index, cut.constants)) if family.compared else None
        found = family.prover.prove(cut, family.kinds, fixed, same)
        if found is not None and found[1].reserved is not None and not family.compared:
            family.compared = True
            family.shapes.clear()
            special = self._special(family, cut.constants)
            found = family.prover.prove(cut, family.kinds, fixed, tuple(map(cut.constants.index, cut.constants)))
        self._make_room()
        family.shapes[special] = found
        return found

    def _make_room(self) -> None:
        self._count += 1
        if self._count > KEPT:
            self._count = 0
            self._families.clear()
