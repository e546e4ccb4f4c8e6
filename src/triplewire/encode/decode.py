"""From the ids of a batch back to terms and publications, each term object made once, when it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import BLANK_KIND, IRI_KIND, Batch
from triplewire.model.packed import literal_with
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Term, Triple


class Decoder:
    """Reads one batch. Safe with threads: at worst a term is made twice."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._terms: dict[int, Term] = {}

    def term(self, number: int) -> Term:
        """The term with this number."""
        term = self._terms.get(number)
        if term is None:
            term = self._terms[number] = self._made(number)
        return term

    def terms(self, numbers: NDArray[np.integer[Any]]) -> list[Term]:
        """The terms with these numbers: of many, in a fifth of the time."""
        known, terms = self._terms, self._batch.terms
        every = numbers.tolist()
        out: list[Any] = list(map(known.get, every))
        new = [place for place, term in enumerate(out) if term is None]
        new_numbers = numbers[new]
        columns = terms.start[new_numbers].tolist(), terms.end[new_numbers].tolist(), terms.kind[new_numbers].tolist()
        text = terms.text.data
        for place, start, end, kind in zip(new, *columns, strict=True):
            number = every[place]
            term = known.get(number)  # it may be here twice
            if term is None:
                term = known[number] = self._of(number, str(text[start:end], "utf-8", "surrogatepass"), kind)
            out[place] = term
        return out

    def _made(self, number: int) -> Term:
        terms = self._batch.terms
        text = terms.text[terms.start[number] : terms.end[number]].tobytes().decode("utf-8", "surrogatepass")
        return self._of(number, text, terms.kind[number])

    def _of(self, number: int, text: str, kind: int) -> Term:
        """A term with this text, of this kind."""
        if kind == IRI_KIND:
            return IRI(text)
        if kind == BLANK_KIND:
            return BlankNode(text)
        terms = self._batch.terms
        return literal_with(text, terms.suffixes[terms.suffix[number]])

    def publication(self, number: int) -> Publication:
        """The publication with this number; it has an id and triples only."""
        batch = self._batch
        rows = slice(int(batch.offset[number]), int(batch.offset[number + 1]))
        columns = [self.terms(column[rows]) for column in (batch.subject, batch.predicate, batch.object)]
        return Publication(batch.ids[number], tuple(map(Triple._make, zip(*columns, strict=True))))
