"""Words and numbers of texts, by kernels, against their twins in `triplewire.ir`."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from decoded import check
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from triplewire.encode.batch import EXACT_NUMBER, Batch
from triplewire.encode.names import words_of_terms
from triplewire.encode.publications import encode
from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import Analyzer
from triplewire.ir.values.numbers import lenient_number
from triplewire.kernels.text import words as kernels
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal, Triple


def _words(texts: Sequence[str], behind: bytes = b"x") -> list[tuple[str, ...]]:
    """The words of each text, by the kernel."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offset = np.cumsum([0, *map(len, encoded)])
    joined = np.frombuffer(b"".join(encoded) + behind * kernels.PAD, np.uint8)
    words = words_of_terms(joined, offset[:-1], offset[1:], np.ones(len(texts), np.bool_), len(joined))
    distinct = [
        words.text[start:end].tobytes().decode("utf-8", "surrogatepass")
        for start, end in zip(words.start, words.end, strict=True)
    ]
    slices = zip(words.offset[:-1], words.offset[1:], strict=True)
    return [tuple(distinct[word] for word in words.ids[start:end]) for start, end in slices]


def _batch(literals: Sequence[Literal]) -> Batch:
    triples = tuple(Triple(IRI("a:s"), IRI("a:p"), literal) for literal in literals)
    return encode([Publication("a:x", triples)])


def test_every_code_point() -> None:
    """Each between two letters: is it part of a word, and what is it folded to?"""
    texts = [
        " ".join(f"a{chr(code)}B" for code in range(first, first + 256)) for first in range(0, sys.maxunicode + 1, 256)
    ]
    assert _words(texts) == [analyse(text, Analyzer()) for text in texts]


def test_no_text_grows_more_than_the_kernel_has_room_for() -> None:
    characters = filter(lambda c: c.isalnum() or c.casefold() != c, map(chr, range(sys.maxunicode + 1)))
    for character in characters:
        words = analyse(character, Analyzer())
        size = len(character.encode("utf-8", "surrogatepass"))
        assert sum(len(word.encode("utf-8", "surrogatepass")) for word in words) <= kernels.GROWTH * size
        assert len(words) <= size


@pytest.mark.parametrize(
    "text",
    ["", " ", "a", "_a_b_", "Straße STRASSE", "ﬁn ﬃ ŉ", "İstanbul ı I", "ΐ", "x" * 70_000, "é" * 3, "日本語 テキスト",
     "a\ud800b", "\udfff", "1²3½", "don't", "Ǆ ǆ ǅ", "ᾳ ᾼ", "\u0345", "a\u0301b", "ß" * 20_000, "\0a\0"],
)  # fmt: skip
def test_text(text: str) -> None:
    assert _words([text, "between", text]) == [analyse(t, Analyzer()) for t in (text, "between", text)]


@pytest.mark.parametrize("behind", [b"x", b" ", b"\x80", b"\xff"])
def test_words_of_all_lengths_in_all_places(behind: bytes) -> None:
    """They are looked at eight bytes at a time; nothing behind a text is part of it."""
    words = ["aB1Z9" * 5, "x" * 25, "xxxxxxxxÉ" * 2, "é" * 12]
    texts = [
        before + word[:length] + after
        for word in words
        for length in range(len(word) + 1)
        for before in ("", " ", ". ", "é", "ß-", "ab ", "-" * 9)
        for after in ("", ".", "; ", "é", "\u0301", "Z", " Z", "-" * 9 + "z", "@A", "[a", "`A", "{a", "/0", ":9")
    ]
    assert _words(texts, behind) == [analyse(text, Analyzer()) for text in texts]


def test_tables_grow() -> None:
    few = [f"word{number} {number}" for number in range(3_000)]
    long = " ".join(f"{number:x}" for number in range(200_000))
    for texts in (few, [long], ["a", long, *few], [*few, "one two", long]):
        assert _words(texts) == [analyse(text, Analyzer()) for text in texts]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.text(st.characters(codec=None, categories=None), max_size=30), max_size=6))
def test_any_text(texts: list[str]) -> None:
    assert _words(texts) == [analyse(text, Analyzer()) for text in texts]


