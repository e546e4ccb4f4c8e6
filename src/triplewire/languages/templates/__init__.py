"""Loading by template: texts that differ in their parameters only are parsed once.

`Templates.find` splits a text at its parameters and looks its template up. When such a text comes for the second time,
its template is built and checked (`builder`), unless that was done for so many texts already that parsing all of them
in full would have been cheaper. GQL texts are first looked at tuple by tuple, those of operator predicates call by call
(`conjunctions`). What has no template is parsed in full by `triplewire.languages.parse`, which also says what is wrong
with it: no text that is refused has a template. What a template is: `template`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from triplewire.config import Settings
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.keywords import quoted
from triplewire.languages.templates.builder import USUAL, Built, Equal, Key, TemplateBuilder, Variants, equal_to
from triplewire.languages.templates.conjunctions import LANGUAGE, CallList, CallLists, Conjunctions
from triplewire.languages.templates.template import (
    CONSTANTS,
    MARK,
    WITHOUT_VOCABULARIES,
    Conjunction,
    Environment,
    Parameters,
    SplitText,
    Template,
    can_be_split,
    is_word,
)
from triplewire.model.operator import Operator, takes_any_constants
from triplewire.operators import built_in_operators

__all__ = ["AnyTemplate", "Templates"]

AnyTemplate: TypeAlias = "Template | Conjunction | CallList"
"""What `Templates.find` may give: one template, several, or a list of calls."""

KEYWORDS = "keywords"
LANGUAGES = frozenset(["gql", "sparql", "mdv", KEYWORDS, LANGUAGE])
MOST_TEMPLATES = 65_536  # past that all are forgotten
MOST_WORDS = 1_000_000  # parameters that are remembered as words or none
ADVANCE = 20_000  # texts that may be parsed for templates before as many were looked up
_QUOTATIONS = frozenset("\"'")

_Family: TypeAlias = tuple[str, str, Environment, "Equal | None"]
"""Text with marks, first characters of the parameters, environment, equal variables."""

_first = itemgetter(0)


class Templates:
    """The templates of the texts that were met. For one thread at a time.

    `operators` and `settings` as for `triplewire.languages.parse`. `meant` makes of a subscription what is evaluated,
    if it differs (RDFS entailment). `parsed` counts the texts that were parsed in full to build and check templates.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        operators: Mapping[str, Operator] | None = None,
        meant: Callable[[Subscription], Subscription] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.parsed = 0
        self._operators = operators
        self._meant = meant
        # what a query means may depend on terms of RDF and RDFS in it
        self._split = (CONSTANTS if meant is None else WITHOUT_VOCABULARIES).split
        self._variants: dict[_Family, Variants] = {}
        self._met: set[int] = set()
        self._is_word = lru_cache(MOST_WORDS)(is_word)
        self._count = 0
        self._looked_up = 0
        self._proofs = 0
        self._conjunctions = Conjunctions(self._template_of, self._proof, self.settings)
        self._known_operators = built_in_operators() if operators is None else operators
        self._call_lists = CallLists(self._parse, self._known_operators, self.settings)

    def find(
        self, text: str, language: str, prefixes: Mapping[str, str] | None = None, base: str = ""
    ) -> tuple[AnyTemplate, Parameters] | None:
        """The template of a text and its parameters; None where the text has to be parsed in full.

        A template is built when such a text comes for the second time, as many texts are the only one of their kind.
        Building takes several parses, and not more for all templates than texts came, beside an advance (`ADVANCE`):
        however many kinds of texts come in whatever order, they take at most twice as long as when parsed in full.
        """
        if language not in LANGUAGES or not can_be_split(text):
            return None
        self._looked_up += 1
        limit = self.settings.max_query_bytes
        if 4 * len(text) > limit and len(text.encode()) > limit:
            return None
        environment = language, base, tuple(prefixes.items()) if prefixes else ()
        if language == LANGUAGE:
            calls = self._call_lists.find(text, environment)
            return None if calls is None else (calls, ())
        if language == "gql" and self._meant is None:
            conjunction = self._conjunctions.find(text, environment)
            if conjunction is not None:
                return conjunction
        pieces = self._split(quoted(text) if language == KEYWORDS else text)
        parameters = tuple(pieces[1::2])
        template = self._template_of(MARK.join(pieces[::2]), parameters, environment, None)
        return None if template is None else (template, parameters)

    def _template_of(
        self, marked: str, parameters: Parameters, environment: Environment, equal: Equal | None
    ) -> Template | None:
        """The template of a text in pieces. `equal` tells variables only; None where no parameter is a variable."""
        delimiters = "".join(map(_first, parameters))
        family = marked, delimiters, environment, equal
        variants = self._variants.get(family)
        if variants is None:
            # with both quotations, equal strings could be written in two ways
            if self._is_new(family) or _QUOTATIONS.issubset(delimiters) or not self._may_build():
                return None
            text = SplitText(tuple(marked.split(MARK)), parameters)
            operators = self._known_operators
            builder = TemplateBuilder(
                environment[0],
                lambda text, rules: self._proof(text, environment, rules),
                self._meant or (lambda subscription: subscription),
                self.settings.max_branches,
                self._meant is None,
                lambda operator: operator in operators and takes_any_constants(operators[operator]),
            )
            variants = Variants(builder, text, equal, self._is_word)
            self._make_room()
            self._variants[family] = variants
        if variants.kinds is None:
            return None
        key = variants.key(parameters)
        built = self._built(variants, key, family, parameters)
        if built is not None and not built[1].allows(parameters):
            if variants.compares:  # the key has the equal parameters already
                return None
            built = self._built(variants, (*key[:2], equal_to(parameters)), family, parameters)
            if built is not None and not built[1].allows(parameters):
                return None
        return None if built is None else built[0]

    def _built(self, variants: Variants, key: Key, family: _Family, parameters: Parameters) -> Built:
        """The template for this key, built now where it has to be."""
        try:
            return variants.built[key]
        except KeyError:
            if (key != USUAL and self._is_new((family, key))) or not self._may_build():
                return None
        built = variants.build(key, SplitText(tuple(family[0].split(MARK)), parameters))
        if variants.built:  # the first was counted with its family
            self._make_room()
        variants.built[variants.key(parameters) if variants.compares else key] = built
        return built

    def _proof(
        self, text: str, environment: Environment, rules: Mapping[str, Subscription] | None = None
    ) -> Subscription:
        """The subscription of a text, parsed in full to build or check templates."""
        self._proofs += 1
        return self._parse(text, environment, rules)

    def _may_build(self) -> bool:
        """Is there no more work in templates than texts that they might have spared it?"""
        return self._proofs <= self._looked_up + ADVANCE

    def _parse(
        self, text: str, environment: Environment, rules: Mapping[str, Subscription] | None = None
    ) -> Subscription:
        """The subscription of a text, parsed in full."""
        self.parsed += 1
        language, base, prefixes = environment
        return parse(
            text,
            language,
            prefixes=dict(prefixes),
            base=base,
            operators=self._operators,
            rules=rules,
            settings=self.settings,
        )

    def _is_new(self, key: tuple[object, ...]) -> bool:
        """Is it met for the first time? Hashes are remembered: two of the same only make a template come early."""
        number = hash(key)
        if number in self._met:
            return False
        if len(self._met) >= 4 * MOST_TEMPLATES:
            self._met.clear()
        self._met.add(number)
        return True

    def _make_room(self) -> None:
        """Forget all templates where there are too many; then a text has to come twice again to have one."""
        self._count += 1
        if self._count > MOST_TEMPLATES:
            self._count = 0
            self._variants.clear()
            self._conjunctions.clear()
            self._met.clear()
