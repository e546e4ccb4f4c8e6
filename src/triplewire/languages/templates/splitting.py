"""Texts as columns, split by a kernel: `Texts`, `SplitTexts`; and sets of byte strings that grow: `Pool`.

What a parameter and what a part is: `triplewire.kernels.text.parts`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.kernels.text import parts as kernels
from triplewire.kernels.text.parts import GQL, SPARQL, UNSURE, WHOLE
from triplewire.languages.templates.template import Environment, Parameters

__all__ = ["GQL", "PAD", "SPARQL", "UNSURE", "WHOLE", "ParameterPool", "Pool", "Queries", "SplitTexts", "Texts"]
__all__ += ["split_whole", "with_room"]

PAD = 8  # bytes that kernels may read behind a text
Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Numbers = NDArray[np.int32]


def with_room(array: np.ndarray, size: int) -> np.ndarray:
    """The array, or a longer one that begins with it; what is added is 0."""
    if size <= len(array):
        return array
    longer = np.zeros(max(size, len(array) + len(array) // 2), array.dtype)
    longer[: len(array)] = array
    return longer


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings as spans of one text, which has `PAD` further bytes."""

    text: Bytes
    start: Offsets
    end: Offsets

    def __post_init__(self) -> None:
        text = self.text.view()
        text.flags.writeable = False  # of one type for kernels, whoever owns the text and wherever spans come from
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "start", np.ascontiguousarray(self.start))
        object.__setattr__(self, "end", np.ascontiguousarray(self.end))

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        """From Python's byte strings."""
        offset = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offset[1:])
        return cls(np.frombuffer(b"".join(texts) + bytes(PAD), np.uint8), offset[:-1], offset[1:])

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, number: int) -> bytes:
        return self.text[self.start[number] : self.end[number]].tobytes()

    def take(self, rows: NDArray[np.integer]) -> Texts:
        """Some of them."""
        return Texts(self.text, self.start[rows], self.end[rows])

    @property
    def lengths(self) -> Offsets:
        """How many bytes each has."""
        return self.end - self.start

    def joined(self) -> bytes:
        """All of them, one behind the other."""
        if not len(self):
            return b""
        if (self.start[1:] == self.end[:-1]).all():
            return self.text[self.start[0] : self.end[-1]].tobytes()
        text = self.text.tobytes()
        return b"".join([text[start:end] for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True)])

    def decoded(self) -> list[str]:
        """All of them, as texts."""
        text = self.text.tobytes()
        return [text[a:b].decode() for a, b in zip(self.start.tolist(), self.end.tolist(), strict=True)]

    def __reduce__(self) -> tuple[type[Texts], tuple[NDArray[Any], ...]]:
        """Pickled without bytes that none has."""
        offset = np.concatenate(([0], np.cumsum(self.lengths)))
        return Texts, (np.frombuffer(self.joined() + bytes(PAD), np.uint8), offset[:-1], offset[1:])


@dataclass(frozen=True, slots=True)
class Queries:
    """Texts of subscriptions. `environment`: of each, the place of what it is parsed with."""

    texts: Texts
    environment: Numbers
    environments: Sequence[Environment]

    @classmethod
    def of(cls, texts: Sequence[bytes], stated: Sequence[Environment]) -> Queries:
        """From one environment a text."""
        numbers: dict[Environment, int] = {}
        environment = [numbers.setdefault(each, len(numbers)) for each in stated]
        return cls(Texts.of(texts), np.array(environment, np.int32), list(numbers))

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: NDArray[np.integer]) -> Queries:
        """Some of them."""
        return Queries(self.texts.take(rows), self.environment[rows], self.environments)


