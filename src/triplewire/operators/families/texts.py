"""Operators on texts: `namesEntity` on pyahocorasick (extra `entities`), `textLanguage` on py3langid (`language`).

`namesEntity(class, entity)`: which of a taxonomy's names stand in the texts? All names are in one automaton over words,
in which a text is searched in one pass (A. Aho, M. Corasick, Efficient string matching, 1975). Words are those of full
text: without regard to case, and each sign of Han or Thai alone. `textLanguage(language)`: which language is a text in
that does not state it?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from triplewire.forks import new_lock
from triplewire.ir.fulltext import words_of
from triplewire.ir.nodes import Analyzer, Label
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.model.operator import Argument, Parameter, nothing_to_say
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Node, Term
from triplewire.operators import text_of
from triplewire.operators.built_in import STATED, language_range, matches_range, tag_of
from triplewire.operators.families.library import LibraryOperator, TaxonomyOperator, checked, nothing_asked, require

LIBRARIES = (("pyahocorasick", "ahocorasick"),)
_ANALYZER = Analyzer()
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_MOST_WORDS = 200_000  # of a publication's texts


class Names:
    """The names of a taxonomy as one automaton over word numbers."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        import ahocorasick

        self._numbers: dict[str, int] = {}
        entities: dict[tuple[int, ...], set[str]] = {}
        # in a taxonomy of two columns, classes are names themselves
        classes = [name for name in taxonomy.classes | taxonomy.classes_of.keys() if not _IRI.fullmatch(name)]
        for name, iris in (*taxonomy.names.items(), *((name, frozenset((name,))) for name in classes)):
            words = words_of(name, _ANALYZER).words
            if words:
                key = tuple([self._numbers.setdefault(word, len(self._numbers) + 1) for word in words])
                entities.setdefault(key, set()).update(iris)
        automaton = ahocorasick.Automaton(ahocorasick.STORE_ANY, ahocorasick.KEY_SEQUENCE)
        for key, named in entities.items():
            automaton.add_word(key, (len(key), tuple(sorted(named))))
        self._automaton: Any = automaton
        if entities:
            automaton.make_automaton()

    def named_in(self, text: tuple[str, ...]) -> Iterator[str]:
        """The IRIs of the names in a text, from left to right: the longest name that begins first, then what follows
        it."""
        if not self._numbers:
            return
        numbers = tuple([self._numbers.get(word, 0) for word in text])
        hits = [(end - length + 1, -length, iris) for end, (length, iris) in self._automaton.iter(numbers)]
        free = 0  # the first word that no name has taken
        for start, length, iris in sorted(hits):
            if start >= free:
                free = start - length
                yield from iris


