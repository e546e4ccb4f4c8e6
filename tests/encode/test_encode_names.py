"""Tables of byte strings: look-ups compare bytes, whatever memory the arrays lie in."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from documents import colliding
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from triplewire.clauses.node_tests.columns import flat, unflat
from triplewire.encode.names import WORD_SEED, Names, find_terms, term_names
from triplewire.encode.publications import encode
from triplewire.kernels.text.names import hash_spans
from triplewire.model.packed import literal_with, suffix_of
from triplewire.model.publication import Publication
from triplewire.model.terms import (
    LANG_STRING,
    XSD,
    Literal,
    Term,
    Triple,
    made_blank,
    made_iri,
    made_literal,
)

SEED = 9


def _mixed(h: int) -> int:
    product = h * 0x9E3779B97F4A7C15 % 2**64
    return product ^ product >> 32


def _hash(data: bytes, seed: int) -> int:
    """From its definition: a step for the seed and the length, one for each eight bytes and one for the rest."""
    h = _mixed(seed << 32 | len(data))
    for at in range(0, len(data) - len(data) % 8 + 1, 8):
        h = _mixed(h ^ int.from_bytes(data[at : at + 8], "little"))
    return _mixed(h)


def test_hash_is_as_defined() -> None:
    strings = [b"", b"a", b"foobar", b"12345678", b"123456789", bytes(range(256)), bytes(range(255, 0, -1))]
    names = Names.build(strings, SEED)
    assert names.hash.tolist() == [_hash(string, SEED) for string in strings]


def test_hash_of_terms_is_as_defined() -> None:
    terms = [made_iri("é"), made_blank("é"), Literal("é"), Literal.tagged("é", "en"), made_literal("é", XSD + "int")]
    plain = [_hash("é".encode(), kind) for kind in (1, 2, 3)]
    suffixed = [_mixed(plain[2] ^ _hash(suffix.encode(), 0)) for suffix in ("@en", XSD + "int")]
    assert term_names(terms).hash.tolist() == plain + suffixed


def test_hash_of_words_is_that_of_names() -> None:
    literal = Literal("a 1234567 12345678 123456789 ÄÖÜ " + "x" * 100)
    words = encode([Publication("p", (Triple(made_iri("s"), made_iri("p"), literal),))]).words
    assert len(words) == 6
    assert words.hash.tolist() == hash_spans(words.text, words.start, words.end, WORD_SEED).tolist()


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.binary(max_size=4), unique=True, max_size=40), st.lists(st.binary(max_size=4), max_size=20))
def test_any_strings(strings: list[bytes], others: list[bytes]) -> None:
    names = Names.build(strings, SEED)
    assert len(names) == len(strings)
    assert [names[number] for number in range(len(names))] == strings
    for string in strings + others:
        assert names.find(string) == (strings.index(string) if string in strings else -1)


def test_a_hash_never_decides() -> None:
    """All hashes alike: found by their bytes all the same, and not found where they are not there."""
    strings = [b"a", b"b", b"bb", b"", b"c"]
    names = Names.build(strings, SEED)
    same = np.full(5, 7, np.uint64)
    names = replace(names, hash=same, slots=Names.build(colliding(5, SEED), SEED).slots)
    mask = len(names.slots) - 1
    names.slots[:] = -1
    for row in range(5):
        names.slots[(7 + row) & mask] = row
    text = np.frombuffer(b"bbaccdb", np.uint8)
    start, end = np.array([0, 0, 2, 3, 5, 6, 1, 0]), np.array([1, 2, 3, 4, 6, 6, 3, 0])
    found = names.find_all(text, start, end, np.full(8, 7, np.uint64))
    assert found.tolist() == [1, 2, 0, 4, -1, 3, -1, 3]


def test_many() -> None:
    strings = [b"%d" % (number * 7919) for number in range(50_000)]
    names = Names.build(strings, SEED)
    text = b"".join(strings) + b"x"
    offset = np.cumsum([0, *map(len, strings)])
    array = np.frombuffer(text, np.uint8)
    hashes = hash_spans(array, offset[:-1], offset[1:], SEED)
    assert names.find_all(array, offset[:-1], offset[1:], hashes).tolist() == list(range(50_000))
    shifted = hash_spans(array, offset[:-1] + 1, offset[1:] + 1, SEED)
    known = {string: number for number, string in enumerate(strings)}
    expected = [known.get(text[a + 1 : b + 1], -1) for a, b in pairwise(offset)]
    assert names.find_all(array, offset[:-1] + 1, offset[1:] + 1, shifted).tolist() == expected


def test_arrays_of_maps(tmp_path: Path) -> None:
    arrays = flat(Names.build([b"a", b"", b"bc"], SEED))
    for name, array in arrays.items():
        np.save(tmp_path / name, array)
    mapped = unflat({name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays}, (Names,))
    assert [mapped.find(string) for string in (b"bc", b"", b"a", b"b")] == [2, 1, 0, -1]
    with pytest.raises(KeyError):
        unflat({name: array for name, array in arrays.items() if name != "slots"}, (Names,))


def test_taken_and_extended() -> None:
    names = Names.build([b"a", b"b", b"c"], SEED)
    other = Names.build([b"x", b"c", b"y", b"a"], SEED)
    assert [names.take(np.array([2, 0]))[n] for n in range(2)] == [b"c", b"a"]
    whole, found = names.extended(other, np.array([3, 2, 1]))
    assert found.tolist() == [0, 3, 2]
    assert [whole[n] for n in range(len(whole))] == [b"a", b"b", b"c", b"y"]
    assert [whole.find(string) for string in (b"y", b"x", b"b")] == [3, -1, 1]


def _terms(chance: random.Random, count: int) -> list[Term]:
    texts, suffixes = ["", "x", "xx", "x\udcff@en", "é"], [XSD + "string", XSD + "int", "@en", "", "^", LANG_STRING]
    found: dict[Term, None] = {}
    for _ in range(count):
        text = chance.choice(texts)
        kinds = [
            made_iri(text),
            made_blank(text),
            made_literal(text, chance.choice(suffixes)),
            Literal.tagged(text, "en"),
        ]
        found[chance.choice(kinds)] = None
    return list(found)


def test_terms_are_found() -> None:
    chance, hits = random.Random(2), 0
    for _ in range(60):
        known, asked = _terms(chance, 12), _terms(chance, 12)
        batch = encode([Publication("p", tuple(Triple(made_iri("s"), made_iri("p"), term) for term in asked))])
        found = find_terms(term_names(known), batch.terms)
        numbers = {term: number for number, term in enumerate(known)}
        decoded = _decoded(batch.terms)
        assert found.tolist() == [numbers.get(term, -1) for term in decoded]
        hits += sum(term in numbers for term in decoded)
    assert hits > 100


def _decoded(terms: object) -> list[Term]:
    from triplewire.encode.batch import Batch
    from triplewire.encode.decode import Decoder

    nothing = np.zeros(0, np.int32)
    decoder = Decoder(Batch([], np.zeros(1, np.int64), nothing, nothing, nothing, terms, None))  # type: ignore[arg-type]
    return [decoder.term(number) for number in range(len(terms))]  # type: ignore[arg-type]


def test_suffixes_come_back() -> None:
    datatypes = [XSD + "string", XSD + "int", "@en", "^@en", "^", "", "@", LANG_STRING]
    literals = [made_literal("x", datatype) for datatype in datatypes] + [
        Literal.tagged("x", "en"),
        Literal.tagged("x", "x"),
    ]
    suffixes = [suffix_of(literal) for literal in literals]
    assert len(set(suffixes)) == len(literals)
    assert [literal_with("x", suffix) for suffix in suffixes] == literals
    assert suffix_of(made_iri("x")) == suffix_of(made_blank("x")) == ""
