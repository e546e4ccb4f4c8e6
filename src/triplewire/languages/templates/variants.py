"""The templates of the texts that are the same beside their parameters.

Most such texts have one template. They have more where a parameter has another form than usual (a phrase where words
stand, another form of number), where a parameter is fixed, and, where it matters, for each pattern of equal parameters.
"""

from __future__ import annotations

from typing import TypeAlias

from triplewire.languages.templates.builder import Equal, TemplateBuilder
from triplewire.languages.templates.guards import Guard
from triplewire.languages.templates.parameters import Parameters, SplitText, has_suffix, is_word, number_form
from triplewire.languages.templates.template import FIXED, LITERAL, NUMBER, TEXT, WORD, Template

MOST_WORDS = 1_000_000  # parameters that are remembered as words or none


Built: TypeAlias = tuple[Template, Guard] | None

Key: TypeAlias = tuple[tuple[tuple[int, str], ...], tuple[str, ...], Equal | None]
"""What of the parameters decides between the templates: those that are fixed here, each with its number; the forms of
the numbers; which parameters are equal, where that matters."""

USUAL: Key = ((), (), None)


class Variants:
    """The templates of the texts that are the same beside their parameters, by key.

    `built` has None for a key without a template; `kinds` is None where no key has one. `compares`: each pattern of
    equal parameters has a template of its own. `equal` says which variables are equal, if variables are parameters.
    """

    def __init__(self, builder: TemplateBuilder, text: SplitText, equal: Equal | None, words: WordCache) -> None:
        self._builder = builder
        self._equal = equal
        self._is_word = words.__getitem__
        self.compares = False
        self.built: dict[Key, Built] = {}
        self.kinds = builder.kinds(text, equal)
        kinds = self.kinds or ()
        plain = (TEXT,) if builder.may_have_suffix else (TEXT, LITERAL)
        self._words = _numbers_of(kinds, WORD)
        self._plain = _numbers_of(kinds, *plain)  # strings without tag and datatype
        self._fixed = _numbers_of(kinds, FIXED)
        self._numeric = _numbers_of(kinds, NUMBER)
        self._is_simple = not (self._words or self._plain or self._fixed or self._numeric)
        if any(text.parameters[number][0] == "?" for number in self._fixed):
            self.kinds = None

    def key(self, parameters: Parameters) -> Key:
        """The key of a text with these parameters."""
        if self._is_simple and not self.compares:
            return USUAL
        fixed = [(number, parameters[number]) for number in self._words if not self._is_word(parameters[number])]
        fixed += [(number, parameters[number]) for number in self._plain if has_suffix(parameters[number])]
        fixed += [(number, parameters[number]) for number in self._fixed]
        forms = [number_form(parameters[number]) for number in self._numeric]
        compares = self.compares and len(set(parameters)) < len(parameters)
        return tuple(fixed), tuple(forms), _equal(parameters) if compares else None

    def key_of_equal(self, key: Key, parameters: Parameters) -> Key | None:
        """The key of a text whose equal parameters the guard of the usual template does not allow; None where the key
        has them already."""
        return None if self.compares else (key[0], key[1], _equal(parameters))

    def build(self, key: Key, text: SplitText) -> Built:
        """Build the template of a text for its key. `compares` may become true; then all keys change."""
        assert self.kinds is not None
        fixed = frozenset([number for number, _ in key[0]])
        built = self._builder.build(text, self.kinds, fixed, key[2] or self._equal)
        if built is not None and built[1].compares and not self.compares:
            self.compares = True
            self.built.clear()
            if key[2] is None and len(set(text.parameters)) < len(text.parameters):
                built = self._builder.build(text, self.kinds, fixed, _equal(text.parameters))
        return built


class WordCache(dict[str, bool]):
    """A cache: is a parameter a word?"""

    def __missing__(self, parameter: str) -> bool:
        if len(self) >= MOST_WORDS:
            self.clear()
        answer = self[parameter] = is_word(parameter)
        return answer


def _equal(parameters: Parameters) -> Equal:
    return tuple(map(parameters.index, parameters))


def _numbers_of(kinds: tuple[str, ...], *wanted: str) -> tuple[int, ...]:
    return tuple([number for number, kind in enumerate(kinds) if kind in wanted])
