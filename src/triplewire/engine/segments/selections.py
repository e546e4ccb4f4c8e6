"""The selected variables of many subscriptions, numbered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from triplewire.engine.segments.segment import Selection
from triplewire.languages.templates import TextForms
from triplewire.languages.templates.splitting import ParameterPool, Pool, Texts
from triplewire.languages.templates.template import content

Ids = NDArray[np.int32]


class Selections:
    """The distinct selections, in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: dict[Selection, int] = {}
        self._parameters: ParameterPool | None = None
        self._pool = Pool()
        self._of_names = np.zeros(0, np.int32)  # by number in the pool

    @property
    def stated(self) -> list[Selection]:
        """All of them."""
        return list(self._numbers)

    def number(self, selection: Selection) -> int:
        """The number of a selection."""
        return self._numbers.setdefault(selection, len(self._numbers))

    def of(self, forms: TextForms, begin: int, names: Ids, offset: Ids) -> Ids:
        """The numbers of some subscriptions, from row `begin` on, that were added by template. `names`: the parameters
        that a joined one selects, none of an ASK query; `offset`: the slice of each."""
        rows = slice(begin, begin + len(offset) - 1)
        numbers = np.zeros(len(offset) - 1, np.int32)
        is_joined = forms.is_joined[rows]
        templates, which = np.unique(forms.template[forms.first[rows][~is_joined]], return_inverse=True)
        alone = [forms.templates[number] for number in templates.tolist()]
        of_templates = [
            self.number(None if template.ask else tuple(dict.fromkeys(template.select))) for template in alone
        ]
        numbers[~is_joined] = np.array(of_templates, np.int32)[which]
        if is_joined.any():
            if self._parameters is not forms.parameters:  # other numbers, other names
                self._parameters, self._pool, self._of_names = forms.parameters, Pool(), np.zeros(0, np.int32)
            numbers[is_joined] = self._joined(forms.parameters, names, offset, np.flatnonzero(is_joined))
            asks = np.array([head.ask for head in forms.heads], np.bool_)[forms.template[forms.first[rows][is_joined]]]
            if asks.any():
                numbers[np.flatnonzero(is_joined)[asks]] = self.number(None)
        return numbers

    def _joined(self, parameters: ParameterPool, names: Ids, offset: Ids, rows: NDArray[np.int64]) -> Ids:
        size = names.itemsize
        spans = Texts(
            names.view(np.uint8), size * offset[rows].astype(np.int64), size * offset[rows + 1].astype(np.int64)
        )
        before, places = len(self._pool), self._pool.add(spans)
        new = [np.frombuffer(self._pool[number], np.int32).tolist() for number in range(before, len(self._pool))]
        selections = [tuple([content(parameters.text(name)) for name in its]) for its in new]
        self._of_names = np.concatenate((self._of_names, np.array(list(map(self.number, selections)), np.int32)))
        return self._of_names[places]