@dataclass(frozen=True)
class Mentions(TaxonomyOperator):
    """The operator `namesEntity`."""

    @cached_property
    def _names(self) -> Names:
        return Names(self.taxonomy)

    @cached_property
    def _below(self) -> dict[tuple[bool, str], frozenset[str]]:
        """A cache: class of a call (is it an IRI? its text) -> what it may mean and all below it."""
        return {}

    def check_constants(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """A warning where the taxonomy does not know the class. Raises `ValueError` where a library is absent."""
        require(self.extra, self.libraries)
        if arguments[0] is None or self.taxonomy is EMPTY or self._meant(arguments[0]):
            return ()
        text = text_of(arguments[0], "class")
        cls = arguments[0] if isinstance(arguments[0], IRI) else Label(text, "")
        near = self.taxonomy.class_like(cls)
        return (f"the taxonomy knows nothing named {text!r}{f'; did you mean {near}?' if near else ''}",)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Iterable[tuple[Term, ...]]:
        """A row for each thing in or below the class that a text names. Raises `ValueError` where no class is given,
        and for very long texts."""
        require(self.extra, self.libraries)
        if not self.taxonomy.names and not self.taxonomy.classes:
            raise ValueError("class cannot be looked up: the engine has no taxonomy, or one without names")
        text_of(arguments[0], "class")
        cls, wanted = arguments
        assert cls is not None
        meant = self._meant(cls)
        mentioned = (iri for iri in self._mentioned(publication) if iri in meant)
        entities = dict.fromkeys(IRI(iri) if _IRI.fullmatch(iri) else Literal(iri) for iri in mentioned)
        return tuple((cls, entity) for entity in entities if wanted is None or wanted == entity)

    def _mentioned(self, publication: Publication) -> Iterator[str]:
        count = 0
        literals = (t.object for t in publication.graph.triples if isinstance(t.object, Literal) and t.object.has_text)
        for text in dict.fromkeys(literal.lexical for literal in literals):
            words = words_of(text, _ANALYZER).words
            count += len(words)
            if count > _MOST_WORDS:
                raise ValueError(f"the publication's texts have more than {_MOST_WORDS} words")
            yield from self._names.named_in(words)

    def _meant(self, cls: Term) -> frozenset[str]:
        """The IRIs of the class, of its subclasses, and of the instances of these; of an instance, itself."""
        key = isinstance(cls, IRI), text_of(cls, "class")  # publications choose the language and type of a literal
        known = self._below.get(key) or self._all_below(*key)
        if known:  # else it may be any text of a publication, which is not kept
            self._below[key] = known
        return known

    def _all_below(self, is_iri: bool, text: str) -> frozenset[str]:
        taxonomy = self.taxonomy
        meant = {text} if is_iri else {text} | taxonomy.names.get(text, frozenset())
        tops = {name for name in meant if name in taxonomy.classes or name in taxonomy.classes_of}
        if not tops:
            return frozenset()
        classes = {cls for cls in taxonomy.classes if not tops.isdisjoint(taxonomy.at_or_above(cls))}
        instances = {thing for thing, of in taxonomy.classes_of.items() if not classes.isdisjoint(of)}
        return frozenset(tops | classes | instances)


_NAMED = (Parameter("class"), Parameter("entity"))
MENTIONS = Mentions("namesEntity", _NAMED, nothing_asked, nothing_to_say, "entities", LIBRARIES, cost=1e-3)


# --- textLanguage ----------------------------------------------------------------------------------------------------

_LETTERS = 12  # with fewer letters a text is too short to guess from; a letter of a syllabary or of Han counts thrice
_SURE = 0.5  # of 1: with less, the guess is none
_MOST = 2_000  # characters of a text that are looked at
_MOST_TEXTS = 2_000  # of a publication
_LOCK = new_lock()


def text_language(publication: Publication, arguments: tuple[Argument, ...]) -> bool | Iterable[tuple[Term, ...]]:
    """Is a text in this language? Open, a row for each language of a text, as a plain literal in lower case."""
    if arguments[0] is None:
        return tuple((Literal(code),) for code in dict.fromkeys(_languages(publication)))
    code = language_range(arguments[0])
    return any(matches_range(tag, code) for tag in _languages(publication))


def _languages(publication: Publication) -> Iterator[str]:
    """The languages of the texts: those stated first, since they cost nothing. Raises `ValueError` for very many."""
    stated: set[Node] = set()
    for subject, predicate, value in publication.graph.triples:
        if isinstance(value, Literal) and (value.language or predicate in STATED):
            if predicate in STATED:
                stated.add(subject)
            yield tag_of(value.language or value.lexical)
    unstated = (
        value.lexical[:_MOST]
        for subject, _, value in publication.graph.triples
        if isinstance(value, Literal) and value.has_text and not value.language and subject not in stated
    )
    for looked_at, text in enumerate(filter(_long_enough, unstated)):
        if looked_at >= _MOST_TEXTS:
            raise ValueError(f"the publication has more than {_MOST_TEXTS} texts without a language")
        guess, share = _model().classify(text)
        if share >= _SURE:
            yield guess


def _long_enough(text: str) -> bool:
    """Has the text letters enough, and white space or a script without it? Names of files and addresses have none."""
    wide = sum(0x2E80 <= ord(character) < 0xE000 for character in text)
    letters = sum(character.isalpha() for character in text)
    return letters + 2 * wide >= _LETTERS and (wide > 0 or len(text.split()) > 1)


_models: list[Any] = []


def _model() -> Any:
    """The model: 110 MB of memory, some seconds to load, once."""
    with _LOCK:
        if not _models:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier

            _models.append(LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True))
        return _models[0]


_SPOKEN, _GUESSER = (Parameter("language"),), (("py3langid", "py3langid"),)
TEXT_LANGUAGE = LibraryOperator(
    "textLanguage", _SPOKEN, text_language, checked(language_range), "language", _GUESSER, cost=1e-3
)
