"""N-Quads documents by chance: plain ones, unusual ones, and damaged ones."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from triplewire.encode.batch import Bytes, Hashes
from triplewire.encode.names import WORD_SEED
from triplewire.kernels.shared.hashing import MIXER
from triplewire.kernels.text.names import hash_spans

PLAIN = ["http://a/s", "http://a/p", "http://example.org/x#y", "http://a/%C3%A9"]
IRIS = [
    *PLAIN, "http://a/é", "urn:x:y", "http://a:80/", "http://[::1]/", "http://u@h/", "a:b", "http://a/%zz", "rel", "",
    "http://a/ b", "http://a/{x}", "http://a?q#f#g", "HTTP://A/", "x://", "file:///a", "mailto:a@b", "http://a/\0",
    "http://\u4e2d/", "http://a/\ue000", "http://a/?\ue000", "1a:b", "http://a/'", "http://a/\\u00e9", "http://a/^",
    "@en", "http:///x", "http://-/", "a+.-:", "http://a/;=@:~!$&()*+,",
    "http://www.w3.org/2001/XMLSchema#string", "http://www.w3.org/2001/XMLSchema#integer",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString",
]  # fmt: skip
TAGS = [
    "en", "EN-us", "de-Latn-DE", "abcdefghijk", "en--ltr", "x-a", "i-klingon", "a", "en-a", "en_", "1", "en-", "root",
    "de-1996", "zh-cmn-Hans", "en-x", "qaa-Qaaa-QM-x-s", "en-a-bb", "sl-rozaj-biske", "abcd", "-",
]  # fmt: skip
TEXTS = [
    "", "o", "5", "-1.50e3", "a b", "Straße", "é", "\U0001f600", "\\n\\t", "\\u00e9", "\\U0001F600", "\\uD800", "\\x",
    "\\uD83D\\uDE00", "\\", "\0", "\r", '\\"', "\\'", "\\u00g0", "\\U00110000", "\u2028", "a\\\\", "\x7f", "\\b\\f\\r",
    "\\u0000", " . ", ">", "<<", "# x", "\\u000A", "\\u0130",
]  # fmt: skip
LABELS = ["a", "b0", "-a", "a-", "a.b", "a.", "é", "0", "a:b", "_", "·a", "", "0ff", "A", "a\u00b7"]
DAMAGE = b'<>"\\ \t\n\r._:@^#\xff\xc3\xa9\x00aZ09-uUtn\xed\xa0\x80\xf0'


@dataclass(frozen=True)
class Documents:
    """A source of documents; the same chance gives the same ones. `strange`: how often a term is unusual or wrong."""

    chance: random.Random
    strange: float

    def _of(self, usual: list[str], all_: list[str]) -> str:
        return self.chance.choice(all_ if self.chance.random() < self.strange else usual)

    def _iri(self) -> str:
        return f"<{self._of(PLAIN, IRIS)}>"

    def _node(self) -> str:
        return self._iri() if self.chance.random() < 0.8 else "_:" + self._of(LABELS[:2], LABELS)

    def _object(self) -> str:
        kind = self.chance.random()
        if kind < 0.4:
            return self._node()
        text = '"' + self._of(TEXTS[:8], TEXTS) + self._of(TEXTS[:8], TEXTS) + '"'
        if kind < 0.65:
            return text
        return f"{text}@{self._of(TAGS[:2], TAGS)}" if kind < 0.8 else f"{text}^^{self._iri()}"

    def _line(self) -> str:
        kind = self.chance.random()
        if kind < 0.06:
            return self.chance.choice(["", "#c", "# é", " ", "\t#", "# <<", "."])
        space = self.chance.choice([" "] * 8 + ["", "\t", "  "])
        graph = "" if self.chance.random() < 0.4 else self._node() + space
        line = f"{self._node()}{space}{self._iri()}{space}{self._object()}{space}{graph}."
        return line + self.chance.choice([" # x", " ", "#", "\t", " .", " x"]) if kind < 0.15 else line

    def document(self) -> bytes:
        """Some lines, sometimes damaged."""
        count = self.chance.choice([1, 1, 1, 2, 3, 8])
        ends = [self.chance.choice(["\n"] * 8 + ["\r\n", "\n\n", "\r"]) for _ in range(count)]
        text = "".join(self._line() + end for end in ends)
        data = bytearray(text.rstrip("\r\n").encode() if self.chance.random() < 0.3 else text.encode())
        if data and self.chance.random() < self.strange / 2:
            at = self.chance.randrange(len(data))
            match self.chance.randrange(3):
                case 0:
                    data[at] = self.chance.choice(DAMAGE)
                case 1:
                    del data[at : at + self.chance.choice((1, 1, 3))]
                case _:
                    data[at:at] = bytes([self.chance.choice(DAMAGE)])
        return bytes(data)


def _mixed(hashes: Hashes) -> Hashes:
    product: Hashes = hashes * MIXER
    product ^= product >> np.uint64(32)
    return product


def _hashes(words: Bytes, seed: int) -> Hashes:
    """The hashes of words of eight bytes: as words of a batch are looked up; of names and terms."""
    if seed == WORD_SEED:
        return (_mixed(words.view("<u8")) * MIXER) >> np.uint64(32)
    start = np.arange(0, len(words), 8)
    hashes: Hashes = hash_spans(words, start, start + 8, seed)
    return hashes


def colliding(count: int, seed: int) -> list[bytes]:
    """Short words whose hashes, from this seed, lie close together in any table of up to 65,536 slots."""
    found: list[bytes] = []
    first = 10_000_000
    while len(found) < count:
        numbers = range(first, first + 500_000)
        text = np.frombuffer("".join(map(str, numbers)).encode(), np.uint8)
        near = np.flatnonzero((_hashes(text, seed) & np.uint64(0xFFFF)) < 64)
        found += [b"%d" % numbers[row] for row in near.tolist()]
        first += len(numbers)
    return found[:count]
