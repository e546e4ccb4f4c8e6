"""`textLanguage(language)`: which language a text is in that does not state it, on py3langid (extra `language`).

A statement wins over a guess: a literal's tag, or the dc:language of its subject. What the texts state alone:
`triplewire.operators.language`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from triplewire.forks import new_lock
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import Literal, Node, Term
from triplewire.operators.families.library import LibraryOperator, checked
from triplewire.operators.language import STATED, language_range, matches_range, tag_of

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
    for triple in publication.graph.triples:
        value = triple.object
        if isinstance(value, Literal) and (value.language or triple.predicate in STATED):
            if triple.predicate in STATED:
                stated.add(triple.subject)
            yield tag_of(value.language or value.lexical)
    looked_at = 0
    for triple in publication.graph.triples:
        value = triple.object
        if isinstance(value, Literal) and value.has_text and not value.language and triple.subject not in stated:
            text = value.lexical[:_MOST]
            if _long_enough(text):
                looked_at += 1
                if looked_at > _MOST_TEXTS:
                    raise ValueError(f"the publication has more than {_MOST_TEXTS} texts without a language")
                guess, share = _model().classify(text)
                if share >= _SURE:
                    yield guess


def _long_enough(text: str) -> bool:
    """Has the text letters enough, and white space or a script without it? Names of files and addresses have none."""
    wide = sum(0x2E80 <= ord(character) < 0xE000 for character in text)
    letters = sum(character.isalpha() for character in text)
    return letters + 2 * wide >= _LETTERS and (wide > 0 or len(text.split()) > 1)


@cache
def _loaded() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _model() -> Any:
    """The model: 110 MB of memory, some seconds to load, once."""
    with _LOCK:
        return _loaded()


TEXT_LANGUAGE = LibraryOperator(
    "textLanguage",
    (Parameter("language"),),
    text_language,
    checked(language_range),
    "language",
    (("py3langid", "py3langid"),),
    cost=1e-3,
)