class Pool:
    """Distinct byte strings, numbered as they come: about 40 bytes each, where a Python dictionary takes more than 100.
    For one thread at a time."""

    def __init__(self) -> None:
        self._count = 0
        self._seed = secrets.randbits(31)  # so that nobody can choose strings with equal hashes
        self._text = np.zeros(1 << 10, np.uint8)
        self._ends = np.zeros(1 << 7, np.int64)
        self._slots = np.full(1 << 7, -1, np.int32)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> bytes:
        return self._text[self._ends[number] : self._ends[number + 1]].tobytes()

    def texts(self) -> Texts:
        """All of them; of use until more are added."""
        return Texts(self._text, self._ends[: self._count], self._ends[1 : self._count + 1])

    def add(self, texts: Texts) -> Numbers:
        """The number of each string; new ones are added."""
        count, size = len(texts), int((texts.end - texts.start).sum())
        numbers = np.empty(count, np.int32)
        self._text = with_room(self._text, int(self._ends[self._count]) + size + PAD)
        self._ends = with_room(self._ends, self._count + count + 1)
        if 2 * (self._count + count) > len(self._slots):
            self._slots = np.empty(1 << (4 * (self._count + count)).bit_length(), np.int32)
            kernels.refill(self._text, self._ends, self._count, self._seed, self._slots)
        spans = texts.text, texts.start, texts.end
        self._count = kernels.insert(*spans, self._text, self._ends, self._count, self._seed, self._slots, numbers)
        return numbers


class ParameterPool(Pool):
    """The distinct parameters that were met, and the first and last byte of each. None is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.last = np.zeros(0, np.uint8)
        self._texts: list[str] = []

    def add(self, texts: Texts) -> Numbers:
        """The number of each parameter; new ones are added."""
        before, numbers = len(self), super().add(texts)
        if len(self) > before:
            ends = self._ends[before : len(self) + 1]
            self.first = np.concatenate((self.first, self._text[ends[:-1]]))
            self.last = np.concatenate((self.last, self._text[ends[1:] - 1]))
            text = self._text[ends[0] : ends[-1]].tobytes()
            self._texts += [text[begin:end].decode() for begin, end in pairwise((ends - ends[0]).tolist())]
        return numbers

    def text(self, number: int) -> str:
        """A parameter as written."""
        return self._texts[number]


class SplitTexts:
    """Some texts, split. `mode`: how each is to be split; in the end, how it was."""

    def __init__(self, texts: Texts, mode: Bytes, reserves: bool) -> None:
        self.mode = mode
        self._spans = _room(mode, int((texts.end - texts.start).sum()))
        kernels.split(texts.text, texts.start, texts.end, reserves, self._spans)
        self.text = texts.text
        self.part_offset = self._spans.part_offset
        self.parts, parameters = self._spans.state[:2].tolist()
        self.parameter_offset = self._spans.parameter_offset[: self.parts + 1]
        self.parameters = Texts(texts.text, self._spans.start[:parameters], self._spans.end[:parameters])

    @cached_property
    def skeletons(self) -> Texts:
        """The bytes of each part, with marks in place of its parameters."""
        offset = self._spans.skeleton_offset[: self.parts + 1]
        return Texts(self._spans.skeleton, offset[:-1], offset[1:])


def split_whole(text: bytes, reserves: bool) -> tuple[bytes, Parameters] | None:
    """One text as a whole: its bytes with marks in place of its parameters, and these; None where it cannot be split.
    `reserves` as for `SplitTexts`, which takes longer for one."""
    spans = _room(np.array([WHOLE], np.uint8), len(text))
    end = np.array([len(text)], np.int64)
    kernels.split(np.frombuffer(text + bytes(PAD), np.uint8), np.zeros(1, np.int64), end, reserves, spans)
    if spans.mode[0] == UNSURE:
        return None
    count, size = spans.state[kernels.PARAMETERS], spans.state[kernels.BYTES]
    places = zip(spans.start[:count].tolist(), spans.end[:count].tolist(), strict=True)
    return spans.skeleton[:size].tobytes(), tuple([text[begin:end].decode() for begin, end in places])


def _room(mode: Bytes, size: int) -> kernels.Split:
    """Room for what is split of texts that are so long together."""
    count = len(mode)
    spans = kernels.Split(
        mode,
        np.empty(count + 1, np.int32),
        np.empty(2 * size + PAD, np.uint8),
        np.empty(size + count + 2, np.int64),
        np.empty(size + count + 2, np.int32),
        np.empty(size // 2 + 2, np.int64),
        np.empty(size // 2 + 2, np.int64),
        np.zeros(kernels.STATE, np.int64),
    )
    spans.skeleton_offset[0] = spans.parameter_offset[0] = 0
    return spans
