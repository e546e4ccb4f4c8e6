"""JSON text made of rows: byte for byte what `json.dumps` makes of the same bindings as objects."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.encode.batch import BLANK_KIND, IRI_KIND, LITERAL_KIND, Terms
from triplewire.encode.strings import TextColumn, joined, utf8
from triplewire.ir.evaluation.evaluate import Answer
from triplewire.kernels.text import json_strings as kernels
from triplewire.model.match import bindings_text
from triplewire.model.packed import suffix_of
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Term, made_blank, made_iri, made_literal, text_of
from triplewire.verify.bindings import json_column, shared
from triplewire.verify.rows import Bindings
from verify.columns import terms_of

# with lone surrogates, and what is near to them: the last before them, the first behind them, and beyond 16 bits
CHARACTERS = 'ab"\\/\b\f\n\r\t\0\x01\x1f\x7f é\ud7ff\ud800\udbff\udc00\udfff\ue000\u2028\U0001f600'
texts = st.text(st.sampled_from(CHARACTERS), max_size=6)
terms = st.one_of(
    st.builds(made_iri, texts),
    st.builds(made_blank, texts),
    st.builds(Literal, texts),
    st.builds(made_literal, texts, st.sampled_from([XSD + "integer", XSD + "date", "@odd", "^odd", "\ud800"])),
    st.builds(Literal.tagged, texts, st.sampled_from(["en", "de-at"])),
)
KINDS = {IRI: IRI_KIND, BlankNode: BLANK_KIND, Literal: LITERAL_KIND}
SELECTIONS = ((), ("x",), ("y", "x"), ("é", 'q"'), ("c", "b", "a"))


def batch_terms(stated: list[Term]) -> Terms:
    """The terms as a batch has them."""
    text, offset = joined([text_of(term).encode("utf-8", "surrogatepass") for term in stated])
    suffixes = {"": 0}
    suffix = np.array([suffixes.setdefault(suffix_of(term), len(suffixes)) for term in stated], np.int32)
    kind = np.array([KINDS[type(term)] for term in stated], np.uint8)
    none = np.zeros(len(stated))  # of hashes and numbers: they are not in texts
    columns = text, offset[:-1].copy(), offset[1:].copy(), kind, suffix, tuple(suffixes)
    return Terms(*columns, none.astype(np.uint64), none, none.astype(np.uint8))


@st.composite
def lists(draw: st.DrawFn) -> tuple[list[Term], Bindings, list[int]]:
    """Terms, the rows of some pairs, and which of `SELECTIONS` each has. Some rows are answers of an evaluation."""
    stated = draw(st.lists(terms, min_size=1, max_size=8, unique=True))
    selection = draw(st.lists(st.integers(0, len(SELECTIONS) - 1), max_size=6))
    flat: list[int] = []
    start, count, width, answers = [], [], [], {}
    for pair, place in enumerate(selection):
        names = SELECTIONS[place]
        row = st.tuples(*[st.integers(-1, len(stated) - 1)] * len(names))
        rows = draw(st.lists(row, max_size=4, unique=True)) if names else [()]
        start.append(len(flat))
        count.append(len(rows))
        width.append(len(names))
        flat += [number for one in rows for number in one]
        if draw(st.integers(0, 4)) == 0:
            answers[pair] = Answer(tuple(draw(st.lists(st.dictionaries(texts, terms, max_size=2), max_size=2))))
    group = np.full(len(selection), -1, np.int32)
    more = np.zeros(len(selection), np.bool_)
    numbers = np.array(start, np.int64), np.array(count, np.int64), np.array(width, np.int32)
    return stated, Bindings(np.array(flat, np.int32), *numbers, more, group, answers), selection


def rows_of(column: TextColumn) -> list[bytes]:
    """The texts of a column, row by row."""
    bounds = column.offset.tolist()
    return [column.text[bounds[n] : bounds[n + 1]].tobytes() for n in column.number.tolist()]


@pytest.mark.parametrize("few", [0, 1_000])  # terms of objects, and terms as columns
@given(lists())
def test_text_is_that_of_the_objects(few: int, drawn: tuple[list[Term], Bindings, list[int]]) -> None:
    stated, bindings, selection = drawn
    places = np.array(selection, np.int32)
    made = json_column(bindings, places, SELECTIONS, batch_terms(stated), terms_of(stated), few)
    wanted = [utf8(bindings_text(one)) for one in shared(bindings, places, SELECTIONS, terms_of(stated))]
    assert rows_of(made) == wanted
    assert all(isinstance(json.loads(text), list) for text in wanted)


def test_equal_lists_have_one_text() -> None:
    rows, group = np.array([0, 1, 0, 1, 1], np.int32), np.full(3, -1, np.int32)
    start, count, width = np.array([0, 2, 4]), np.array([2, 2, 1]), np.ones(3, np.int32)
    bindings = Bindings(rows, start, count, width, np.zeros(3, np.bool_), group, {})
    stated: list[Term] = [IRI("urn:a"), IRI("urn:b")]
    made = json_column(bindings, np.ones(3, np.int32), SELECTIONS, batch_terms(stated), terms_of(stated))
    assert len(made.offset) - 1 == 2
    assert made.number.tolist() == [0, 0, 1]


@pytest.mark.parametrize("code", [*range(0x100), *range(0xD7F8, 0xD808), *range(0xDFF8, 0xE008), 0x10000, 0x10FFFF])
def test_every_character_is_escaped_as_python_does(code: int) -> None:
    texts = [chr(code), f"a{chr(code)}", f"{chr(code)}b"]
    strings = [text.encode("utf-8", "surrogatepass") for text in texts]
    given_, offset = TextColumn.of(strings), np.empty(4, np.int64)
    span = given_.text, given_.offset[:-1].copy(), given_.offset[1:].copy()
    kernels.escaped_offsets(*span, offset)
    out = np.empty(offset[-1], np.uint8)
    kernels.escape(*span, offset, out)
    assert out.tobytes().decode().split('"') == "".join(json.dumps(t, ensure_ascii=False)[1:-1] for t in texts).encode(
        "utf-8", "backslashreplace"
    ).decode().split('"')
