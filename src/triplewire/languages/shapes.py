"""Texts that differ in their constants only are parsed once: a large set of subscriptions has few shapes.

`Shapes.find` cuts a text (`triplewire.languages.masks`), and looks up the shape of its mask
(`triplewire.languages.families`); a mask that comes again is proven (`triplewire.languages.proofs`). GQL texts are
first looked at tuple by tuple (`triplewire.languages.tuples`). What has no shape is parsed in full by
`triplewire.languages.parse`, which also says what is wrong with it: no text that is refused has a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triplewire.config import Settings
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.families import Family
from triplewire.languages.masks import HOLE, PLAIN, WITHOUT_VOCABULARIES, Constants, Cut, is_usual, is_word
from triplewire.languages.proofs import Prover
from triplewire.languages.shape import Composed, Shape
from triplewire.languages.tuples import Outside, Tuples
from triplewire.model.operator import Operator

LANGUAGES = frozenset(["gql", "sparql", "mdv"])
KEPT = 65_536  # masks and shapes; past that all begins anew
KEPT_WORDS = 1_000_000


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
        self._words: dict[str, bool] = {}
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
        constants = tuple(pieces[1::2])
        shape = self.shape_of(HOLE.join(pieces[::2]), constants, outside, None)
        return None if shape is None else (shape, constants)

    def shape_of(self, mask: str, constants: Constants, outside: Outside, same: tuple[int, ...] | None) -> Shape | None:
        """The shape of a text in pieces. `same`: for each constant the first variable that it equals, or its own place;
        None where no constant is a variable."""
        key = mask, "".join([one[0] for one in constants]), outside, same
        family = self._families.get(key)
        if family is None:
            if self._is_new(key):
                return None
            family = Family(self._prover(outside), Cut(tuple(mask.split(HOLE)), constants), same)
            self._make_room()
            self._families[key] = family
        if family.kinds is None:
            return None
        special = family.special(constants, self._is_word)
        try:
            found = family.shapes[special]
        except KeyError:
            if special and self._is_new((key, special)):
                return None
            found = family.prove(special, Cut(tuple(mask.split(HOLE)), constants))
            self._make_room()
            family.shapes[family.special(constants, self._is_word)] = found
        return found[0] if found is not None and found[1].allows(constants) else None

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

    def _is_word(self, constant: str) -> bool:
        found = self._words.get(constant)
        if found is None:
            if len(self._words) >= KEPT_WORDS:
                self._words.clear()
            found = self._words[constant] = is_word(constant)
        return found

    def _make_room(self) -> None:
        self._count += 1
        if self._count > KEPT:
            self._count = 0
            self._families.clear()
            self._tuples.clear()


def _itself(subscription: Subscription) -> Subscription:
    return subscription
