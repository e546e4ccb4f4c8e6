"""No text makes a parser crash or hang.

That is 15,000 texts, in `make full` 100,000, into each of the languages and the full-text grammar.
TRIPLEWIRE_TEST_TEXTS sets another number, TRIPLEWIRE_TEST_SEED another seed.
"""

from __future__ import annotations

import faulthandler
import os
import re
from collections.abc import Callable, Iterator

import pytest

from agreement.random_texts import VOCABULARY, texts
from amounts import IN_FULL
from triplewire.errors import LanguageError, TriplewireError
from triplewire.languages import parse
from triplewire.languages.context import Context
from triplewire.languages.grammar.full_text import parse_expression
from triplewire.languages.grammar.tokens import Tokens

COUNT = int(os.environ.get("TRIPLEWIRE_TEST_TEXTS") or (100_000 if IN_FULL else 15_000))
SEED = int(os.environ.get("TRIPLEWIRE_TEST_SEED", "1"))
PARTS = 4 if IN_FULL else 1  # of one language's texts, so that the workers of a test run share them
SECONDS = 300  # for one part, many times what it needs; past it the process ends with a trace of where it hangs

_TOKEN = re.compile(
    r"(?P<skip>\s+)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')'
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<symbol>[^\w\s\"'])"
)


def _full_text(text: str) -> None:
    tokens = Tokens(text, _TOKEN, Context())
    parse_expression(tokens)
    tokens.rest_is_empty()


def _query(language: str) -> Callable[[str], object]:
    return lambda text: parse(text, language, id="random")


PARSERS: dict[str, Callable[[str], object]] = {
    "sparql": _query("sparql"),
    "gql": _query("gql"),
    "rdql": _query("rdql"),
    "mdv": _query("mdv"),
    "predicates": _query("predicates"),
    "keywords": _query("keywords"),
    "fulltext": _full_text,
}


@pytest.fixture
def _watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def _refusal(parser: Callable[[str], object], text: str) -> TriplewireError | None:
    """What the parser says against the text. Any other exception fails the test, naming the text."""
    try:
        parser(text)
    except TriplewireError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error} for {text!r}") from error
    return None


def _accepts(parser: Callable[[str], object], text: str) -> bool:
    """Is the text accepted? A refusal must say what is wrong, and a parser's own must say where."""
    error = _refusal(parser, text)
    if error is None:
        return True
    assert error.what.strip(), f"an error without a message for {text!r}"
    if isinstance(error, LanguageError):
        assert error.line >= 1, f"an error without a line for {text!r}: {error}"
        assert error.column >= 1, f"an error without a column for {text!r}: {error}"
    return False


@pytest.mark.usefixtures("_watchdog")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("language", PARSERS)
def test_random_texts(language: str, part: int) -> None:
    count = COUNT // PARTS
    accepted = sum(_accepts(PARSERS[language], text) for text in texts(language, count, SEED * PARTS + part))
    assert accepted < count
    assert accepted > 0 or count < 1_000, "no text was accepted: the texts are too wild to reach what lies deep"


@pytest.mark.parametrize(
    ("language", "text"), [(language, text) for language in VOCABULARY for text in VOCABULARY[language].valid]
)
def test_the_unchanged_texts_are_valid(language: str, text: str) -> None:
    """What the changed texts start from is accepted as it stands."""
    PARSERS[language](text)


def test_the_same_seed_gives_the_same_texts() -> None:
    for language in VOCABULARY:
        once, again, other = (list(texts(language, 60, seed)) for seed in (1, 1, 2))
        assert once == again != other
