"""The triples of a publication as bytes: how they come from the parsing process, and how an encoder takes them.

A publication that was read stays like this until somebody asks for its terms; most are only matched. The bytes lie
together, where hundreds of objects would be all over memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, compress
from typing import Final, NamedTuple, TypeAlias

from triplewire.model.terms import (
    LANG_STRING,
    XSD_STRING,
    Literal,
    Term,
    Triple,
    made_blank,
    made_iri,
    made_literal,
    sort_of,
    tag_of,
    text_of,
)

IRI_CODE, BLANK_CODE, LITERAL_CODE = 0, 1, 2
"""Codes of terms; of literals, the number of the suffix is added."""

PAD = b"\0" * 8  # behind each text: none is empty, and all of it can be read eight bytes at a time
_NUMBER: Final = "i"  # a number of 32 bits
_CONTINUING = frozenset(range(0x80, 0xC0))  # bytes in the middle of a character of UTF-8
_FEW_SORTS = 16  # of terms, whose codes are remembered
_FEW_IRIS = 1 << 12  # that are made once: triples take a third less memory, as publications share predicates
_MARKS = ("", "@", "^")  # how no datatype IRI begins

_Sort: TypeAlias = "str | int | tuple[str | int, str]"
"""What `sort_of` says of a term, with its language where a term has one."""


class Packed(NamedTuple):
    """Triples of terms, which need not be distinct: a term may be there twice, a triple only once."""

    text: bytes  # the texts of the terms in UTF-8, one behind the other, then the suffixes, then PAD
    numbers: bytes  # of each term and suffix, how many bytes it has; of each term its code; of each triple three terms
    suffixes: tuple[str, ...]  # what of literals is not their lexical form (`suffix_of`); the first is ""
    terms: int  # how many
    literals: int  # bytes of the texts of literals and blank nodes, or more

    @property
    def statements(self) -> int:
        """How many triples there are."""
        return (len(self.numbers) // 4 - 2 * self.terms - len(self.suffixes)) // 3

    def check(self) -> None:
        """Raises `ValueError` where the parts do not fit each other: kernels trust them."""
        if len(self.numbers) % 4:
            raise ValueError("a number is cut")
        numbers, behind = memoryview(self.numbers).cast("I"), self.terms + len(self.suffixes)
        lengths, codes = numbers[:behind], numbers[behind : behind + self.terms]
        statements = numbers[behind + self.terms :]
        ends = sum(lengths) + len(PAD)
        if ends != len(self.text) or self.text[-len(PAD) :] != PAD or self.suffixes[:1] != ("",) or self.terms < 0:
            raise ValueError("texts and their lengths do not fit each other")
        if len(codes) != self.terms or max(codes, default=0) >= LITERAL_CODE + len(self.suffixes):
            raise ValueError("a code of a term is not known")
        if len(statements) % 3 or max(statements, default=-1) >= self.terms:
            raise ValueError("a term of a triple is not there")
        if sum(compress(lengths[: self.terms], codes)) > self.literals:
            raise ValueError("literals have more bytes than are told")
        if not self.text.isascii():
            str(self.text, "utf-8", "surrogatepass")  # raises a ValueError
            if not _CONTINUING.isdisjoint(map(self.text.__getitem__, accumulate(lengths))):
                raise ValueError("a text ends within a character")


def pack(triples: Sequence[Triple]) -> Packed:
    """Triples. A term object that is there more than once becomes one term. The loops over terms are C's."""
    flat: list[Term] = list(chain.from_iterable(triples))
    identities = list(map(id, flat))
    objects = dict(zip(identities, flat, strict=True))
    place = dict(zip(objects, range(len(objects)), strict=True))
    texts = list(map(text_of, objects.values()))
    whole = "".join(texts)
    data = whole.encode("utf-8", "surrogatepass")
    if len(data) == len(whole):
        lengths = list(map(len, texts))
    else:
        lengths = [len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts]
    sorts: list[_Sort] = list(map(sort_of, objects.values()))
    distinct = dict.fromkeys(sorts)
    if LANG_STRING in distinct:  # few have another tag than the others
        sorts = list(zip(map(sort_of, objects.values()), map(tag_of, objects.values()), strict=True))
        distinct = dict.fromkeys(sorts)
    said = (_sorts_again if len(distinct) <= _FEW_SORTS else _sorts)(tuple(distinct))
    codes = list(map(said.code.__getitem__, sorts))
    numbers = array(_NUMBER, lengths + said.lengths + codes) + array(_NUMBER, map(place.__getitem__, identities))
    literals = sum(compress(lengths, codes))  # and blank nodes
    return Packed(data + said.text + PAD, numbers.tobytes(), said.suffixes, len(codes), literals)


