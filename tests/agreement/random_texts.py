"""Texts that try to break a parser: token soup, valid queries with a few changes, and characters at random.

Everything comes from one seed, so that a text that breaks something can be made again: `texts(language, count, seed)`.
The words are data: `tests/cases/random/vocabulary.toml`.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).resolve().parents[1] / "cases" / "random" / "vocabulary.toml"
_CHARACTERS = "".join(
    map(chr, [*range(128), 0x85, 0xA0, 0xDF, 0x130, 0x2028, 0x301, 0x3042, 0x661, 0xD800, 0xFEFF, 0x1F600])
)


@dataclass(frozen=True)
class Vocabulary:
    """What a language's random texts are made of."""

    words: tuple[str, ...]
    starts: tuple[str, ...]
    valid: tuple[str, ...]


def _load() -> dict[str, Vocabulary]:
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    languages = {name: entry for name, entry in data.items() if isinstance(entry, dict)}
    return {
        name: Vocabulary(
            tuple(" ".join([entry["words"], *(data[key] for key in entry["also"])]).split()),
            tuple(entry["starts"]),
            tuple(entry["valid"]),
        )
        for name, entry in languages.items()
    }


VOCABULARY = _load()


def texts(language: str, count: int, seed: int) -> Iterator[str]:
    """`count` texts for a parser, a third of each kind."""
    source = random.Random(f"{language} {seed}")
    for number in range(count):
        yield (_soup, _mutated, _noise)[number % 3](VOCABULARY[language], source)


def _soup(vocabulary: Vocabulary, source: random.Random) -> str:
    words = source.choices(vocabulary.words, k=source.randint(1, 12))
    return source.choice(vocabulary.starts) + source.choice((" ", " ", "")).join(words)


def _mutated(vocabulary: Vocabulary, source: random.Random) -> str:
    """A valid text of which pieces are left out, doubled, or replaced."""
    text = source.choice(vocabulary.valid)
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(text) + 1)
        until = min(len(text), at + source.randint(0, 8))
        piece = source.choice(("", text[at:until] * 2, source.choice(vocabulary.words), source.choice(_CHARACTERS)))
        text = text[:at] + piece + text[until:]
    return text


def _noise(vocabulary: Vocabulary, source: random.Random) -> str:
    return source.choice(vocabulary.starts) + "".join(source.choices(_CHARACTERS, k=source.randint(1, 20)))
