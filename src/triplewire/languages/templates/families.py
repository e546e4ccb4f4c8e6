"""Texts, or parts of them, of one form: equal but for their parameters. `Form` is what they have in common, `Family`
finds the templates of many of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.languages.templates import conjunctions
from triplewire.languages.templates.builder import USUAL, Built, Equal, Guard, Key, TemplateBuilder, Variants, equal_to
from triplewire.languages.templates.splitting import ParameterPool
from triplewire.languages.templates.template import Parameters, SplitText, Template, content, number_form

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
        self._variants: Variants | None = None
        self._met: set[int] = set()
        self._numbers: dict[int, int] = {}  # template, by its identity -> its number
        # with both quotations, equal strings could be written in two ways
        self._has_any = not ('"' in form.delimiters and "'" in form.delimiters)

    def templates(self, parameters: Numbers) -> Numbers:
        """The numbers of the templates of some texts, -1 for none. `parameters`: a row for each text."""
        none = np.full(len(parameters), _NONE, np.int32)
        if not self._has_any:
            return none
        if self._variants is None:
            if (len(parameters) == 1 and self._is_new(USUAL)) or not self._may_build():
                return none
            text = self._text(self._texts(parameters[0]))
            self._variants = Variants(self._builder, text, self._form.equal, self._is_word)
        variants = self._variants
        if variants.kinds is None:
            return none
        for rows in list(self._alike(parameters)):
            compares = variants.compares
            none[rows] = self._of_alike(parameters[rows], variants)
            if variants.compares is not compares:  # then others are alike
                return self.templates(parameters)
        return none

    def _alike(self, parameters: Numbers) -> Iterator[NDArray[np.int64]]:
        """The rows of texts that have one key."""
        variants = self._variants
        assert variants is not None
        columns = [self._fixed(parameters[:, n]) for n in variants.words if n < parameters.shape[1]]
        for its in (parameters[:, n] for n in variants.plain):
            columns.append(np.where(self._pool.first[its] != self._pool.last[its], _FIXED + its, 0))
        columns += [_FIXED + parameters[:, n] for n in variants.fixed]
        for n in variants.numeric:
            distinct, which = np.unique(parameters[:, n], return_inverse=True)
            forms = [_FORMS[number_form(self._pool.text(number))] for number in distinct.tolist()]
            columns.append(np.array(forms, np.int32)[which])
        if variants.compares:
            columns += [
                (parameters[:, : n + 1] == parameters[:, n : n + 1]).argmax(1) for n in range(parameters.shape[1])
            ]
        varying = [column for column in columns if (column != column[0]).any()]
        if not varying:
            yield np.arange(len(parameters))
            return
        which = np.unique(np.stack(varying, 1), axis=0, return_inverse=True)[1].reshape(-1)
        order = np.argsort(which, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(which[order])) + 1)

    def _fixed(self, parameters: Numbers) -> Numbers:
        """0 for parameters that are words, others by their number."""
        distinct, which = np.unique(parameters, return_inverse=True)
        is_word = np.array([self._is_word(self._pool.text(number)) for number in distinct.tolist()])
        return np.where(is_word, 0, distinct + _FIXED).astype(np.int32)[which]

    def _of_alike(self, parameters: Numbers, variants: Variants) -> Numbers:
        """The templates of texts with one key, but for equal parameters."""
        first = self._form.whole(self._texts(parameters[0]))
        key = variants.key(first)
        built = self._built(variants, key, first, len(parameters) > 1)
        if built is None:
            return np.full(len(parameters), _NONE, np.int32)
        template, guard = built
        numbers = np.full(len(parameters), self._number(template), np.int32)
        numbers[self._has_reserved(guard, parameters)] = _NONE
        if guard.alike and not variants.compares:
            ordered = np.sort(parameters, axis=1)
            for row in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)).tolist():
                numbers[row] = self._one(variants, key, guard, numbers[row], self._texts(parameters[row]))
        return numbers

    def _one(self, variants: Variants, key: Key, guard: Guard, number: int, parameters: Parameters) -> int:
        """The template of a text with equal parameters."""
        if number == _NONE or guard.allows(parameters):
            return number
        whole = self._form.whole(parameters)
        built = self._built(variants, (*key[:2], equal_to(whole)), whole, False)
        return self._number(built[0]) if built is not None and built[1].allows(parameters) else _NONE

    def _built(self, variants: Variants, key: Key, parameters: Parameters, several: bool) -> Built:
        """The template for this key, built now where it has to be."""
        if key in variants.built:
            return variants.built[key]
        if (key != USUAL and not several and self._is_new(key)) or not self._may_build():
            return None
        built = variants.build(key, SplitText(self._form.pieces, parameters))
        if built is not None and self._form.is_part:
            built = conjunctions.part(built, len(self._form.delimiters), self._form.is_condition)
        variants.built[variants.key(parameters) if variants.compares else key] = built
        return built

    def _has_reserved(self, guard: Guard, parameters: Numbers) -> NDArray[np.bool_]:
        """Which texts have a parameter with a reserved content?"""
        if not guard.reserved:
            return np.zeros(len(parameters), np.bool_)
        distinct, which = np.unique(parameters, return_inverse=True)
        is_reserved = [content(self._pool.text(number)) in guard.reserved for number in distinct.tolist()]
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

    def _number(self, template: Template) -> int:
        number = self._numbers.get(id(template))
        if number is None:
            number = self._numbers[id(template)] = self._registered(template)
        return number

    def _text(self, parameters: Parameters) -> SplitText:
        return SplitText(self._form.pieces, self._form.whole(parameters))

    def _texts(self, numbers: Numbers) -> Parameters:
        return tuple(map(self._pool.text, numbers.tolist()))