def unpack(packed: Packed) -> tuple[Triple, ...]:
    """The triples. Raises `UnicodeDecodeError` where a text is no UTF-8."""
    text, at, count = memoryview(packed.text), 0, packed.terms
    numbers = memoryview(packed.numbers).cast(_NUMBER).tolist()
    behind = count + len(packed.suffixes)
    terms: list[Term] = []
    for length, code in zip(numbers[:count], numbers[behind : behind + count], strict=True):
        lexical, at = str(text[at : at + length], "utf-8", "surrogatepass"), at + length
        if code == IRI_CODE:
            terms.append(_iri(lexical))
        else:
            suffix = packed.suffixes[max(code - LITERAL_CODE, 0)]
            terms.append(made_blank(lexical) if code == BLANK_CODE else literal_with(lexical, suffix))
    parts = map(terms.__getitem__, numbers[behind + count :])
    return tuple(map(Triple._make, zip(parts, parts, parts, strict=True)))


_iri = lru_cache(maxsize=_FEW_IRIS)(made_iri)


class _Sorts(NamedTuple):
    """Sorts of terms: what codes say that a term is of them, and the suffixes of their literals."""

    code: Mapping[_Sort, int]
    suffixes: tuple[str, ...]
    text: bytes  # the suffixes one behind the other
    lengths: list[int]


def _sorts(sorts: tuple[_Sort, ...]) -> _Sorts:
    """What is said of terms of these sorts."""
    suffixes, codes = {"": 0}, dict[_Sort, int]()
    for sort in sorts:
        suffix = _suffix_again(sort)
        codes[sort] = suffix if isinstance(suffix, int) else LITERAL_CODE + suffixes.setdefault(suffix, len(suffixes))
    texts = [suffix.encode("utf-8", "surrogatepass") for suffix in suffixes]
    return _Sorts(codes, tuple(suffixes), b"".join(texts), list(map(len, texts)))


def _suffix(sort: _Sort) -> str | int:
    """The suffix of literals of a sort; the code of other terms."""
    datatype, language = sort if isinstance(sort, tuple) else (sort, "")
    return datatype if isinstance(datatype, int) else suffix_of(made_literal("", datatype, language))


_sorts_again, _suffix_again = lru_cache(maxsize=256)(_sorts), lru_cache(maxsize=1_024)(_suffix)


def suffix_of(term: Term) -> str:
    """What of a literal is not its lexical form: "" for xsd:string, "@en" for a language, else the datatype IRI (behind
    "^" where it is no IRI and might be taken for something else)."""
    if not isinstance(term, Literal) or term.datatype == XSD_STRING:
        return ""
    if term.language:
        return f"@{term.language}"
    return f"^{term.datatype}" if term.datatype[:1] in _MARKS else term.datatype


def literal_with(text: str, suffix: str) -> Literal:
    """The literal of this lexical form with this suffix: `suffix_of` undone."""
    if suffix[:1] == "@":
        return made_literal(text, LANG_STRING, suffix[1:])
    return made_literal(text, suffix.removeprefix("^") if suffix else XSD_STRING)
