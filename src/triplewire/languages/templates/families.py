"""Texts, or parts of them, of one form: equal but for their parameters.

`Form` is what they have in common, `Family` finds the templates of many of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.languages.templates import conjunctions
from triplewire.languages.templates.builder import Equal, TemplateBuilder
from triplewire.languages.templates.splitting import ParameterPool
from triplewire.languages.templates.template import (
    FIXED,
    LITERAL,
    NUMBER,
    TEXT,
    WORD,
    Parameters,
    SplitText,
    Template,
    content,
    number_form,
)

Numbers: TypeAlias = NDArray[np.int32]
_FIXED = 8  # codes below are forms of numbers
_FORMS = {"": 1, "-": 2, ".": 3, "-.": 4}
_NONE = -1
_MOST_MET = 1 << 16
_MARK, _VARIABLE = 0, ord("?")


@dataclass(frozen=True, slots=True)
class Form:
    """`pieces` stand around the parameters of a text, or of a part of one that is parsed with a `prologue`. `equal`:
    of a part, which of its parameters are the same variable; `behind`: the numbers of those that follow once more, in
    patterns that bind the variables of a condition."""

    pieces: tuple[str, ...]
    delimiters: str
    equal: Equal | None
    behind: tuple[int, ...] = ()
    is_part: bool = False
    is_condition: bool = False

    @classmethod
    def of(cls, skeleton: bytes, language: str, prologue: str | None) -> Form:
        """From the bytes that `triplewire.kernels.text.parts` writes."""
        pieces, delimiters = [bytearray()], ""
        equal: list[int] = []
        i = 0
        while i < len(skeleton):
            if skeleton[i] != _MARK:
                pieces[-1].append(skeleton[i])
                i += 1
                continue
            is_variable = skeleton[i + 1] == _VARIABLE
            equal.append(skeleton[i + 2] - 1 if is_variable else len(equal))
            delimiters += chr(skeleton[i + 1])
            pieces.append(bytearray())
            i += 3 if is_variable else 2
        texts = [piece.decode() for piece in pieces]
        if prologue is None:
            return cls(tuple(texts), delimiters, None)
        is_condition = conjunctions.is_condition(texts[0], language)
        behind = tuple(dict.fromkeys(e for n, e in enumerate(equal) if delimiters[n] == "?")) if is_condition else ()
        before, after = conjunctions.around(language, prologue)
        texts[0] = before + texts[0]
        for _ in behind:
            texts[-1] += conjunctions.BINDS[0]
            texts += conjunctions.BINDS[1:]
        texts[-1] += after
        doubled = [number for number in behind for _ in range(2)]
        return cls(tuple(texts), delimiters, (*equal, *doubled), tuple(doubled), True, is_condition)

    def whole(self, parameters: Parameters) -> Parameters:
        """The parameters of the text that is parsed."""
        return (*parameters, *(parameters[number] for number in self.behind))


Key: TypeAlias = tuple[tuple[int, int], ...]
"""What of the parameters of a text decides between the templates of its form: places with codes other than 0. First
come the deciding placeholders: the form of a number, or a parameter that is fixed there; then all constants: 1 more
than the number of the first parameter that is equal."""


class Family:
    """The templates of the texts of one form. `may_build`: is there time for another one? `registered` gives a template
    its number."""

    def __init__(
        self,
        form: Form,
        builder: TemplateBuilder,
        pool: ParameterPool,
        is_word: Callable[[str], bool],
        may_build: Callable[[], bool],
        registered: Callable[[Template], int],
    ) -> None:
        self._form, self._builder, self._pool = form, builder, pool
        self._is_word, self._may_build, self._registered = is_word, may_build, registered
        self._kinds: tuple[str, ...] | None = None
        self._deciding: tuple[int, ...] = ()  # placeholders
        # without a template: with both quotations, equal strings could be written in two ways
        self._has_none = '"' in form.delimiters and "'" in form.delimiters
        self._met: set[int] = set()
        self._built: dict[Key, tuple[int, Template] | None] = {}  # with its number

    def templates(self, parameters: Numbers) -> Numbers:
        """The numbers of the templates of some texts, -1 for none. `parameters`: a row for each text."""
        numbers = np.full(len(parameters), _NONE, np.int32)
        if self._kinds is None and not self._has_none and self._may_build_for(parameters, ()):
            self._decide(self._text(parameters[0]))
        if self._kinds is None or self._has_none:
            return numbers
        codes = self._codes(parameters)
        for rows in _alike(codes):
            first = codes[rows[0]]
            key = tuple([(place, int(first[place])) for place in np.flatnonzero(first).tolist()])
            if (built := self._template(key, parameters[rows])) is not None:
                number, template = built
                numbers[rows] = np.where(self._has_any(parameters[rows], template.reserved), _NONE, number)
        return numbers

    def _decide(self, text: SplitText) -> None:
        """What of the parameters decides."""
        self._kinds = self._builder.kinds(text, self._form.equal)
        kinds = dict(enumerate(self._kinds or ()))
        is_odd = any(text.parameters[number][0] == "?" for number, kind in kinds.items() if kind == FIXED)
        self._has_none = self._kinds is None or is_odd
        plain = (TEXT,) if self._builder.may_have_suffix else (TEXT, LITERAL)  # strings without tag and datatype
        self._deciding = tuple([number for number, kind in kinds.items() if kind in (WORD, *plain, FIXED, NUMBER)])

    def _codes(self, parameters: Numbers) -> Numbers:
        """A row for each text, from which its key is made."""
        columns = [np.zeros((len(parameters), 0), np.int32)]
        for placeholder in self._deciding:
            distinct, which = np.unique(parameters[:, placeholder], return_inverse=True)
            columns.append(self._codes_of(placeholder, distinct)[which][:, None])
        ordered = np.sort(parameters, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            for number in (number for number, delimiter in enumerate(self._form.delimiters) if delimiter != "?"):
                equal = (parameters[:, : number + 1] == parameters[:, number : number + 1]).argmax(1)
                columns.append(np.where(equal < number, equal + 1, 0)[:, None])
        return np.concatenate(columns, 1)

    def _codes_of(self, placeholder: int, parameters: Numbers) -> Numbers:
        """The codes of some parameters at a deciding placeholder."""
        assert self._kinds is not None
        kind, texts = self._kinds[placeholder], map(self._pool.text, parameters.tolist())
        if kind == NUMBER:
            return np.array([_FORMS[number_form(text)] for text in texts], np.int32)
        if kind == WORD:
            varies = np.array(list(map(self._is_word, texts)), np.bool_)
        else:
            varies = (self._pool.first[parameters] == self._pool.last[parameters]) & (kind != FIXED)
        return np.where(varies, 0, parameters + _FIXED).astype(np.int32)

    def _template(self, key: Key, parameters: Numbers) -> tuple[int, Template] | None:
        """The template for this key, built now where it has to be. `parameters`: those of texts with it."""
        if key not in self._built:
            if not self._may_build_for(parameters, key):
                return None
            assert self._kinds is not None
            text, count = self._text(parameters[0]), len(self._deciding)
            fixed = frozenset([self._deciding[place] for place, code in key if place < count and code >= _FIXED])
            built = self._builder.build(text, self._kinds, fixed)
            if built is not None and self._form.is_part:
                built = conjunctions.part(built, len(self._form.delimiters), self._form.is_condition)
            self._built[key] = None if built is None else (self._registered(built), built)
        return self._built[key]

    def _may_build_for(self, parameters: Numbers, key: Key) -> bool:
        """Is it time to build a template for texts with this key? Not for the first text of this form, nor for the
        first one with the key."""
        is_first = len(parameters) == 1 and self._is_new(key)
        return not is_first and self._may_build()

    def _has_any(self, parameters: Numbers, reserved: frozenset[str]) -> NDArray[np.bool_]:
        """Which texts have a parameter with a reserved content?"""
        if not reserved:
            return np.zeros(len(parameters), np.bool_)
        distinct, which = np.unique(parameters, return_inverse=True)
        is_reserved = [content(self._pool.text(number)) in reserved for number in distinct.tolist()]
        return np.asarray(np.array(is_reserved, np.bool_)[which].reshape(parameters.shape).any(axis=1))

    def _is_new(self, key: Key) -> bool:
        """Is it met for the first time?"""
        number = hash(key)  # two of the same only make a template come early
        if number in self._met:
            return False
        if len(self._met) >= _MOST_MET:
            self._met.clear()
        self._met.add(number)
        return True

    def _text(self, parameters: Numbers) -> SplitText:
        return SplitText(self._form.pieces, self._form.whole(tuple(map(self._pool.text, parameters.tolist()))))


def _alike(codes: Numbers) -> Iterator[NDArray[np.int64]]:
    """The rows of texts that have one key."""
    varying = codes[:, (codes != codes[:1]).any(0)]
    if not varying.shape[1]:
        yield np.arange(len(codes))
        return
    which = np.unique(varying, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(which, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(which[order])) + 1)