def test_only_literals_with_text_have_words() -> None:
    node = BlankNode("b")
    terms = (Literal("One two"), Literal.tagged("Two three", "en"), Literal("four", "a:t"), IRI("a:five"), node)
    batch = encode([Publication("a:x", tuple(Triple(IRI("a:s"), IRI("a:p"), term) for term in terms))])
    check(batch)
    words = [batch.words.text[a:b].tobytes() for a, b in zip(batch.words.start, batch.words.end, strict=True)]
    assert sorted(words) == [b"one", b"three", b"two"]
    assert len(batch.words.ids) == 4


NUMBERS = [
    "", " ", "0", "-0", "+0.0", "0e999999999999", "00012", "1.", ".5", ".", "+", "-.", "1e", "e1", "1e+", "1.5e-3",
    "1E+05", "123456789012345", "1234567890123456", "0.000000000123456789012345", "1000000000000000000000000",
    "100000000000000000000000", "1e22", "1e23", "1e-22", "1e-23", "10e22", "0.1e23", "123456789012345e22",
    "999999999999999e-22",
    "1.0000000000000000000", "1.0000000000000000001", "0" * 500 + "1", "1" + "0" * 500, "0." + "0" * 500 + "1",
    "1" + "0" * 22 + ".0", "1e0000000000000000000000005", "1e99999999999999999999", "0.0e-99999999999999999999",
    "NaN", "INF", "-INF", "nan", "Infinity", "1_000", "1,5", "0x10", "١٢", "１２", "²", "1 2", "--1", "+-1", "1-",
    "1e5.0", "1f",
    " 7", "7 ", "\t7\n", "\u00a07\u3000", "\x1c7\x1f", "\u200b7", "\u20287\u2029", "\u16807\u205f", "\x857", "\u180e7",
    "\ufeff7", "7\u00a0\u00a0 \u2003", "\u00a0", "\u3000\u3000", "a7", "7é", "é7", "http://a/7",
]  # fmt: skip


def test_numbers() -> None:
    batch = _batch([Literal(text) for text in NUMBERS])
    check(batch)
    exact = int((batch.terms.number_state == EXACT_NUMBER).sum())
    expected = {text for text in NUMBERS if (read := lenient_number(text)) is not None and _is_short(read)}
    assert exact == len(expected) == 20


def _is_short(value: Decimal) -> bool:
    """At most 15 digits, without zeros at either end, times a power of ten of at most 22?"""
    _, digits, power = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    return not kept or (len(kept) <= 15 and abs(int(power) + len(text) - len(kept)) <= 22)


def test_what_may_stand_before_a_number() -> None:
    texts = [f"{chr(code)}7" for code in range(0x3100)]
    batch = _batch([Literal(text) for text in texts])
    exact = np.flatnonzero(batch.terms.number_state == EXACT_NUMBER)
    found = {batch.terms.text[batch.terms.start[row] : batch.terms.end[row]].tobytes().decode() for row in exact}
    assert found == {text for text in texts if lenient_number(text) is not None}


def test_exact_numbers_compare_as_their_decimals() -> None:
    """Equal where they are equal, less where they are less; also next to each other."""
    chance = random.Random(5)
    texts = []
    for _ in range(6_000):
        digits = str(chance.randrange(10 ** chance.randrange(1, 16)))
        point = chance.randrange(len(digits) + 1)
        text = f"{digits[:point]}.{digits[point:]}" + chance.choice(["", "", f"e{chance.randrange(-15, 16)}"])
        texts += [
            chance.choice(["+", "-", ""]) + text,
            f"{int(digits) + 1}e{chance.randrange(-22, 22)}",
            f"{digits}e-3",
        ]
    batch = _batch([Literal(text) for text in dict.fromkeys(texts)])
    check(batch)
    rows = np.flatnonzero(batch.terms.number_state == EXACT_NUMBER)
    read = [
        (lenient_number(batch.terms.text[batch.terms.start[row] : batch.terms.end[row]].tobytes().decode()), row)
        for row in rows.tolist()
    ]
    assert len(read) > 12_000
    ordered = sorted((Fraction(value), float(batch.terms.number[row])) for value, row in read if value is not None)
    for (left, a), (right, b) in pairwise(ordered):
        assert (left == right) == (a == b)
        assert (left < right) == (a < b)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.from_regex(r"\A\s?[+-]?[0-9]{0,18}\.?[0-9]{0,18}([eE][+-]?[0-9]{0,3})?\s?\Z"), max_size=8))
def test_any_number(texts: list[str]) -> None:
    check(_batch([Literal(text) for text in texts]))
